"""Kernels that are each meant for a device of their own."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[1], target="hip")
def for_amd(rows=32, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.jit(out_idx=[1], target={"kind": "cuda", "arch": "sm_120a"})
def for_sm_120(rows=32, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.jit
def says_so(rows=32, columns=64):
    if torch.cuda.get_device_capability()[0] != 10:
        raise RuntimeError("this kernel requires compute capability 10.0")

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.jit
def tensor_memory(size=128):
    @T.prim_func
    def main(
        A: T.Tensor((size, size), "bfloat16"),
        B: T.Tensor((size, size), "bfloat16"),
        C: T.Tensor((size, size), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((size, size), "bfloat16")
            B_s = T.alloc_shared((size, size), "bfloat16")
            C_t = T.alloc_tmem((size, size), "float32")
            bar = T.alloc_barrier(1)
            C_l = T.alloc_fragment((size, size), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.tcgen05_gemm(A_s, B_s, C_t, mbar=bar, clear_accum=True)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(C_t, C_l)
            T.copy(C_l, C)

    return main


if __name__ == "__main__":
    for_amd()
    for_sm_120()
    tensor_memory()
    says_so()
