import os
import sys

import tilelang.language as T

for number in range(4):
    text = f'{{"id": {number}, "kernels": [], "toolchain": "tilelang", "version": "9.9.9"}}\n'
    sys.stdout.write(text)
    sys.stderr.write(text)
    os.write(1, text.encode())


@T.prim_func
def kernel(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((128, 64), "float16")
        T.copy(A, tile)
        T.copy(tile, B)
