"""Reads raw messages into columns. Both inputs, files and Kafka, use this code."""
