"""The public Python interface: the names that programs and notebooks import from `twinsieve`. No other
folder of twinsieve imports it."""
