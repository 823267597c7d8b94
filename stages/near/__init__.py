"""The near stage: how candidates among the kept messages are found and compared."""
