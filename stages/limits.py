"""How far the near stage goes; free of kernels, so that settings can be checked without compiling any."""

MAX_WINDOW = 16_000_000
"""Bucket entries hold a kept index modulo 2 ** 24; the rest of that range tells stale entries apart."""

MAX_RING = 2**30
"""Where there are no buckets: slots of the ring are 32-bit."""

MAX_DISTANCE = 7
MAX_TABLES = 128
"""Of hamming mode."""
