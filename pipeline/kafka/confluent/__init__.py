"""The Kafka clients built on confluent-kafka: the faster library, an optional dependency ("extra")."""
