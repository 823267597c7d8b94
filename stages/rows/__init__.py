"""Many rows in one call: lines in one piece of bytes, members of JSON, strings in one piece of UTF-8, times
read from texts, record batches of Kafka."""
