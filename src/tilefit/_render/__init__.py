"""Finished values in, text out: a module a format."""
