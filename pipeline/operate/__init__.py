"""What an operator does on a broker: topics, rights, offsets."""
