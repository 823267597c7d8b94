"""What judges, measures and shows from outside: each tool stands on the public face alone."""
