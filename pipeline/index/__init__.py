"""The index: reads the log of fingerprints in order, judges, records decisions, answers."""
