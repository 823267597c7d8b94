"""Computes the fingerprints of bodies: digest, SimHash, MinHash bands, char bag."""
