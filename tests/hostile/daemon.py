import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1)
    os._exit(0)

import tilelang.language as T


@T.prim_func
def kernel(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((128, 64), "float16")
        T.copy(A, tile)
        T.copy(tile, B)
