"""Kernels as libraries write them: in steps, behind decorators, inside classes."""

import abc
import functools

import tilelang
import tilelang.language as T
import torch


def logged(function):
    """Says nothing about what it wraps."""

    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def remembered(limit):
    """Takes arguments itself, and keeps what it made by position."""
    kept = {}

    def decorate(function):
        def wrapper(*key):
            if key not in kept and len(kept) < limit:
                kept[key] = function(*key)
            return kept[key]

        return wrapper

    return decorate


class Registered:
    """A decorator whose objects stand for the function."""

    def __init__(self, function):
        self.made_by = function

    def __call__(self, *args, **kwargs):
        return self.made_by(*args, **kwargs)


class Proxy:
    """Stands for something that is not there yet."""

    def __getattr__(self, name):
        raise RuntimeError("there is no request")


request = Proxy()


def copy_of(rows, columns, dtype="float16", threads=128):
    @T.prim_func
    def copy(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((rows, columns), dtype)
            T.copy(A, tile)
            T.copy(tile, B)

    return copy


# ---- behind decorators ---------------------------------------------------------------------


@functools.lru_cache(maxsize=32)
def cached_steps(rows, columns, dtype="float16"):
    """A cached factory: the sizes first, then the tile of a jit object."""

    @tilelang.jit(out_idx=[-1], pass_configs={"tl.disable_tma_lower": True})
    def of_tile(copies=1, threads=128):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(1, threads=threads):
                tile = T.alloc_shared((copies, rows, columns), dtype)
                T.copy(A, tile[0, :, :])
                T.copy(tile[0, :, :], B)

        return main

    return of_tile


@logged
def hidden(rows=32, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@remembered(limit=8)
def hidden_by_position(rows=32, columns=64, copies=1):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((copies, rows, columns), "float16")
            T.copy(A, tile[0, :, :])
            T.copy(tile[0, :, :], B)

    return main


@Registered
def registered(rows, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@logged
@tilelang.jit(out_idx=[1])
def hidden_jit(rows, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


def of_shape(*shape):
    """The sizes of the problem as they come, then a function of the configuration."""
    rows, columns = shape

    def of_config(threads=128, dtype="float16"):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(1, threads=threads):
                tile = T.alloc_shared((rows, columns), dtype)
                T.copy(A, tile)
                T.copy(tile, B)

        return main

    return of_config


half = functools.partial(copy_of, dtype="float16", columns=96)


# ---- in classes ------------------------------------------------------------------------------


class Shape(abc.ABC):
    """What its subclasses share; it makes no kernel itself."""

    def __init__(self, columns=64):
        self.columns = columns
        # as libraries do: the device decides when the object is made
        self.tall = torch.cuda.get_device_properties("cuda").multi_processor_count > 100

    @property
    @abc.abstractmethod
    def rows(self):
        """Rows of the tile."""

    @logged
    def build(self, copies=1):
        rows, columns = self.rows * (2 if self.tall else 1), self.columns

        @T.prim_func
        def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((copies, rows, columns), "float16")
                T.copy(A, tile[0, :, :])
                T.copy(tile[0, :, :], B)

        return main


class Small(Shape):
    rows = 16


class Scaled(Shape):
    def __init__(self, factor, **rest):
        super().__init__(**rest)
        self.factor = factor

    @property
    def rows(self):
        return 16 * self.factor

    @functools.cached_property
    def whole(self):
        rows, columns = self.rows, self.columns

        @T.prim_func
        def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((rows, columns), "float16")
                T.copy(A, tile)
                T.copy(tile, B)

        return main


# ---- several device functions, and other chips ------------------------------------------------


@tilelang.jit(out_idx=[1])
def two_launches(rows=64, columns=64, wide=256):
    """One PrimFunc, two launches: a tile of `columns`, then one of `wide`."""

    @T.prim_func
    def main(A: T.Tensor((rows, wide), "float16"), B: T.Tensor((rows, wide), "float16")):
        with T.Kernel(wide // columns, threads=128) as bx:
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A[0, bx * columns], tile)
            T.copy(tile, B[0, bx * columns])
        with T.Kernel(1, threads=256):
            tile = T.alloc_shared((rows, wide), "float16")
            T.copy(B, tile)
            T.copy(tile, B)

    return main


@tilelang.jit
def for_blackwell(size=128, copies=1):
    """Accumulates in tensor memory; with 6 copies its tiles exceed a block of any chip."""

    @T.prim_func
    def main(
        A: T.Tensor((size, size), "bfloat16"),
        B: T.Tensor((size, size), "bfloat16"),
        C: T.Tensor((size, size), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((copies, size, size), "bfloat16")
            B_s = T.alloc_shared((copies, size, size), "bfloat16")
            C_t = T.alloc_tmem((size, size), "float32")
            bar = T.alloc_barrier(1)
            C_l = T.alloc_fragment((size, size), "float32")
            T.copy(A, A_s[0, :, :])
            T.copy(B, B_s[0, :, :])
            T.tcgen05_gemm(A_s[0, :, :], B_s[0, :, :], C_t, mbar=bar, clear_accum=True)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(C_t, C_l)
            T.copy(C_l, C)

    return main


if __name__ == "__main__":
    for _ in range(2):
        cached_steps(16, 64)(copies=2)
    tilelang.compile(hidden(48), out_idx=[1])
    tilelang.compile(hidden_by_position(48, 64), out_idx=[1])
    tilelang.compile(registered(48), out_idx=[1])
    hidden_jit(80)
    tilelang.compile(of_shape(16, 64)(dtype="float32"), out_idx=[1])
    tilelang.compile(Small().build(), out_idx=[1])
    tilelang.compile(Scaled(3, columns=32).whole, out_idx=[1])
    two_launches()
    for_blackwell()
