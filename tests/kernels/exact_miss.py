"""Kernels that miss one limit by one unit; with `over=0` the same kernel fits with nothing spare.

One unit is the smallest step of that limit: an element of a single buffer, 16 bytes of several
buffers, a thread, a block, a group of 32 TMEM columns.
"""

import tilelang
import tilelang.language as T


def _mirror(size, dtype, threads=128):
    """One buffer of `size` elements, filled from global memory and read back in reverse."""

    @T.prim_func
    def mirror(A: T.Tensor((size,), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((size,), dtype)
            for i in T.Parallel(size):
                tile[i] = A[i]
            for i in T.Parallel(size):
                B[i] = tile[size - 1 - i]

    return mirror


@tilelang.jit
def one_float(over=1, limit=232448):
    """h100, b200: a single buffer is not rounded up, so it misses by the 4 bytes of a float."""
    return _mirror(limit // 4 + over, "float32")


@tilelang.jit
def one_byte(over=1, limit=101376):
    """rtx-4090: the same with bytes."""
    return _mirror(limit + over, "int8")


@tilelang.jit
def sixteen_bytes(over=1, limit=166912, first=24576):
    """a100: two buffers that live together; the total is rounded up to 16 bytes."""
    second = limit // 4 - first + over

    @T.prim_func
    def mirror(A: T.Tensor((first,), "float32"), B: T.Tensor((second,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((first,), "float32")
            b = T.alloc_shared((second,), "float32")
            for i in T.Parallel(first):
                a[i] = A[i]
            for i in T.Parallel(second):
                b[i] = B[i]
            for i in T.Parallel(second):
                B[i] = b[second - 1 - i] + a[i % first]
            for i in T.Parallel(first):
                A[i] = a[first - 1 - i]

    return mirror


@tilelang.jit
def beside_a_barrier(over=1, limit=232448):
    """h100: 8 bytes of barrier take 1024 beside a dynamic array, and the array fills the rest."""
    size = (limit - 1024) // 4 + over

    @T.prim_func
    def mirror(A: T.Tensor((size,), "float32"), B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((size,), "float32")
            filled = T.alloc_barrier(128)
            for i in T.Parallel(size):
                tile[i] = A[i]
            T.barrier_arrive(filled)
            T.barrier_wait(filled, 0)
            for i in T.Parallel(size):
                B[i] = tile[size - 1 - i]

    return mirror


@tilelang.jit
def one_flag(over=1, limit=101376):
    """rtx-5090: 1024 flags of static memory take 1024 bytes; one more takes 2048."""
    size = (limit - 1024) // 4
    flags = 1024 + over

    @T.prim_func
    def mirror(A: T.Tensor((size,), "float32"), B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((size,), "float32")
            keep = T.alloc_shared((flags,), "bool")
            for i in T.Parallel(size):
                tile[i] = A[i]
            for i in T.Parallel(flags):
                keep[i] = A[i] > 0
            for i in T.Parallel(size):
                B[i] = T.if_then_else(keep[i % flags], tile[size - 1 - i], 0)

    return mirror


@tilelang.jit
def tmem_columns(over=1):
    """b200: two accumulators of 256 columns fill the 512; the smallest third one takes 32."""
    narrow = 32

    @T.prim_func
    def products(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((128, 256), "float16"),
        D: T.Tensor((128, 256), "float16"),
        E: T.Tensor((128, narrow), "float16"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((256, 64), "float16")
            left = T.alloc_tmem((128, 256), "float32")
            right = T.alloc_tmem((128, 256), "float32")
            out = T.alloc_fragment((128, 256), "float32")
            left_done = T.alloc_barrier(1)
            right_done = T.alloc_barrier(1)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, left, transpose_B=True, clear_accum=True, mbar=left_done)
            T.gemm(a, b, right, transpose_B=True, clear_accum=True, mbar=right_done)
            if over:
                last_b = T.alloc_shared((narrow, 64), "float16")
                last = T.alloc_tmem((128, narrow), "float32")
                last_out = T.alloc_fragment((128, narrow), "float32")
                last_done = T.alloc_barrier(1)
                T.copy(B[0:narrow, 0:64], last_b)
                T.gemm(a, last_b, last, transpose_B=True, clear_accum=True, mbar=last_done)
                T.copy(last, last_out)
                T.copy(last_out, E)
            T.copy(left, out)
            T.copy(out, C)
            T.copy(right, out)
            T.copy(out, D)

    return products


@tilelang.jit
def one_thread(over=1):
    """a100: 1024 threads written, and one more."""
    return _mirror(4096, "float32", threads=1024 + over)


@tilelang.jit
def one_thread_after_specialisation(over=1, rows=256, columns=256, num_stages=2):
    """h100: 896 threads and the producer's 128 are 1024; one more is too much."""

    @T.prim_func
    def row_sums(A: T.Tensor((rows, columns), "float32"), S: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=896 + over):
            tile = T.alloc_shared((rows, 4), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.clear(total)
            for k in T.Pipelined(columns // 4, num_stages=num_stages):
                T.copy(A[0:rows, k * 4 : (k + 1) * 4], tile)
                for i in T.Parallel(rows):
                    total[i] += tile[i, 0] + tile[i, 1] + tile[i, 2] + tile[i, 3]
            T.copy(total, S)

    return row_sums


def _blocks(x, y, z, cluster=None):
    """A grid of blocks that copy a tile each."""
    launch = {} if cluster is None else {"cluster_dims": cluster}

    @T.prim_func
    def copy(
        A: T.Tensor((x, y, z, 128), "float16"),
        B: T.Tensor((x, y, z, 128), "float16"),
    ):
        with T.Kernel(x, y, z, threads=128, **launch) as (bx, by, bz):
            tile = T.alloc_shared((128,), "float16")
            for i in T.Parallel(128):
                tile[i] = A[bx, by, bz, i]
            for i in T.Parallel(128):
                B[bx, by, bz, i] = tile[127 - i]

    return copy


@tilelang.jit
def one_row_of_blocks(over=1):
    """Every device: 65535 blocks in y."""
    return _blocks(1, 65535 + over, 1)


@tilelang.jit
def one_layer_of_blocks(over=1):
    """Every device: 65535 blocks in z."""
    return _blocks(1, 1, 65535 + over)


@tilelang.jit
def one_column_of_blocks(over=1):
    """Every device: 2^31 - 1 blocks in x."""
    return _blocks(2**31 - 1 + over, 1, 1)


@tilelang.jit
def cluster_of_seventeen(over=1):
    """h100: 16 blocks are the largest cluster, with the non-portable attribute."""
    size = 16 + over
    return _blocks(size * 2, 1, 1, cluster=(size, 1, 1))


@tilelang.jit
def cluster_before_hopper(over=1):
    """a100: no clusters; one of a single block is none."""
    size = 1 + over
    return _blocks(size * 2, 1, 1, cluster=(size, 1, 1))


@tilelang.jit
def one_block_outside_a_cluster(over=1):
    """h100: the grid is a multiple of the cluster, or it is refused."""
    return _blocks(32 + over, 1, 1, cluster=(2, 1, 1))
