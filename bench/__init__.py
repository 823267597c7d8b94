"""Measurements: each module prints the machine, the input and the number; run as `python -m bench.NAME`."""
