"""Kernels whose memory TileLang lays out, and of which there is no machine code."""

import tilelang
import tilelang.language as T


@tilelang.jit
def rows_of_open_length(block=64, num_stages=2):
    """On sm_80 generating its code fails: the loop runs to a size that is open."""

    @T.prim_func
    def main(
        A: T.Tensor((1024, 64), "float16"),
        B: T.Tensor((1024, 64), "float16"),
        n: T.int32,
        C: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as _:
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((block, 64), "float16")
            v = T.alloc_shared((block, 64), "float16")
            s = T.alloc_fragment((64, block), "float32")
            p = T.alloc_fragment((64, block), "float16")
            out = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0, 0], q)
            T.clear(out)
            for step in T.Pipelined(T.ceildiv(n, block), num_stages=num_stages):
                T.copy(A[step * block, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(s, p)
                T.copy(B[step * block, 0], v)
                T.gemm(p, v, out, policy=T.GemmWarpPolicy.FullRow)
            T.copy(out, C)

    return main


@tilelang.jit(out_idx=[-1])
def two_accumulators(block_N=128, num_stages=2):
    """On sm_100a ptxas refuses it: two fp32 tiles of 128x128 take more registers than 255."""

    @T.prim_func
    def main(
        A: T.Tensor((1024, 1024), "float16"),
        B: T.Tensor((1024, 1024), "float16"),
        C: T.Tensor((1024, 1024), "float16"),
    ):
        with T.Kernel(1024 // block_N, 1024 // 128, threads=128) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((block_N, 64), "float16")
            first = T.alloc_tmem((128, block_N), "float32")
            second = T.alloc_tmem((128, block_N), "float32")
            x = T.alloc_fragment((128, block_N), "float32")
            y = T.alloc_fragment((128, block_N), "float32")
            done = T.alloc_barrier(1)
            for k in T.Pipelined(1024 // 64, num_stages=num_stages):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[bx * block_N, k * 64], b)
                T.gemm(a, b, first, transpose_B=True, clear_accum=k == 0, mbar=done)
                T.gemm(a, b, second, transpose_B=True, clear_accum=k == 0, mbar=done)
            T.copy(first, x)
            T.copy(second, y)
            for i, j in T.Parallel(128, block_N):
                x[i, j] += y[i, j]
            T.copy(x, C[by * 128, bx * block_N])

    return main
