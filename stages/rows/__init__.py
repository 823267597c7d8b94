"""Rows of an input as pieces of bytes: lines, members of JSON, strings and times that become no objects of
Python, and record batches of Kafka."""
