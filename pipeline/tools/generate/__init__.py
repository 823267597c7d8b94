"""Generates streams of made-up posts, whose duplicates are known."""
