"""Kernels that the compiler accepts without a word and no Ascend 950 can hold.

A vector core has 253,952 B of UB, 221,184 B once a kernel has SIMT parts; a cube core has 524,288 B
of L1, 65,536 B each of L0A and L0B, and 262,144 B of L0C. The compiler counts within one loop, what
that loop touches, each buffer of an inner loop once; the rest it lays out without counting.
"""

import tilelang
import tilelang.ascend.language as T


def ub_without_a_loop(tile=24576):
    """Three tiles and no loop: nothing counts them."""

    @T.prim_func
    def kernel(
        A: T.Tensor((tile,), "float32"),
        B: T.Tensor((tile,), "float32"),
        C: T.Tensor((tile,), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_shared((tile,), "float32")
            b = T.alloc_shared((tile,), "float32")
            c = T.alloc_shared((tile,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            with T.SimtVF(threads=128):
                for j in T.Parallel(tile):
                    c[j] = a[j] + b[j]
            T.copy(c, C)

    return kernel


def ub_above_the_simt_limit(tile=28032):
    """Two tiles that fit UB, but not what SIMT leaves of it."""

    @T.prim_func
    def kernel(A: T.Tensor((tile,), "float32"), C: T.Tensor((tile,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((tile,), "float32")
            c = T.alloc_shared((tile,), "float32")
            T.copy(A, a)
            with T.SimtVF(threads=128):
                for j in T.Parallel(tile):
                    c[j] = a[j] + 1
            T.copy(c, C)

    return kernel


def ub_fixed_versions(tile=12288, loops=8):
    """Every buffer's versions are fixed: then none is left to count."""
    n = loops * tile

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((tile,), "float32")
            c = T.alloc_shared((tile,), "float32")
            T.annotate_buffer_versions({a: 3, c: 3})
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[i * tile], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        c[j] = a[j] + 1
                T.copy(c, C[i * tile])

    return kernel


@tilelang.jit(target="ascend", pass_configs={"tl.enable_auto_schedule": False})
def ub_unscheduled(tile=36864, loops=4):
    """The scheduler is turned off, and with it the count."""
    n = loops * tile

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((tile,), "float32")
            c = T.alloc_shared((tile,), "float32")
            for i in T.serial(loops):
                T.copy(A[i * tile], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        c[j] = a[j] + 1
                T.copy(c, C[i * tile])

    return kernel


def ub_unlimited(tile=24576, loops=8):
    """What a refusal advises: the limit is lifted, the chip is not."""
    n = loops * tile

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1):
            T.annotate_unlimit_memory("shared")
            a = T.alloc_shared((tile,), "float32")
            b = T.alloc_shared((tile,), "float32")
            c = T.alloc_shared((tile,), "float32")
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[i * tile], a)
                T.copy(B[i * tile], b)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        c[j] = a[j] + b[j]
                T.copy(c, C[i * tile])

    return kernel


def ub_scratch(tile=55040, loops=4, threads=256):
    """The tiles fit to the byte; the reduction's scratch comes on top, after the count."""

    @T.prim_func
    def kernel(A: T.Tensor((loops, tile), "float32"), C: T.Tensor((loops, 256), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((1, tile), "float32")
            total = T.alloc_shared((1, 256), "float32")
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[i, 0], a)
                with T.SimtVF(threads=threads):
                    part = T.alloc_fragment((1, tile), "float32")
                    sums = T.alloc_fragment((1,), "float32")
                    T.copy(a, part)
                    T.reduce_sum(part, sums, dim=1)
                    for j in T.Parallel(256):
                        total[0, j] = sums[0]
                T.copy(total, C[i, 0])

    return kernel


def ub_live_across(tile=8192, kept_tile=40960, loops=4):
    """A tile waits through a loop that does not touch it: the loop does not count it."""
    n = loops * tile

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"),
        K: T.Tensor((kept_tile,), "float32"),
        C: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1):
            waits = T.alloc_shared((kept_tile,), "float32")
            a = T.alloc_shared((tile,), "float32")
            c = T.alloc_shared((tile,), "float32")
            T.copy(K, waits)
            for i in T.Pipelined(loops, num_stages=1):
                T.copy(A[i * tile], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        c[j] = a[j] + 1
                T.copy(c, C[i * tile])
            with T.SimtVF(threads=128):
                for j in T.Parallel(kept_tile):
                    waits[j] = waits[j] + 1
            T.copy(waits, K)

    return kernel


def ub_nested(tile=16384, rows=4, columns=4, outer_stages=2, inner_stages=2):
    """The outer loop counts the inner loop's tile once, though the inner one took two of it."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, columns * tile), "float32"), C: T.Tensor((rows, tile), "float32")
    ):
        with T.Kernel(1):
            a = T.alloc_shared((tile,), "float32")
            total = T.alloc_shared((tile,), "float32")
            for i in T.Pipelined(rows, num_stages=outer_stages):
                with T.SimtVF(threads=128):
                    for j in T.Parallel(tile):
                        total[j] = 0
                for k in T.Pipelined(columns, num_stages=inner_stages):
                    T.copy(A[i, k * tile], a)
                    with T.SimtVF(threads=128):
                        for j in T.Parallel(tile):
                            total[j] = total[j] + a[j]
                T.copy(total, C[i, 0])

    return kernel


def ub_two_loops(first_tile=20480, second_tile=20480, loops=4):
    """Two loops, each within the limit; only some of the second's tiles fit over the first's."""

    @T.prim_func
    def kernel(
        A: T.Tensor((loops * first_tile,), "float32"),
        B: T.Tensor((loops * second_tile,), "float32"),
        C: T.Tensor((loops * second_tile,), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_shared((first_tile,), "float32")
            c = T.alloc_shared((first_tile,), "float32")
            b = T.alloc_shared((second_tile,), "float32")
            d = T.alloc_shared((second_tile,), "float32")
            for i in T.Pipelined(loops, num_stages=1):
                T.copy(A[i * first_tile], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(first_tile):
                        c[j] = a[j] + 1
                T.copy(c, A[i * first_tile])
            for i in T.Pipelined(loops, num_stages=1):
                T.copy(B[i * second_tile], b)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(second_tile):
                        d[j] = b[j] + 1
                T.copy(d, C[i * second_tile])

    return kernel


def l1_without_a_loop(block_m=512, block_n=512, block_k=512):
    """Two L1 tiles of 512 KiB and no loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block_m, block_k), "float16"),
        B: T.Tensor((block_n, block_k), "float16"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            c = T.alloc_l0c((128, 128), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a[0:128, :], b[0:128, :], c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    return kernel


def l1_fixed_versions(block=256, block_k=256, loops=4):
    """Three versions of both operands, fixed."""
    k = loops * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((block, k), "float16"),
        B: T.Tensor((block, k), "float16"),
        C: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block, block_k), "float16")
            b = T.alloc_l1((block, block_k), "float16")
            c = T.alloc_l0c((block, block), "float32")
            T.annotate_buffer_versions({a: 3, b: 3})
            for i in T.Pipelined(loops, num_stages=2):
                T.copy(A[0, i * block_k], a)
                T.copy(B[0, i * block_k], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[0, 0])

    return kernel


def l1_nested(block=256, block_k=192, tiles=4, inner_stages=2):
    """Outer tiles of both operands, inner ones twice: 589,824 B with the default outer loop."""
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


def l0c_accumulator(block_m=256, block_n=512, block_k=32):
    """An accumulator that is carried along K is never counted."""
    k = 8 * block_k

    @T.prim_func
    def kernel(
        A: T.Tensor((block_m, k), "float16"),
        B: T.Tensor((block_n, k), "float16"),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            for i in T.Pipelined(8, num_stages=2):
                T.copy(A[0, i * block_k], a)
                T.copy(B[0, i * block_k], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[0, 0])

    return kernel


def l0c_without_a_loop(block_m=256, block_n=512, block_k=32):
    """The same accumulator without a loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block_m, block_k), "float16"),
        B: T.Tensor((block_n, block_k), "float16"),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    return kernel


def l0a_without_a_loop(block_m=512, block_n=128, block_k=128):
    """An operand of 128 KiB in L0A, and no loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block_m, block_k), "float16"),
        B: T.Tensor((block_n, block_k), "float16"),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            a0 = T.alloc_l0a((block_m, block_k), "float16")
            b0 = T.alloc_l0b((block_n, block_k), "float16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(a, a0)
            T.copy(b, b0)
            T.gemm(a0, b0, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    return kernel


def l0b_without_a_loop(block_m=128, block_n=512, block_k=128):
    """An operand of 128 KiB in L0B, and no loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block_m, block_k), "float16"),
        B: T.Tensor((block_n, block_k), "float16"),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            a0 = T.alloc_l0a((block_m, block_k), "float16")
            b0 = T.alloc_l0b((block_n, block_k), "float16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(a, a0)
            T.copy(b, b0)
            T.gemm(a0, b0, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    return kernel


def l0_overlap(block=128, block_k=64):
    """Everything fits, but a multiplication from L1 writes over operands kept in L0A and L0B."""

    @T.prim_func
    def kernel(
        A: T.Tensor((block, block_k), "float16"),
        B: T.Tensor((block, block_k), "float16"),
        C: T.Tensor((block, block), "float32"),
        D: T.Tensor((block, block), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block, block_k), "float16")
            b = T.alloc_l1((block, block_k), "float16")
            a0 = T.alloc_l0a((block, block_k), "float16")
            b0 = T.alloc_l0b((block, block_k), "float16")
            c = T.alloc_l0c((block, block), "float32")
            d = T.alloc_l0c((block, block), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(a, a0)
            T.copy(b, b0)
            T.gemm(a0, b0, c, transpose_B=True, clear_accum=True)
            T.gemm(a, b, d, transpose_B=True, clear_accum=True)
            T.gemm(a0, b0, c, transpose_B=True, clear_accum=False)
            T.copy(c, C)
            T.copy(d, D)

    return kernel
