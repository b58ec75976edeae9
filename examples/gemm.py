"""A tiled GEMM, C = A @ B: the kernel that `tilefit plan` is shown on.

Nothing is compiled when this file is imported. Ask whether it fits, and how many stages do:

    tilefit plan examples/gemm.py::matmul -d h100 --set num_stages=3
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def matmul(
    M=4096,
    N=4096,
    K=4096,
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=3,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return gemm
