"""Products over chosen tiles: block-sparse, grouped, gathered rows."""

import tilelang
import tilelang.language as T


@tilelang.jit
def block_sparse(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """A mask in global memory says which tiles are skipped: one `if` around the whole body."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Keep: T.Tensor((M // rows, N // columns, K // depth), "int32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                if Keep[by, bx, k] != 0:
                    T.copy(A[by * rows, k * depth], a)
                    T.copy(B[k * depth, bx * columns], b)
                    T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def grouped(groups=4, M=512, N=128, K=128, rows=64, columns=64, depth=32, num_stages=2):
    """Rows are sorted by group; a table gives the group of each row tile."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((groups, N, K), "float16"),
        Group: T.Tensor((M // rows,), "int32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[Group[by], bx * columns, k * depth], b)
                T.gemm(a, b, acc, transpose_B=True)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def gathered_rows(tokens=128, M=256, N=128, K=128, rows=64, columns=64, depth=32, num_stages=2):
    """A mixture of experts: each row of the tile is read where an index says."""

    @T.prim_func
    def gemm(
        X: T.Tensor((tokens, K), "float16"),
        Index: T.Tensor((M,), "int32"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            index = T.alloc_shared((rows,), "int32")
            x = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.copy(Index[by * rows], index)
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                for i, j in T.Parallel(rows, depth):
                    x[i, j] = X[index[i], k * depth + j]
                T.copy(B[bx * columns, k * depth], b)
                T.gemm(x, b, acc, transpose_B=True)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def indices_in_loop(pages=64, steps=8, rows=64, width=64, columns=64, num_stages=2):
    """The indices of the next rows are fetched within the loop that reads those rows."""

    @T.prim_func
    def gemm(
        X: T.Tensor((pages, width), "float16"),
        Index: T.Tensor((steps, rows), "int32"),
        W: T.Tensor((steps, width, columns), "float16"),
        C: T.Tensor((rows, columns), "float16"),
    ):
        with T.Kernel(1, threads=128) as _:
            index = T.alloc_shared((rows,), "int32")
            x = T.alloc_shared((rows, width), "float16")
            w = T.alloc_shared((width, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for t in T.Pipelined(steps, num_stages=num_stages):
                T.copy(Index[t, 0], index)
                for i, j in T.Parallel(rows, width):
                    x[i, j] = X[index[i], j]
                T.copy(W[t, 0, 0], w)
                T.gemm(x, w, acc)
            T.copy(acc, c)
            T.copy(c, C)

    return gemm
