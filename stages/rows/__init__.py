"""Many rows in one call: lines in one piece of bytes, times read from texts, record batches of Kafka."""
