"""Limits of chips with the source of every number, their names, and what is attached."""
