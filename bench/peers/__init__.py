"""This program beside its peers, each checked for the right answer while it is timed: `make bench`.

`files` compares on a file of generated posts, `throughput` and `latency` on a real broker. Peers are
installed into an environment of their own (`installation`), so that the project does not depend on them.
"""
