"""The index role: reads the fingerprint log in order, judges its blocks, records decisions, answers
workers."""
