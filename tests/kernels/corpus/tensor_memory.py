"""Accumulators in Blackwell's tensor memory: sm_100 only."""

import tilelang
import tilelang.language as T


@tilelang.jit
def accumulator(M=256, N=256, K=256, rows=128, columns=128, depth=64, num_stages=2):
    """One accumulator; the result leaves through shared memory."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_tmem((rows, columns), "float32")
            out = T.alloc_fragment((rows, columns), "float32")
            done = T.alloc_barrier(1)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[bx * columns, k * depth], b)
                T.gemm(a, b, acc, transpose_B=True, clear_accum=k == 0, mbar=done)
            T.copy(acc, out)
            T.copy(out, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def two_accumulators(M=256, N=256, K=256, rows=128, columns=96, depth=64, num_stages=2):
    """Two products over one operand: two allocations, each rounded up to a power of two."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        D: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
        E: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, columns), M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((columns, depth), "float16")
            d = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            left = T.alloc_tmem((rows, columns), "float32")
            right = T.alloc_tmem((rows, columns), "float32")
            out = T.alloc_fragment((rows, columns), "float32")
            left_done = T.alloc_barrier(1)
            right_done = T.alloc_barrier(1)
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[bx * columns, k * depth], b)
                T.copy(D[bx * columns, k * depth], d)
                T.gemm(a, b, left, transpose_B=True, clear_accum=k == 0, mbar=left_done)
                T.gemm(a, d, right, transpose_B=True, clear_accum=k == 0, mbar=right_done)
            T.copy(left, out)
            T.copy(out, c)
            T.copy(c, C[by * rows, bx * columns])
            T.copy(right, out)
            T.copy(out, c)
            T.copy(c, E[by * rows, bx * columns])

    return gemm
