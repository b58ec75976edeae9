"""Asks for the device while it is imported, and again when an object is made."""

import functools

import tilelang
import tilelang.language as T
import torch

MAJOR, MINOR = torch.cuda.get_device_capability()
CORES = torch.cuda.get_device_properties(0).multi_processor_count
assert torch.cuda.is_available()


class Copier:
    """A kernel with a tile as tall as the capability of the device says."""

    def __init__(self, columns=64):
        self.rows = 16 * torch.cuda.get_device_capability("cuda")[0]
        self.columns = columns

    def build(self, threads=128):
        rows, columns = self.rows, self.columns

        @T.prim_func
        def kernel(
            A: T.Tensor((rows, columns), "float16"), B: T.Tensor((CORES, columns), "float16")
        ):
            with T.Kernel(CORES, threads=threads) as bx:
                tile = T.alloc_shared((rows, columns), "float16")
                T.copy(A, tile)
                T.copy(tile[0:1, :], B[bx, 0])

        return kernel


@functools.lru_cache
def cached(rows, columns=64):
    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return kernel


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@logged
def wrapped(rows=32, columns=64):
    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return kernel


def two_steps(rows, columns):
    """The jit object exists once the sizes are known."""

    @tilelang.jit(out_idx=[1])
    def kernel(threads=128, copies=1):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
            with T.Kernel(1, threads=threads):
                tile = T.alloc_shared((copies, rows, columns), "float16")
                T.copy(A, tile[0, :, :])
                T.copy(tile[0, :, :], B)

        return main

    return kernel


def of_config(rows, columns):
    """A function of the configuration, as an autotuner takes it."""

    def kernel(threads=128, dtype="float16"):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(1, threads=threads):
                tile = T.alloc_shared((rows, columns), dtype)
                T.copy(A, tile)
                T.copy(tile, B)

        return main

    return kernel


if __name__ == "__main__":
    tilelang.compile(Copier().build(), out_idx=[1])
    tilelang.compile(cached(48), out_idx=[1])
    tilelang.compile(cached(48), out_idx=[1])
    two_steps(16, 64)(threads=64)
    two_steps(16, 64)(threads=64)
