"""Compiles one kernel that its own check refuses, one that is fine, and then exits with 3."""

import sys

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def copy(rows, columns=64):
    assert rows % 16 == 0, "rows must be a multiple of 16"

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


if __name__ == "__main__":
    for rows in (10, 32):
        try:
            copy(rows)
        except AssertionError as error:
            print(error)
    sys.exit(3)
