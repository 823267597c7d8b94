"""The ports on kafka-python, the default client."""
