"""Generates a stream of made-up posts in five languages, whose duplicates are known."""
