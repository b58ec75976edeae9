"""Its main checks the device before it compiles anything."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[1])
def copy(rows=32, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


if __name__ == "__main__":
    assert torch.cuda.get_device_capability() >= (10, 0), "only compute capability 10.0 and later"
    copy()
