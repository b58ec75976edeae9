"""Element-wise work on the vector cores of an Ascend 950: what lies in UB, and how often."""

import tilelang
import tilelang.ascend.language as T


def add(extent=4096, loops=8, stages=2, dtype="float32"):
    """C = A + B by SIMT threads, in a pipelined loop."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), dtype)
            b = T.alloc_shared((extent,), dtype)
            c = T.alloc_shared((extent,), dtype)
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * extent], a)
                T.copy(B[i * extent], b)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        c[j] = a[j] + b[j]
                T.copy(c, C[i * extent])

    return kernel


def add_simd(extent=4096, loops=8, stages=2):
    """C = A + B by vector registers: no SIMT, so that UB is larger."""
    n = loops * extent

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            b = T.alloc_shared((extent,), "float32")
            c = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * extent], a)
                T.copy(B[i * extent], b)
                with T.SimdVF():
                    for j in T.serial(extent // 64):
                        x = T.simd.vld(a[j * 64])
                        y = T.simd.vld(b[j * 64])
                        T.simd.vsts(c[j * 64], T.simd.vadd(x, y))
                T.copy(c, C[i * extent])

    return kernel


def add_serial(extent=4096, loops=8):
    """A plain loop: the scheduler multiplies nothing."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float16"), C: T.Tensor((n,), "float16")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float16")
            c = T.alloc_shared((extent,), "float16")
            for i in T.serial(loops):
                T.copy(A[i * extent], a)
                with T.SimtVF(threads=256):
                    for j in T.Parallel(extent):
                        c[j] = a[j] + a[j]
                T.copy(c, C[i * extent])

    return kernel


def one_buffer(extent=10):
    """A lone buffer: UB is as long as it is, without rounding."""

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "float32"), C: T.Tensor((extent,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            T.copy(A, a)
            with T.SimtVF(threads=32):
                for j in T.Parallel(extent):
                    a[j] = a[j] * 2
            T.copy(a, C)

    return kernel


def odd_rows(columns=10, loops=8, stages=2, dtype="float16"):
    """Rows of 20 B: each version starts at a block of 32 B."""

    @T.prim_func
    def kernel(A: T.Tensor((loops, columns), dtype), C: T.Tensor((loops, columns), dtype)):
        with T.Kernel(1):
            a = T.alloc_shared((columns,), dtype)
            c = T.alloc_shared((columns,), dtype)
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i, 0], a)
                with T.SimtVF(threads=32):
                    for j in T.Parallel(columns):
                        c[j] = a[j] + a[j]
                T.copy(c, C[i, 0])

    return kernel


def mixed_types(extent=1024, loops=8, stages=2):
    """float32 in, float16 and int32 out: tiles of different size, the large ones first."""
    n = loops * extent

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"), H: T.Tensor((n,), "float16"), W: T.Tensor((n,), "int32")
    ):
        with T.Kernel(1):
            h = T.alloc_shared((extent,), "float16")
            a = T.alloc_shared((extent,), "float32")
            whole = T.alloc_shared((extent,), "int32")
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * extent], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        h[j] = T.cast(a[j], "float16")
                        whole[j] = T.cast(a[j], "int32")
                T.copy(h, H[i * extent])
                T.copy(whole, W[i * extent])

    return kernel


def masked(extent=2048, loops=4, stages=2):
    """A table of bool beside the data."""
    n = loops * extent

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"), M: T.Tensor((n,), "bool"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            keep = T.alloc_shared((extent,), "bool")
            c = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * extent], a)
                T.copy(M[i * extent], keep)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        c[j] = T.if_then_else(keep[j], a[j], T.float32(0))
                T.copy(c, C[i * extent])

    return kernel


def two_loops(extent=8192, loops=4, stages=1):
    """Two loops one after the other: what the first needs is dead in the second."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            b = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * extent], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        a[j] = a[j] + 1
                T.copy(a, A[i * extent])
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(B[i * extent], b)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        b[j] = b[j] * 2
                T.copy(b, B[i * extent])

    return kernel


def nested(rows=4, columns=8, width=1024, outer=2, inner=2):
    """A row's sum of tiles: the sum outlives the inner loop and takes turns in the outer one."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, columns * width), "float32"), C: T.Tensor((rows, width), "float32")
    ):
        with T.Kernel(1):
            a = T.alloc_shared((width,), "float32")
            total = T.alloc_shared((width,), "float32")
            for i in T.Pipelined(rows, num_stages=outer):
                with T.SimtVF(threads=128):
                    for j in T.Parallel(width):
                        total[j] = 0
                for k in T.Pipelined(columns, num_stages=inner):
                    T.copy(A[i, k * width], a)
                    with T.SimtVF(threads=128):
                        for j in T.Parallel(width):
                            total[j] = total[j] + a[j]
                T.copy(total, C[i, 0])

    return kernel


