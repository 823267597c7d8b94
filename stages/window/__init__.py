"""Kept messages: a batch as columns, the ring that stores kept messages, and the indexes that find them."""
