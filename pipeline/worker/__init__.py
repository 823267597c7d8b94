"""The worker role: asks the index for a verdict on every input message, and emits the answered messages."""
