"""The ways in which people write a TileLang kernel."""

import tilelang
import tilelang.language as T


@tilelang.jit
def eager(A, B, block_M: int = 128, block_N: int = 128, block_K: int = 64, num_stages: int = 3):
    """Eager style: sizes come as T.const."""
    M, N, K = T.const("M N K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float16)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_s = T.alloc_shared((block_M, block_K), T.float16)
        B_s = T.alloc_shared((block_K, block_N), T.float16)
        C_l = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_l)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], A_s)
            T.copy(B[k * block_K, bx * block_N], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * block_M, bx * block_N])
    return C


@T.prim_func
def ready(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
    """A PrimFunc at module level: nothing to set."""
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((128, 64), "float16")
        T.copy(A, tile)
        T.copy(tile, B)


def plain(rows, columns=64, dtype="float16"):
    """A plain function that returns a PrimFunc; `rows` has to be given."""

    @T.prim_func
    def copy(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), dtype)
            T.copy(A, tile)
            T.copy(tile, B)

    return copy


@tilelang.jit
def dtype_object(rows=128, columns=64, dtype=T.float16):
    """A dtype parameter whose default is a dtype object."""

    @T.prim_func
    def copy(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), dtype)
            T.copy(A, tile)
            T.copy(tile, B)

    return copy


def helper(x):
    """No kernel: must not be listed."""
    return x + 1
