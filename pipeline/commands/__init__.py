"""The commands of `twinsieve`, one file for each; the commands that connect to Kafka are in `kafka/`."""
