"""The Kafka clients built on kafka-python, the default library."""
