"""What a frontend hands over, and the smallest values: a Kernel, memories, dtypes, scope tables."""
