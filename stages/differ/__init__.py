"""Finds what differs between two similar bodies, and whether a rule keeps them apart because of it."""
