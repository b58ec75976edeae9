"""nvcc and ptxas: registers, spills and static bytes of generated code."""
