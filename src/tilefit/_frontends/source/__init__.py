"""Kernels from Python's `ast` alone: nothing is executed."""
