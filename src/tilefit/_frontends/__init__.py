"""From a source to Kernels, one room a toolchain."""
