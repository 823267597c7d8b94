"""Kept messages: the columns of a batch, the ring they move into, and the table of their tags."""
