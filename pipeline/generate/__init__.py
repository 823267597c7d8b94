"""A made-up stream of posts with known duplicates, in five languages."""
