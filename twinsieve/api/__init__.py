"""The public face: what programs and notebooks import from `twinsieve`. Nothing else in twinsieve imports
it."""
