"""Cube and vector in one kernel: an AIC with its two AIVs."""

import tilelang
import tilelang.ascend.language as T


def product_relu(block_m=128, block_n=128, block_k=64, stages=2, outer=0, dtype="float16"):
    """C = relu(A @ B.T): the accumulator goes to UB, half of its rows to each AIV."""
    m, n, k = 4 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(2) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            share = T.alloc_shared((block_m // 2, block_n), "float32")
            for tile in T.Persistent([8], 2, core, num_stages=outer):
                row = tile // 2 * block_m
                col = tile % 2 * block_n
                for i in T.Pipelined(k // block_k, num_stages=stages):
                    T.copy(A[row, i * block_k], a)
                    T.copy(B[col, i * block_k], b)
                    T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
                T.dual_copy(c, share)
                with T.SimtVF(threads=128):
                    for r, j in T.Parallel(block_m // 2, block_n):
                        share[r, j] = T.max(share[r, j], 0)
                T.dual_copy(share, C[row : row + block_m, col : col + block_n])

    return kernel


def product_by_columns(block_m=64, block_n=128, block_k=64, stages=2):
    """The same with half of the columns for each AIV, converted to bfloat16."""
    m, n, k = 4 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), "bfloat16"),
        B: T.Tensor((n, k), "bfloat16"),
        C: T.Tensor((m, n), "bfloat16"),
    ):
        with T.Kernel(2) as core:
            a = T.alloc_l1((block_m, block_k), "bfloat16")
            b = T.alloc_l1((block_n, block_k), "bfloat16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            share = T.alloc_shared((block_m, block_n // 2), "float32")
            out = T.alloc_shared((block_m, block_n // 2), "bfloat16")
            for tile in T.Persistent([8], 2, core):
                row = tile // 2 * block_m
                col = tile % 2 * block_n
                for i in T.Pipelined(k // block_k, num_stages=stages):
                    T.copy(A[row, i * block_k], a)
                    T.copy(B[col, i * block_k], b)
                    T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
                T.dual_copy(c, share)
                with T.SimtVF(threads=128):
                    for r, j in T.Parallel(block_m, block_n // 2):
                        out[r, j] = T.cast(share[r, j], "bfloat16")
                T.dual_copy(out, C[row : row + block_m, col : col + block_n])

    return kernel


def dequantised(block_m=64, block_n=64, block_k=128, stages=2, narrow="float8_e4m3fn"):
    """Narrow weights become float16 in UB and go on to L1, by way of scratch in UB."""
    m, n, k = block_m, block_n, 4 * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), "float16"),
        W: T.Tensor((n, k), narrow),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            weights = T.alloc_shared((block_n // 2, block_k), narrow)
            wide = T.alloc_shared((block_n // 2, block_k), "float16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[0, i * block_k], a)
                T.dual_copy(W[0:block_n, i * block_k : (i + 1) * block_k], weights)
                with T.SimtVF(threads=128):
                    for r, j in T.Parallel(block_n // 2, block_k):
                        wide[r, j] = T.cast(weights[r, j], "float16")
                T.dual_copy(wide, b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[0, 0])

    return kernel


def attention(rows=64, keys=128, width=64, loops=4, stages=2):
    """Scores, their softmax a tile at a time, and the weighted sum; two products a turn."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((rows, width), "float16"),
        K: T.Tensor((loops * keys, width), "float16"),
        V: T.Tensor((width, loops * keys), "float16"),
        C: T.Tensor((rows, width), "float32"),
    ):
        with T.Kernel(1):
            q = T.alloc_l1((rows, width), "float16")
            k = T.alloc_l1((keys, width), "float16")
            v = T.alloc_l1((width, keys), "float16")
            p = T.alloc_l1((rows, keys), "float16")
            s = T.alloc_l0c((rows, keys), "float32")
            o = T.alloc_l0c((rows, width), "float32")
            scores = T.alloc_shared((rows // 2, keys), "float32")
            weights = T.alloc_shared((rows // 2, keys), "float16")
            T.copy(Q, q)
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(K[i * keys, 0], k)
                T.copy(V[0, i * keys], v)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                T.dual_copy(s, scores)
                with T.SimtVF(threads=128):
                    for r, j in T.Parallel(rows // 2, keys):
                        weights[r, j] = T.cast(T.exp(scores[r, j]), "float16")
                T.dual_copy(weights, p)
                T.gemm(p, v, o, transpose_B=True, clear_accum=i == 0)
            T.copy(o, C[0, 0])

    return kernel


@tilelang.jit(target="ascend", pass_configs={"tl.enable_auto_schedule": False})
def by_cores(block=128):
    """The author says what runs on which core; nothing is scheduled."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block, block), "float16"),
        B: T.Tensor((block, block), "float16"),
        C: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block, block), "float16")
            b = T.alloc_l1((block, block), "float16")
            c = T.alloc_l0c((block, block), "float32")
            share = T.alloc_shared((block // 2, block), "float32")
            with T.Cube():
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=True)
                T.dual_copy(c, share)
            with T.Vector():
                with T.SimtVF(threads=128):
                    for i, j in T.Parallel(block // 2, block):
                        share[i, j] = share[i, j] + 1
                T.dual_copy(share, C)

    return kernel
