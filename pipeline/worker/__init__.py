"""The worker: asks the index about every input message in sessions, and emits what it answers."""
