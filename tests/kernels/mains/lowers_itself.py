"""A script that lowers a kernel itself, for a target that it names."""

import tilelang
import tilelang.language as T
from tilelang import tvm


def copy(width):
    @T.prim_func
    def kernel(A: T.Tensor((64, width), "float32"), B: T.Tensor((64, width), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, width), "float32")
            T.copy(A, tile)
            T.copy(tile, B)

    return kernel


if __name__ == "__main__":
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    with target:
        print(tilelang.lower(copy(80), target=target).kernel_source)
