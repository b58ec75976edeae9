"""A kernel's needs held against a device's limits."""
