"""Kernels that lower without a message and cannot be launched, or prove nothing."""

import tilelang
import tilelang.language as T


@tilelang.jit
def many_threads(M=4096, N=4096, K=4096, block=128, block_K=64, num_stages=3, threads=1024):
    """1024 threads are written; warp specialisation adds 128 on sm_90 and later."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block, block_K), "float16")
            B_s = T.alloc_shared((block_K, block), "float16")
            C_l = T.alloc_fragment((block, block), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block, bx * block])

    return gemm


@tilelang.jit
def cluster(M=4096, N=4096, size=32):
    """A cluster of `size` blocks in x."""

    @T.prim_func
    def copy(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(N // 128, M // 128, threads=128, cluster_dims=(size, 1, 1)) as (bx, by):
            tile = T.alloc_shared((128, 128), "float16")
            T.copy(A[by * 128, bx * 128], tile)
            T.copy(tile, B[by * 128, bx * 128])

    return copy


@tilelang.jit
def tall_grid(blocks_y=70000):
    """A grid of `blocks_y` rows."""

    @T.prim_func
    def copy(
        A: T.Tensor((blocks_y * 16, 128), "float16"), B: T.Tensor((blocks_y * 16, 128), "float16")
    ):
        with T.Kernel(1, blocks_y, threads=128) as (bx, by):
            tile = T.alloc_shared((16, 128), "float16")
            T.copy(A[by * 16, bx * 128], tile)
            T.copy(tile, B[by * 16, bx * 128])

    return copy


@tilelang.jit
def no_iterations(M=4096, N=4096, K=128, block=128, block_K=256, num_stages=3):
    """K // block_K is 0: the loop never runs and its buffers vanish in lowering."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            A_s = T.alloc_shared((block, block_K), "float16")
            B_s = T.alloc_shared((block_K, block), "float16")
            C_l = T.alloc_fragment((block, block), "float32")
            T.clear(C_l)
            for k in T.Pipelined(K // block_K, num_stages=num_stages):
                T.copy(A[by * block, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block, bx * block])

    return gemm


@tilelang.jit
def dynamic_rows(block=128, block_K=64, num_stages=3, N=4096, K=4096):
    """The number of rows is known only at run time."""
    M = T.dynamic("m")

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_s = T.alloc_shared((block, block_K), "float16")
            B_s = T.alloc_shared((block_K, block), "float16")
            C_l = T.alloc_fragment((block, block), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block, bx * block])

    return gemm


@tilelang.jit
def no_pipeline(M=4096, N=4096, num_stages=2):
    """A stage parameter that no loop uses."""

    @T.prim_func
    def copy(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(N // 128, M // 128, threads=128) as (bx, by):
            tile = T.alloc_shared((128, 128), "float16")
            T.copy(A[by * 128, bx * 128], tile)
            T.copy(tile, B[by * 128, bx * 128])

    return copy
