"""Dense matrix products: plain, persistent, batched, split along K, with epilogues."""

import tilelang
import tilelang.language as T


@tilelang.jit
def epilogue(
    M=512, N=512, K=512, rows=64, columns=64, depth=32, num_stages=3, threads=128, store="shared"
):
    """The result goes out through a tile of shared memory, after the operands are dead."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=threads) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            if store == "shared":
                T.copy(acc, c)
                T.copy(c, C[by * rows, bx * columns])
            else:
                T.copy(acc, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def persistent(M=1024, N=1024, K=256, rows=64, columns=64, depth=32, blocks=64, num_stages=2):
    """A fixed number of blocks walks over all tiles; the pipelined loop is inside a plain one."""
    tiles_n = N // columns
    tiles = (M // rows) * tiles_n

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(blocks, threads=128) as block:
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            for turn in T.serial(tiles // blocks):
                tile = turn * blocks + block
                T.clear(acc)
                for k in T.Pipelined(K // depth, num_stages=num_stages):
                    T.copy(A[tile // tiles_n * rows, k * depth], a)
                    T.copy(B[tile % tiles_n * columns, k * depth], b)
                    T.gemm(a, b, acc, transpose_B=True)
                T.copy(acc, c)
                T.copy(c, C[tile // tiles_n * rows, tile % tiles_n * columns])

    return gemm


@tilelang.jit
def batched(count=4, M=256, N=256, K=256, rows=64, columns=64, depth=64, num_stages=2):
    """One matrix of a batch per block row; A is stored column by column."""

    @T.prim_func
    def gemm(
        A: T.Tensor((count, K, M), "bfloat16"),
        B: T.Tensor((count, K, N), "bfloat16"),
        C: T.Tensor((count, M, N), "bfloat16"),
    ):
        with T.Kernel(N // columns, M // rows, count, threads=128) as (bx, by, bz):
            a = T.alloc_shared((depth, rows), "bfloat16")
            b = T.alloc_shared((depth, columns), "bfloat16")
            c = T.alloc_shared((rows, columns), "bfloat16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[bz, k * depth, by * rows], a)
                T.copy(B[bz, k * depth, bx * columns], b)
                T.gemm(a, b, acc, transpose_A=True)
            T.copy(acc, c)
            T.copy(c, C[bz, by * rows, bx * columns])

    return gemm


@tilelang.jit
def split_k(M=256, N=256, K=1024, parts=4, rows=64, columns=64, depth=32, num_stages=2):
    """Each block adds the part of K that is its own into the result in global memory."""
    share = K // parts

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(N // columns, M // rows, parts, threads=128) as (bx, by, bz):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float32")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(share // depth, num_stages=num_stages):
                T.copy(A[by * rows, bz * share + k * depth], a)
                T.copy(B[bz * share + k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            for i, j in T.Parallel(rows, columns):
                T.atomic_add(C[by * rows + i, bx * columns + j], c[i, j])

    return gemm


@tilelang.jit
def residual(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """A bias row and a residual tile are added behind the loop: five buffers, two lifetimes."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Bias: T.Tensor((N,), "float16"),
        R: T.Tensor((M, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            bias = T.alloc_shared((columns,), "float16")
            r = T.alloc_shared((rows, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(Bias[bx * columns], bias)
            T.copy(R[by * rows, bx * columns], r)
            for i, j in T.Parallel(rows, columns):
                acc[i, j] += r[i, j] + bias[j]
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def gated(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """Two products over one operand, multiplied: a gated feed-forward layer."""

    @T.prim_func
    def feed(
        X: T.Tensor((M, K), "float16"),
        Gate: T.Tensor((N, K), "float16"),
        Up: T.Tensor((N, K), "float16"),
        H: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            x = T.alloc_shared((rows, depth), "float16")
            gate = T.alloc_shared((columns, depth), "float16")
            up = T.alloc_shared((columns, depth), "float16")
            h = T.alloc_shared((rows, columns), "float16")
            left = T.alloc_fragment((rows, columns), "float32")
            right = T.alloc_fragment((rows, columns), "float32")
            T.clear(left)
            T.clear(right)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(X[by * rows, k * depth], x)
                T.copy(Gate[bx * columns, k * depth], gate)
                T.copy(Up[bx * columns, k * depth], up)
                T.gemm(x, gate, left, transpose_B=True)
                T.gemm(x, up, right, transpose_B=True)
            for i, j in T.Parallel(rows, columns):
                left[i, j] = left[i, j] * T.sigmoid(left[i, j]) * right[i, j]
            T.copy(left, h)
            T.copy(h, H[by * rows, bx * columns])

    return feed


@tilelang.jit
def deep(
    A,
    B,
    M: int = 256,
    N: int = 256,
    K: int = 512,
    rows: int = 64,
    columns: int = 64,
    depth: int = 32,
    num_stages: int = 4,
):
    """Eager style with four stages: sizes, tile and stages are all parameters."""
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float16)
    with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
        a = T.alloc_shared((rows, depth), T.float16)
        b = T.alloc_shared((depth, columns), T.float16)
        c = T.alloc_shared((rows, columns), T.float16)
        acc = T.alloc_fragment((rows, columns), T.float32)
        T.clear(acc)
        for k in T.Pipelined(K // depth, num_stages=num_stages):
            T.copy(A[by * rows, k * depth], a)
            T.copy(B[k * depth, bx * columns], b)
            T.gemm(a, b, acc)
        T.copy(acc, c)
        T.copy(c, C[by * rows, bx * columns])
    return C


@tilelang.jit
def unpipelined(M=256, N=256, K=256, rows=64, columns=64, depth=32):
    """A plain loop: every tile is waited for, none is kept ahead."""

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
            for k in T.serial(K // depth):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm
