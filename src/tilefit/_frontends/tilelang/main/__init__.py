"""A file's own main, run with compilation intercepted."""
