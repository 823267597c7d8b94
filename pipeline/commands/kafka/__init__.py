"""Commands that talk to Kafka, and the one place that chooses the client."""
