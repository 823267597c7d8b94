"""Cases: messages and what the sieve shall say of each, written by users; `twinsieve test` runs them."""
