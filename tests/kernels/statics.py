"""Static shared memory in odd sizes: what the static part of a block takes depends on the order."""

import tilelang
import tilelang.language as T


@tilelang.jit
def three_items(n=350, m=13, k=7):
    """700, 52 and 7 bytes, and no dynamic memory."""

    @T.prim_func
    def three(
        A: T.Tensor((n,), "float16"),
        B: T.Tensor((m,), "float32"),
        C: T.Tensor((k,), "int8"),
        out: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((n,), "float16", scope="shared")
            b = T.alloc_shared((m,), "float32", scope="shared")
            c = T.alloc_shared((k,), "int8", scope="shared")
            for i in T.Parallel(n):
                a[i] = A[i]
            for i in T.Parallel(m):
                b[i] = B[i]
            for i in T.Parallel(k):
                c[i] = C[i]
            for i in T.Parallel(n):
                out[i] = a[n - 1 - i] + b[i % m] + c[i % k]

    return three


@tilelang.jit
def small_used_last(n=128):
    """3 bytes declared first and used last, 36 declared inside a loop."""

    @T.prim_func
    def small_last(A: T.Tensor((n,), "float16"), out: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128):
            small = T.alloc_shared((3,), "int8", scope="shared")
            big = T.alloc_shared((n,), "float16", scope="shared")
            for i in T.Parallel(n):
                big[i] = A[i]
            for k in T.serial(4):
                mid = T.alloc_shared((9,), "float32", scope="shared")
                for i in T.Parallel(9):
                    mid[i] = big[i + k]
                for i in T.Parallel(n):
                    out[i] += mid[i % 9]
            for i in T.Parallel(3):
                small[i] = T.cast(big[i], "int8")
            for i in T.Parallel(n):
                out[i] += small[i % 3]

    return small_last


@tilelang.jit
def flags_and_barrier(n=128):
    """Five flags, always static, declared before a barrier that lowering puts first."""

    @T.prim_func
    def flags(A: T.Tensor((n,), "float16"), out: T.Tensor((n,), "float16")):
        with T.Kernel(1, threads=128):
            positive = T.alloc_shared((5,), "bool")
            barrier = T.alloc_barrier(128)
            for i in T.Parallel(5):
                positive[i] = A[i] > 0
            T.barrier_arrive(barrier)
            T.barrier_wait(barrier, 0)
            for i in T.Parallel(n):
                out[i] = T.if_then_else(positive[i % 5], A[i], T.float16(0))

    return flags


@tilelang.jit
def two_functions(n=100):
    """Two device functions: one with a dynamic array, one with 400 static bytes only."""

    @T.prim_func
    def pair(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), out: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1, threads=64):
            d = T.alloc_shared((n,), "float32")
            T.copy(A, d)
            for i in T.Parallel(n):
                B[i] = d[n - 1 - i]
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((n,), "float32", scope="shared")
            for i in T.Parallel(n):
                s[i] = B[i]
            for i in T.Parallel(n):
                out[i] = s[n - 1 - i]

    return pair
