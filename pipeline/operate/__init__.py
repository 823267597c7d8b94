"""Tasks of an operator on a broker: check and create topics, list permissions, move offsets."""
