"""Factories that only choose among other factories of their file, one that takes a dtype object."""

import functools

import tilelang
import tilelang.language as T


@functools.lru_cache(maxsize=16)
def _whole_rows(rows, columns, dtype="float16"):
    """A row is a tile; what it returns is called again."""

    @tilelang.jit(out_idx=[1])
    def build(block=4, threads=128):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(T.ceildiv(rows, block), threads=threads) as bx:
                tile = T.alloc_shared((block, columns), dtype)
                T.copy(A[bx * block, 0], tile)
                T.copy(tile, B[bx * block, 0])

        return main

    return build


@functools.lru_cache(maxsize=16)
def _parts_of_rows(rows, columns, dtype="float16", part=64):
    """A part of a row is a tile."""

    @tilelang.jit(out_idx=[1])
    def build(block=4, threads=128):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(T.ceildiv(rows, block), threads=threads) as bx:
                tile = T.alloc_shared((block, part), dtype)
                for j in T.serial(T.ceildiv(columns, part)):
                    T.copy(A[bx * block, j * part], tile)
                    T.copy(tile, B[bx * block, j * part])

        return main

    return build


@functools.lru_cache(maxsize=16)
def rows_of(rows, columns, dtype="float16", part=0):
    """Whole rows, or parts of them."""
    if part == 0:
        return _whole_rows(rows, columns, dtype)
    return _parts_of_rows(rows, columns, dtype, part)


@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True})
def tile_of(rows, columns, block=64):
    """A jit object: calling it compiles."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(T.ceildiv(rows, block), threads=128) as bx:
            tile = T.alloc_shared((block, columns), "float16")
            T.copy(A[bx * block, 0], tile)
            T.copy(tile, B[bx * block, 0])

    return main


def smaller_where_wide(rows=1024, columns=256):
    """A block of 16 rows where they are wide."""
    return tile_of(rows, columns) if columns < 512 else tile_of(rows, columns, block=16)


def reference(rows=1024):
    """Returns what is no kernel."""
    return sorted(range(rows))


@tilelang.jit
def row_bytes(dtype: T.dtype = T.float16, rows=4096, bytes_per_row=256):
    """A dtype is asked for its bytes."""
    columns = bytes_per_row // dtype.bytes

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(rows // 64, threads=128) as bx:
            tile = T.alloc_shared((64, columns), dtype)
            T.copy(A[bx * 64, 0], tile)
            T.copy(tile, B[bx * 64, 0])

    return main


@tilelang.jit
def row_bytes_unsaid(dtype, rows=4096, bytes_per_row=256):
    """The same, and nothing says that it takes no text."""
    columns = bytes_per_row // dtype.bytes

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(rows // 64, threads=128) as bx:
            tile = T.alloc_shared((64, columns), dtype)
            T.copy(A[bx * 64, 0], tile)
            T.copy(tile, B[bx * 64, 0])

    return main
