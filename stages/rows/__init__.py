"""Rows of an input as bytes: finds members of JSON rows without building their documents, and strings without
making them `str`."""
