"""What other settings would do to messages of a user: `twinsieve tune`."""
