"""Row-wise work on the vector cores: reductions, and the scratch that they bring along."""

import tilelang.ascend.language as T


def row_sum(rows=64, columns=64, threads=32):
    """A warp and no more: no scratch."""

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "float32"), C: T.Tensor((rows,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((rows, columns), "float32")
            total = T.alloc_shared((rows,), "float32")
            T.copy(A, a)
            with T.SimtVF(threads=threads):
                part = T.alloc_fragment((rows, columns), "float32")
                sums = T.alloc_fragment((rows,), "float32")
                T.copy(a, part)
                T.reduce_sum(part, sums, dim=1)
                T.copy(sums, total)
            T.copy(total, C)

    return kernel


def long_row_sum(columns=8192, loops=4, stages=2, threads=256, dtype="float32"):
    """All threads share a row: scratch of one element a thread."""

    @T.prim_func
    def kernel(A: T.Tensor((loops, columns), dtype), C: T.Tensor((loops, 8), dtype)):
        with T.Kernel(1):
            a = T.alloc_shared((1, columns), dtype)
            total = T.alloc_shared((1, 8), dtype)
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i, 0], a)
                with T.SimtVF(threads=threads):
                    part = T.alloc_fragment((1, columns), dtype)
                    sums = T.alloc_fragment((1,), dtype)
                    T.copy(a, part)
                    T.reduce_sum(part, sums, dim=1)
                    for j in T.Parallel(8):
                        total[0, j] = sums[0]
                T.copy(total, C[i, 0])

    return kernel


def softmax(columns=4096, loops=8, stages=2, threads=256):
    """A row a turn: maximum, exponentials, sum."""

    @T.prim_func
    def kernel(A: T.Tensor((loops, columns), "float32"), C: T.Tensor((loops, columns), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((1, columns), "float32")
            c = T.alloc_shared((1, columns), "float32")
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i, 0], a)
                with T.SimtVF(threads=threads):
                    x = T.alloc_fragment((1, columns), "float32")
                    top = T.alloc_fragment((1,), "float32")
                    total = T.alloc_fragment((1,), "float32")
                    T.copy(a, x)
                    T.reduce_max(x, top, dim=1)
                    for r, j in T.Parallel(1, columns):
                        x[r, j] = T.exp(x[r, j] - top[r])
                    T.reduce_sum(x, total, dim=1)
                    for r, j in T.Parallel(1, columns):
                        c[r, j] = x[r, j] / total[r]
                T.copy(c, C[i, 0])

    return kernel


def layernorm(rows=8, columns=2048, loops=4, stages=2, threads=256):
    """Mean and variance of each row, then scale and shift by what lies in UB all along."""

    @T.prim_func
    def kernel(
        A: T.Tensor((loops * rows, columns), "float16"),
        G: T.Tensor((columns,), "float16"),
        B: T.Tensor((columns,), "float16"),
        C: T.Tensor((loops * rows, columns), "float16"),
    ):
        with T.Kernel(1):
            a = T.alloc_shared((rows, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            scale = T.alloc_shared((columns,), "float16")
            shift = T.alloc_shared((columns,), "float16")
            T.copy(G, scale)
            T.copy(B, shift)
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * rows, 0], a)
                with T.SimtVF(threads=threads):
                    x = T.alloc_fragment((rows, columns), "float32")
                    square = T.alloc_fragment((rows, columns), "float32")
                    mean = T.alloc_fragment((rows,), "float32")
                    variance = T.alloc_fragment((rows,), "float32")
                    for r, j in T.Parallel(rows, columns):
                        x[r, j] = T.cast(a[r, j], "float32")
                    T.reduce_sum(x, mean, dim=1)
                    for r, j in T.Parallel(rows, columns):
                        x[r, j] = x[r, j] - mean[r] / columns
                        square[r, j] = x[r, j] * x[r, j]
                    T.reduce_sum(square, variance, dim=1)
                    for r, j in T.Parallel(rows, columns):
                        c[r, j] = (
                            T.cast(x[r, j] * T.rsqrt(variance[r] / columns + 1e-5), "float16")
                            * scale[j]
                            + shift[j]
                        )
                T.copy(c, C[i * rows, 0])

    return kernel


def row_sum_simd(rows=16, columns=512, loops=4):
    """A reduction by vector registers: no threads, no scratch.

    TileLang 0.1.15 stores a register of 64 elements for each row, 256 B apart, though the target
    that it asks for has one element a row: the generated code writes past the target's end.
    """

    @T.prim_func
    def kernel(
        A: T.Tensor((loops * rows, columns), "float32"), C: T.Tensor((loops * rows,), "float32")
    ):
        with T.Kernel(1):
            a = T.alloc_shared((rows, columns), "float32")
            total = T.alloc_shared((rows,), "float32")
            for i in T.serial(loops):
                T.copy(A[i * rows, 0], a)
                with T.SimdVF():
                    T.reduce_sum(a, total, dim=1)
                T.copy(total, C[i * rows])

    return kernel


def running_maximum(columns=2048, loops=8, stages=3, threads=128):
    """A maximum carried from tile to tile: it outlives the iterations of the pipelined loop."""

    @T.prim_func
    def kernel(A: T.Tensor((loops * columns,), "float32"), C: T.Tensor((columns,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((columns,), "float32")
            top = T.alloc_shared((columns,), "float32")
            with T.SimtVF(threads=threads):
                for j in T.Parallel(columns):
                    top[j] = -T.infinity("float32")
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * columns], a)
                with T.SimtVF(threads=threads):
                    for j in T.Parallel(columns):
                        top[j] = T.max(top[j], a[j])
            T.copy(top, C)

    return kernel
