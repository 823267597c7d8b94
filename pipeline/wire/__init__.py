"""What the roles write to each other, byte by byte (docs/WIRE.md)."""
