"""Measure the quality of verdicts against known pairs, and explain the verdict on one pair."""
