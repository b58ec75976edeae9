"""Kernels whose authors chose pass configs of their own."""

import tilelang
import tilelang.language as T


def _gemm_with_epilogue(M, N, K, rows, columns, depth, num_stages):
    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        R: T.Tensor((M, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            r = T.alloc_shared((rows, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(R[by * rows, bx * columns], r)
            for i, j in T.Parallel(rows, columns):
                acc[i, j] += r[i, j]
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def one_role(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """No warp specialisation: the ordinary pipeline on every architecture."""
    return _gemm_with_epilogue(M, N, K, rows, columns, depth, num_stages)


@tilelang.jit(pass_configs={"tl.disable_tma_lower": True})
def no_tma(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """No TMA: without it there is no producer to specialise on."""
    return _gemm_with_epilogue(M, N, K, rows, columns, depth, num_stages)


@tilelang.jit(pass_configs={"tl.disable_shared_memory_reuse": True})
def no_reuse(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """Every buffer has bytes of its own."""
    return _gemm_with_epilogue(M, N, K, rows, columns, depth, num_stages)


@tilelang.jit(
    pass_configs={
        tilelang.PassConfigKey.TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE: True,
        tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
    }
)
def aggressive(heads=4, length=256, key=64, value=64, chunk=64, num_stages=2):
    """Buffers of one iteration may share bytes although the loop goes on."""

    @T.prim_func
    def scores(
        Q: T.Tensor((heads, length, key), "float16"),
        K: T.Tensor((heads, length, key), "float16"),
        V: T.Tensor((heads, length, value), "float16"),
        Out: T.Tensor((heads, length, value), "float16"),
    ):
        with T.Kernel(heads, threads=128) as head:
            q = T.alloc_shared((chunk, key), "float16")
            k = T.alloc_shared((chunk, key), "float16")
            v = T.alloc_shared((chunk, value), "float16")
            score = T.alloc_shared((chunk, chunk), "float16")
            o = T.alloc_shared((chunk, value), "float16")
            score_sum = T.alloc_fragment((chunk, chunk), "float32")
            out = T.alloc_fragment((chunk, value), "float32")
            for t in T.serial(length // chunk):
                T.copy(Q[head, t * chunk, 0], q)
                T.copy(K[head, t * chunk, 0], k)
                T.clear(score_sum)
                T.gemm(q, k, score_sum, transpose_B=True)
                T.copy(score_sum, score)
                T.copy(V[head, t * chunk, 0], v)
                T.clear(out)
                T.gemm(score, v, out)
                T.copy(out, o)
                T.copy(o, Out[head, t * chunk, 0])

    return scores
