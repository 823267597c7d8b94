"""The sieve: gives the verdicts on batches, with the exact stage and the near stage."""
