import sys

import tilelang.language as T

line = "x" * 1023 + "\n"
for _ in range(2**20):
    sys.stdout.write(line)


@T.prim_func
def kernel(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((128, 64), "float16")
        T.copy(A, tile)
        T.copy(tile, B)
