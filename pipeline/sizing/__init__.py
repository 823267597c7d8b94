"""What settings cost in memory, on disk and in time: one model for all commands; nothing is measured here."""
