"""Barriers of the author's own: sm_90 and later only."""

import tilelang
import tilelang.language as T


@tilelang.jit
def two_roles(M=256, N=256, K=256, rows=64, columns=64, depth=32, slots=2):
    """One warp group copies, the other multiplies; the ring of slots is written out by hand."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=256) as (bx, by):
            a = T.alloc_shared((slots, rows, depth), "float16")
            b = T.alloc_shared((slots, depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            full = T.alloc_barrier([128] * slots)
            free = T.alloc_barrier([128] * slots)
            with T.ws(0):
                for k in T.serial(K // depth):
                    T.barrier_wait(free[k % slots], (k // slots + 1) % 2)
                    T.copy(
                        A[by * rows : (by + 1) * rows, k * depth : (k + 1) * depth],
                        a[k % slots, :, :],
                    )
                    T.copy(
                        B[k * depth : (k + 1) * depth, bx * columns : (bx + 1) * columns],
                        b[k % slots, :, :],
                    )
                    T.barrier_arrive(full[k % slots])
            with T.ws(1):
                T.clear(acc)
                for k in T.serial(K // depth):
                    T.barrier_wait(full[k % slots], k // slots % 2)
                    T.gemm(a[k % slots, :, :], b[k % slots, :, :], acc)
                    T.barrier_arrive(free[k % slots])
                T.copy(acc, c)
                T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def arrives_in_loop(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """A barrier that the pipelined loop arrives on gets a copy a stage, too."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            done = T.alloc_barrier(128)
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
                T.barrier_arrive(done)
                T.barrier_wait(done, k % 2)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm
