"""Generates streams of made-up posts and of made-up news articles, whose duplicates are known."""
