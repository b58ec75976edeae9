"""Kernels under other rules: aggressive merging, no reuse, 4-bit elements, open sizes."""

import tilelang
import tilelang.language as T

AGGRESSIVE = {"tl.enable_aggressive_shared_memory_merge": True}
NO_REUSE = {"tl.disable_shared_memory_reuse": True}


def _rounds(rounds=3, sides=2):
    """Return a kernel whose loop uses one buffer after the other."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
    ):
        with T.Kernel(8, threads=128) as bx:
            zeta = T.alloc_shared((64, 128), "float16")
            early = T.alloc_shared((64, 32), "float16")
            left = T.alloc_shared((64, 64), "float16")
            right = T.alloc_shared((64, 96), "float16")
            T.copy(A[bx * 64, 0], early)
            for i in T.serial(rounds):
                T.copy(A[bx * 64, i * 64], left)
                T.copy(left, B[bx * 64, i * 64])
                for j in T.serial(sides):
                    T.copy(A[bx * 64, j * 96], right)
                    T.copy(right, B[bx * 64, j * 96])
            T.copy(early, B[bx * 64, 0])
            T.copy(A[bx * 64, 256], zeta)
            T.copy(zeta, B[bx * 64, 256])

    return main


@tilelang.jit
def rounds(rounds=3):
    """The plain rules."""
    return _rounds(rounds)


@tilelang.jit(pass_configs=AGGRESSIVE)
def rounds_aggressive(rounds=3):
    """The same with aggressive merging: buffers of one loop share."""
    return _rounds(rounds)


@tilelang.jit(pass_configs=NO_REUSE)
def rounds_apart(rounds=3):
    """The same without reuse: by name, one behind the other."""
    return _rounds(rounds)


@tilelang.jit(pass_configs={**AGGRESSIVE, **NO_REUSE})
def rounds_both(rounds=3):
    """Both at once: no reuse wins."""
    return _rounds(rounds)


@tilelang.jit(pass_configs=AGGRESSIVE)
def pipeline_aggressive(M=512, N=512, K=512, num_stages=2):
    """A pipelined product with an epilogue tile under aggressive merging."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            for _ in T.serial(2):
                T.clear(acc)
                for k in T.Pipelined(K // 32, num_stages=num_stages):
                    T.copy(A[by * 64, k * 32], a)
                    T.copy(B[k * 32, bx * 64], b)
                    T.gemm(a, b, acc)
                T.copy(acc, c)
                T.copy(c, C[by * 64, bx * 64])

    return main


@tilelang.jit
def single(odd=37):
    """One dynamic buffer is not merged: its size stays as it is, no multiple of 16."""

    @T.prim_func
    def main(A: T.Tensor((odd,), "int8"), B: T.Tensor((odd,), "int8")):
        with T.Kernel(1, threads=64):
            only = T.alloc_shared((odd,), "int8")
            for i in T.Parallel(odd):
                only[i] = A[i]
            for i in T.Parallel(odd):
                B[i] = only[odd - 1 - i]

    return main


@tilelang.jit
def four_bits(rows=3, columns=21, dtype="uint4"):
    """63 elements of 4 bits: two share a byte, and the last one has a byte to itself."""

    @T.prim_func
    def main(
        A: T.Tensor((8, 64), dtype),
        F: T.Tensor((8, 64), "float32"),
        B: T.Tensor((8, 64), dtype),
        G: T.Tensor((8, 64), "float32"),
    ):
        with T.Kernel(1, threads=64):
            packed = T.alloc_shared((rows, columns), dtype)
            floats = T.alloc_shared((8, 64), "float32")
            for i, j in T.Parallel(rows, columns):
                packed[i, j] = A[i, j]
            T.copy(F, floats)
            for i, j in T.Parallel(rows, columns):
                B[i, j] = packed[i, j]
            T.copy(floats, G)

    return main


@tilelang.jit
def open_size():
    """A buffer whose size is open until run time goes behind the rest."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float16"), B: T.Tensor((n,), "float16")):
        with T.Kernel(1, threads=64):
            known = T.alloc_shared((24,), "float16")
            whole = T.alloc_shared((n,), "float16")
            for i in T.Parallel(24):
                known[i] = A[i]
            for i in T.serial(n):
                whole[i] = A[i]
            for i in T.serial(n):
                B[i] = whole[n - 1 - i] + known[0]

    return main
