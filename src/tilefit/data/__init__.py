"""Data shipped with tilefit."""
