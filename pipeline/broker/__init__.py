"""The seam to the message broker: what roles may ask of it, and what they call things there."""
