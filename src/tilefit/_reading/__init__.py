"""User files: the child process that executes them, and the store of what was read."""
