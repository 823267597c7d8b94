"""The ports on confluent-kafka, the fast client (an extra)."""
