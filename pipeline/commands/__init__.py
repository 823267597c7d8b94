"""One file a command of `twinsieve`; those that talk to Kafka are in `kafka/`."""
