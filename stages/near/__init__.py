"""The near stage: candidate lanes, verification, ring of kept messages."""
