"""What `run` remembers of itself for its status pages."""
