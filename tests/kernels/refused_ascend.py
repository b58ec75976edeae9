"""Kernels that TileLang's Ascend dialect refuses for want of memory, each at a size to choose."""

import tilelang.ascend.language as T


def two_vectors(extent, loops=8):
    """B = A + 1, with two tiles of `extent` floats in UB, in a loop with SIMT."""

    @T.prim_func
    def add_one(
        A: T.Tensor((loops * extent,), "float32"), B: T.Tensor((loops * extent,), "float32")
    ):
        with T.Kernel(1):
            x = T.alloc_shared((extent,), "float32")
            y = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[i * extent], x)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        y[j] = x[j] + 1
                T.copy(y, B[i * extent])

    return add_one


def product(block_m, block_n, block_k):
    """C = A @ B.T over two by two tiles, with operands in L1."""
    m, n, k = 2 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((n, k), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(2) as core:
            A_l1 = T.alloc_l1((block_m, block_k), "float16")
            B_l1 = T.alloc_l1((block_n, block_k), "float16")
            C_l0 = T.alloc_l0c((block_m, block_n), "float32")
            C_ub = T.alloc_shared((block_m // 2, block_n), "float32")
            for tile in T.Persistent([4], 2, core):
                row = tile // 2 * block_m
                col = tile % 2 * block_n
                for i in T.Pipelined(k // block_k, num_stages=2):
                    T.copy(A[row, i * block_k], A_l1)
                    T.copy(B[col, i * block_k], B_l1)
                    T.gemm(A_l1, B_l1, C_l0, transpose_B=True, clear_accum=i == 0)
                T.dual_copy(C_l0, C_ub)
                T.dual_copy(C_ub, C[row : row + block_m, col : col + block_n])

    return multiply
