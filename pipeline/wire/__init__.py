"""The encoding of the records that workers and index send to each other (docs/WIRE.md)."""
