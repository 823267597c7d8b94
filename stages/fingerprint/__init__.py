"""From bodies to fingerprints: digest, SimHash, MinHash bands, char bag."""
