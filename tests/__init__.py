"""Tests, and the plain loop (`oracle.py`) that everything fast is held against."""
