"""Compiles a kernel and never ends, whatever it is told."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def copy(rows, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


if __name__ == "__main__":
    copy(32)
    while True:
        try:
            sum(range(1000))
        except Exception:
            print("never mind")
