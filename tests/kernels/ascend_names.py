"""Ascend kernels in which names, branches or open sizes make it hard to tell buffers apart."""

import tilelang
import tilelang.ascend.language as T


def namesake(extent=1024):
    """Two buffers of one name, and only the second is used."""

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "float32"), C: T.Tensor((extent,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((77,), "float32")
            a = T.alloc_shared((extent,), "float32")
            T.copy(A, a)
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    a[j] = a[j] + 1
            T.copy(a, C)

    return kernel


def called_workspace(rows=4, columns=512, loops=4):
    """The author's tile has the name of the compiler's scratch."""

    @T.prim_func
    def kernel(A: T.Tensor((loops * rows, columns), "float32"), C: T.Tensor((16,), "float32")):
        with T.Kernel(1):
            workspace = T.alloc_shared((rows, columns), "float32")
            most = T.alloc_shared((rows,), "float32")
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[i * rows, 0], workspace)
                with T.SimtVF(threads=128):
                    part = T.alloc_fragment((rows, columns), "float32")
                    found = T.alloc_fragment((rows,), "float32")
                    T.copy(workspace, part)
                    T.reduce_max(part, found, dim=1)
                    T.copy(found, most)
                T.copy(most, C[i * rows])

    return kernel


def branches(extent=1024):
    """A tile for the first block, a larger one for the others."""

    @T.prim_func
    def kernel(A: T.Tensor((3 * extent,), "float32"), C: T.Tensor((3 * extent,), "float32")):
        with T.Kernel(4) as core:
            small = T.alloc_shared((extent,), "float32")
            large = T.alloc_shared((3 * extent,), "float32")
            if core == 0:
                T.copy(A[0:extent], small)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        small[j] = small[j] + 1
                T.copy(small, C[0:extent])
            else:
                T.copy(A, large)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(3 * extent):
                        large[j] = large[j] + 1
                T.copy(large, C)

    return kernel


@tilelang.jit(target="ascend", pass_configs={"tl.enable_auto_schedule": False})
def before_and_after(block=128, block_k=64):
    """L0A and L0B hold operands between two multiplications from L1, not across one."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block, block_k), "float16"),
        B: T.Tensor((block, block_k), "float16"),
        C: T.Tensor((block, block), "float32"),
        D: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1), T.Cube():
            a = T.alloc_l1((block, block_k), "float16")
            b = T.alloc_l1((block, block_k), "float16")
            a0 = T.alloc_l0a((block, block_k), "float16")
            b0 = T.alloc_l0b((block, block_k), "float16")
            c = T.alloc_l0c((block, block), "float32")
            d = T.alloc_l0c((block, block), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, d, transpose_B=True, clear_accum=True)
            T.copy(a, a0)
            T.copy(b, b0)
            T.gemm(a0, b0, c, transpose_B=True, clear_accum=True)
            T.gemm(a, b, d, transpose_B=True, clear_accum=False)
            T.copy(c, C)
            T.copy(d, D)

    return kernel


def same_names(block=128, block_k=64):
    """Two launches with the same names; in the second L0A and L0B are done before the GEMM."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block, block_k), "float16"),
        B: T.Tensor((block, block_k), "float16"),
        C: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block, block_k), "float16")
            b = T.alloc_l1((block, block_k), "float16")
            c = T.alloc_l0c((block, block), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)
        with T.Kernel(1):
            a = T.alloc_l1((block, block_k), "float16")
            b = T.alloc_l1((block, block_k), "float16")
            a0 = T.alloc_l0a((block, block_k), "float16")
            b0 = T.alloc_l0b((block, block_k), "float16")
            c = T.alloc_l0c((block, block), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(a, a0)
            T.copy(b, b0)
            T.gemm(a0, b0, c, transpose_B=True, clear_accum=True)
            T.gemm(a, b, c, transpose_B=True, clear_accum=False)
            T.copy(c, C)

    return kernel


def odd_scales(block_m=40, block_n=24, block_k=192, loops=4):
    """Block scales whose rows no fractal divides."""
    k = loops * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((block_m, k), "float4_e2m1fn"),
        B: T.Tensor((block_n, k), "float4_e2m1fn"),
        SA: T.Tensor((block_m, k // 64), "uint16"),
        SB: T.Tensor((block_n, k // 64), "uint16"),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float4_e2m1fn")
            b = T.alloc_l1((block_n, block_k), "float4_e2m1fn")
            sa = T.alloc_l1((block_m, block_k // 64), "uint16")
            sb = T.alloc_l1((block_n, block_k // 64), "uint16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[0, i * block_k], a)
                T.copy(B[0, i * block_k], b)
                T.copy(SA[0, i * block_k // 64], sa)
                T.copy(SB[0, i * block_k // 64], sb)
                T.gemm_blockscaled(a, b, c, sa, sb, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C)

    return kernel


def open_tile():
    """A row that the caller sizes, and a tile beside it."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 64), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            rows = T.alloc_shared((n, 64), "float32")
            first = T.alloc_shared((64,), "float32")
            T.copy(A, rows)
            with T.SimtVF(threads=64):
                for j in T.Parallel(64):
                    first[j] = rows[0, j]
            T.copy(first, C)

    return kernel


def open_row():
    """Nothing but a row that the caller sizes."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            row = T.alloc_shared((n,), "float32")
            T.copy(A, row)
            with T.SimtVF(threads=128):
                for j in T.Parallel(n):
                    row[j] = row[j] + 1
            T.copy(row, A)

    return kernel


def one_iteration(tile=256, stages=4):
    """A loop of one iteration, of which lowering leaves no loop: its tiles share as without one."""

    @T.prim_func
    def kernel(
        A: T.Tensor((tile,), "float32"),
        C: T.Tensor((tile,), "float32"),
    ):
        with T.Kernel(1):
            first = T.alloc_shared((tile,), "float32")
            second = T.alloc_shared((tile,), "float32")
            third = T.alloc_shared((tile,), "float32")
            fourth = T.alloc_shared((tile,), "float32")
            for i in T.Pipelined(1, num_stages=stages):
                T.copy(A[i * tile], first)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        second[j] = first[j] + 1
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        third[j] = second[j] + 1
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        fourth[j] = third[j] + 1
                T.copy(fourth, C[i * tile])

    return kernel
