"""The tutorial's arithmetic: bytes of a tile, stages of a GEMM against a budget."""
