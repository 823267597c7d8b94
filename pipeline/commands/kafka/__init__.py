"""The commands that connect to Kafka, and the only place that chooses the Kafka client."""
