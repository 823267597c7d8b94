"""Raw messages as columns: the one way in, for files and for Kafka."""
