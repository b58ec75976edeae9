"""Small products whose parameters switch one cause of extra copies on and off."""

import tilelang
import tilelang.language as T


@tilelang.jit
def fill(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=3, by="store"):
    """`by` says what fills A's tile: a copy, a store of what global memory or a fragment holds,
    or a guarded element-wise load.
    """

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by_):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            held = T.alloc_fragment((rows, depth), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                if by == "copy":
                    T.copy(A[by_ * rows, k * depth], a)
                elif by == "store":
                    for i, j in T.Parallel(rows, depth):
                        a[i, j] = A[by_ * rows + i, k * depth + j]
                elif by == "fragment":
                    T.copy(A[by_ * rows, k * depth], held)
                    for i, j in T.Parallel(rows, depth):
                        a[i, j] = held[i, j]
                else:
                    for i, j in T.Parallel(rows, depth):
                        a[i, j] = T.if_then_else(i + j > k, A[by_ * rows + i, k * depth + j], 0)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by_ * rows, bx * columns])

    return gemm


@tilelang.jit
def branches(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, otherwise="copy"):
    """The copies stand in an if with an else: warp specialisation gives up without a message."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, K), "float16"),
        E: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                if otherwise == "copy":
                    if k <= by:
                        T.copy(A[by * rows, k * depth], a)
                        T.copy(B[k * depth, bx * columns], b)
                    else:
                        T.copy(D[by * rows, k * depth], a)
                        T.copy(E[k * depth, bx * columns], b)
                elif otherwise == "clear":
                    if k <= by:
                        T.copy(A[by * rows, k * depth], a)
                        T.copy(B[k * depth, bx * columns], b)
                    else:
                        T.clear(a)
                        T.clear(b)
                else:
                    T.copy(A[by * rows, k * depth], a)
                    T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def half_guarded(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """Only A's copy stands in an if with an else: B's is enough for warp specialisation."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                if k <= by:
                    T.copy(A[by * rows, k * depth], a)
                else:
                    T.clear(a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def cleared_first(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, clear=True):
    """A's tile is cleared in the loop before the copy writes it."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                if clear:
                    T.clear(a)
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def ordered(M=256, N=256, K=256, rows=64, columns=64, depth=32, apart=2, copies_first=True):
    """The author gives order and stage: the product runs `apart` stages behind the copies."""
    order = [0, 1, 2] if copies_first else [1, 2, 0]

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, order=order, stage=[0, 0, apart]):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def one_stage(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=1):
    """A pipelined loop that keeps nothing ahead."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def empty_loop(M=256, N=256, K=16, rows=64, columns=64, depth=32, num_stages=2):
    """K // depth is 0: the loop and the buffers that only it uses are gone."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def forgotten(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, use=False):
    """A tile that is allocated and, unless `use` is set, never touched."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            spare = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            if use:
                T.copy(acc, spare)
                T.copy(spare, C[by * rows, bx * columns])
            else:
                T.copy(acc, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def padded(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, pad=8):
    """A layout of the author's own leaves `pad` elements free behind each row of A's tile."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.annotate_layout({a: lambda i, j: i * (depth + pad) + j})
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def unaligned(M=256, N=260, K=260, rows=64, columns=64, depth=64, num_stages=2):
    """Rows of 520 bytes: no multiple of 16, so no copy can be done by TMA."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, columns), M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def without_tma(
    M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, a_tma=False, b_tma=False
):
    """The author keeps copies from TMA, one by one."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a, disable_tma=not a_tma)
                T.copy(B[k * depth, bx * columns], b, disable_tma=not b_tma)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm
