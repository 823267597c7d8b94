"""The role "shard": looks rows of the log up in sealed segments, and writes what it finds. It decides
nothing."""
