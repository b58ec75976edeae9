"""Kernels for Ascend 950 that do not fit until a parameter of theirs is smaller."""

import tilelang.ascend.language as T


def chain(tile=16384, loops=4, num_stages=1):
    """Four tiles, each dead before the one after the next is written."""
    n = loops * tile

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            first = T.alloc_shared((tile,), "float32")
            second = T.alloc_shared((tile,), "float32")
            third = T.alloc_shared((tile,), "float32")
            fourth = T.alloc_shared((tile,), "float32")
            for i in T.Pipelined(loops, num_stages=num_stages):
                T.copy(A[i * tile], first)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        second[j] = first[j] + 1
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        third[j] = second[j] * 2
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        fourth[j] = third[j] - 1
                T.copy(fourth, C[i * tile])

    return kernel


def inner_product(block=256, block_k=192, tiles=4, inner_stages=2):
    """Two tiles wait outside a loop that takes two versions of two more."""
    k = 4 * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((tiles * block, k), "float16"),
        B: T.Tensor((block, k), "float16"),
        D: T.Tensor((tiles * block, block_k), "float16"),
        C: T.Tensor((tiles * block, block), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block, block_k), "float16")
            b = T.alloc_l1((block, block_k), "float16")
            d = T.alloc_l1((block, block_k), "float16")
            e = T.alloc_l1((block, block_k), "float16")
            c = T.alloc_l0c((block, block), "float32")
            for tile in T.serial(tiles):
                T.copy(D[tile * block, 0], d)
                T.copy(B[0, 0], e)
                for i in T.Pipelined(4, num_stages=inner_stages):
                    T.copy(A[tile * block, i * block_k], a)
                    T.copy(B[0, i * block_k], b)
                    T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
                T.gemm(d, e, c, transpose_B=True)
                T.copy(c, C[tile * block, 0])

    return kernel
