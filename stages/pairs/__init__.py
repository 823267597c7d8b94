"""All pairs of a column of fingerprints within k bits, by the published schemes; one file a scheme."""
