"""What a kernel needs of each memory, and our own packers beside the compiler's."""
