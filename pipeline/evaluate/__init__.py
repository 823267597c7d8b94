"""How good the verdicts are: measured against known pairs, and explained for one pair."""
