"""What differs between two bodies that are alike, and whether that keeps them apart."""
