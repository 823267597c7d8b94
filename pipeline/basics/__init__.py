"""Basic parts that all of the pipeline may import, and that import no other part of it."""
