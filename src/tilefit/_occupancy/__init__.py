"""Blocks per core: one rule for numbers and arrays."""
