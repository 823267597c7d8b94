"""What settings cost in memory, on disk and in time: one model for all commands; nothing is measured here."""

MAX_SEGMENTS = 1_000
"""Most segments of a near window. Each sealed one takes a map and an open file of the process, and time for
every message."""

MEAN_CHARACTERS = 60
"""Mean characters of a body if nobody says it: those of microblog posts."""
