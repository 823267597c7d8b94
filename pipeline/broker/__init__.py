"""The interface to the message broker: what the roles may request, and the names of topics and groups."""
