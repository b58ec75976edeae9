import os
import time

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel():
    copy = os.fork() == 0
    if not copy:
        time.sleep(1)  # the copy comes back first
    rows = 64 if copy else 128

    @T.prim_func
    def f(A: T.Tensor((rows, 64), "float16"), B: T.Tensor((rows, 64), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, 64), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return f