def fixed_versions(extent=2048, loops=8, stages=2, versions=3):
    """The author fixes the versions of one buffer, above num_stages; the other's are chosen."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            c = T.alloc_shared((extent,), "float32")
            T.annotate_buffer_versions({a: versions})
            for i in T.Pipelined(loops, num_stages=stages):
                T.copy(A[i * extent], a)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        c[j] = a[j] + 1
                T.copy(c, C[i * extent])

    return kernel


def by_hand(extent=10, loops=8):
    """Two versions laid out by hand, of 40 B each: the compiler moves the second to 64 B."""

    @T.prim_func
    def kernel(A: T.Tensor((loops, extent), "float32"), C: T.Tensor((loops, extent), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((2, extent), "float32")
            c = T.alloc_shared((extent,), "float32")
            T.annotate_manual_multi_buffer(a)
            for i in T.serial(loops):
                T.copy(A[i, 0:extent], a[i % 2, 0:extent])
                with T.SimtVF(threads=32):
                    for j in T.Parallel(extent):
                        c[j] = a[i % 2, j] + 1
                T.copy(c, C[i, 0:extent])

    return kernel


def four_in_a_chain(extent=16384, loops=4):
    """Refused at 4 x 64 KiB, though a tile is dead before the one after the next is written."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            first = T.alloc_shared((extent,), "float32")
            second = T.alloc_shared((extent,), "float32")
            third = T.alloc_shared((extent,), "float32")
            fourth = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(loops, num_stages=1):
                T.copy(A[i * extent], first)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        second[j] = first[j] + 1
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        third[j] = second[j] * 2
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        fourth[j] = third[j] - 1
                T.copy(fourth, C[i * extent])

    return kernel


def chain(extent=16384):
    """The same four tiles once, without a loop: they share."""

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "float32"), C: T.Tensor((extent,), "float32")):
        with T.Kernel(1):
            first = T.alloc_shared((extent,), "float32")
            second = T.alloc_shared((extent,), "float32")
            third = T.alloc_shared((extent,), "float32")
            fourth = T.alloc_shared((extent,), "float32")
            T.copy(A, first)
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    second[j] = first[j] + 1
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    third[j] = second[j] * 2
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    fourth[j] = third[j] - 1
            T.copy(fourth, C)

    return kernel


def staged(extent=4096, loops=8):
    """The author says which statement runs in which stage, instead of how many stages there are."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            c = T.alloc_shared((extent,), "float32")
            for i in T.serial(loops, annotations={"enable_offset": True}):
                with T.Stage(0):
                    T.copy(A[i * extent], a)
                with T.Stage(1), T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        c[j] = a[j] + 1
                with T.Stage(2):
                    T.copy(c, C[i * extent])

    return kernel


def without_iterations(extent=4096):
    """A loop that never runs at these sizes."""

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "float32"), C: T.Tensor((extent,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(0, num_stages=2):
                T.copy(A[i * extent], a)
                T.copy(a, C[i * extent])

    return kernel


def open_size(extent=4096):
    """As many blocks as the size at run time asks for."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, extent)) as core:
            a = T.alloc_shared((extent,), "float32")
            c = T.alloc_shared((extent,), "float32")
            T.copy(A[core * extent], a)
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    c[j] = a[j] + 1
            T.copy(c, C[core * extent])

    return kernel


@tilelang.jit(target="ascend", pass_configs={"tl.disable_shared_memory_reuse": True})
def two_loops_apart(extent=8192, loops=4):
    """Reuse turned off: the tiles of both loops side by side, in the order of their names."""
    n = loops * extent

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1):
            second = T.alloc_shared((extent,), "float32")
            first = T.alloc_shared((extent,), "float32")
            for i in T.Pipelined(loops, num_stages=1):
                T.copy(A[i * extent], second)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        second[j] = second[j] + 1
                T.copy(second, A[i * extent])
            for i in T.Pipelined(loops, num_stages=1):
                T.copy(B[i * extent], first)
                with T.SimtVF(threads=128):
                    for j in T.Parallel(extent):
                        first[j] = first[j] * 2
                T.copy(first, B[i * extent])

    return kernel


def unused(extent=1024):
    """A buffer that nothing touches."""

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            idle = T.alloc_shared((extent,), "float32")  # noqa: F841
            T.copy(A, a)
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    a[j] = a[j] + 1
            T.copy(a, A)

    return kernel


def two_launches(extent=1024):
    """Two kernels in one function, each with a UB of its own."""

    @T.prim_func
    def kernel(A: T.Tensor((extent,), "float32"), B: T.Tensor((2 * extent,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((extent,), "float32")
            T.copy(A, a)
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    a[j] = a[j] + 1
            T.copy(a, A)
        with T.Kernel(2) as core:
            b = T.alloc_shared((extent,), "float32")
            c = T.alloc_shared((extent,), "float32")
            T.copy(B[core * extent], b)
            with T.SimtVF(threads=128):
                for j in T.Parallel(extent):
                    c[j] = b[j] + 1
            T.copy(c, B[core * extent])

    return kernel
