"""The sieve: verdicts for batches, from the exact stage and the near stage."""
