"""PrimFuncs that become several device functions, and sizes that stay open."""

import tilelang
import tilelang.language as T


@tilelang.jit
def split_then_sum(M=128, N=128, K=1024, parts=4, rows=64, columns=64, depth=32, num_stages=2):
    """Partial products, then a second kernel that adds them up."""
    share = K // parts

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Parts: T.Tensor((parts, M, N), "float32"),
        C: T.Tensor((M, N), "float16"),
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
            T.copy(c, Parts[bz, by * rows, bx * columns])
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            part = T.alloc_shared((rows, columns), "float32")
            total = T.alloc_fragment((rows, columns), "float32")
            T.clear(total)
            for p in T.Pipelined(parts, num_stages=num_stages):
                T.copy(Parts[p, by * rows, bx * columns], part)
                for i, j in T.Parallel(rows, columns):
                    total[i, j] += part[i, j]
            T.copy(total, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def scores_then_weights(rows=128, columns=128, width=64, tile=64, num_stages=2):
    """A product with a row maximum, then an exponential pass in a kernel of its own."""

    @T.prim_func
    def attend(
        Q: T.Tensor((rows, width), "float16"),
        K: T.Tensor((columns, width), "float16"),
        S: T.Tensor((rows, columns), "float32"),
        P: T.Tensor((rows, columns), "float16"),
    ):
        with T.Kernel(rows // tile, threads=128) as block:
            q = T.alloc_shared((tile, width), "float16")
            k = T.alloc_shared((tile, width), "float16")
            s = T.alloc_shared((tile, tile), "float32")
            acc = T.alloc_fragment((tile, tile), "float32")
            T.copy(Q[block * tile, 0], q)
            for t in T.Pipelined(columns // tile, num_stages=num_stages):
                T.copy(K[t * tile, 0], k)
                T.clear(acc)
                T.gemm(q, k, acc, transpose_B=True)
                T.copy(acc, s)
                T.copy(s, S[block * tile, t * tile])
        with T.Kernel(rows // tile, threads=256) as block:
            x = T.alloc_shared((tile, columns), "float32")
            y = T.alloc_shared((tile, columns), "float16")
            T.copy(S[block * tile, 0], x)
            for i, j in T.Parallel(tile, columns):
                y[i, j] = T.exp(x[i, j])
            T.copy(y, P[block * tile, 0])

    return attend


@tilelang.jit
def three_steps(rows=64, columns=256):
    """Scale, scan, shift: three kernels of one to two buffers each."""

    @T.prim_func
    def work(
        X: T.Tensor((rows, columns), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
        Z: T.Tensor((rows, columns), "float32"),
        W: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(rows // 8, threads=128) as block:
            scaled = T.alloc_shared((8, columns), "float32")
            T.copy(X[block * 8, 0], scaled)
            for i, j in T.Parallel(8, columns):
                Y[block * 8 + i, j] = scaled[i, j] * 2
        with T.Kernel(rows // 4, threads=128) as block:
            before = T.alloc_shared((4, columns), "float32")
            sums = T.alloc_shared((4, columns), "float32")
            T.copy(Y[block * 4, 0], before)
            T.cumsum(before, sums, dim=1)
            T.copy(sums, Z[block * 4, 0])
        with T.Kernel(rows // 16, threads=128) as block:
            shifted = T.alloc_shared((16, columns), "float32")
            T.copy(Z[block * 16, 0], shifted)
            for i, j in T.Parallel(16, columns):
                W[block * 16 + i, j] = shifted[i, j] + 1

    return work


@tilelang.jit
def open_rows(N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """The number of rows is open until run time; the tiles are not."""
    M = T.dynamic("m")

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, T.ceildiv(M, rows), threads=128) as (bx, by):
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
def open_depth(M=256, N=256, rows=64, columns=64, depth=32, num_stages=2):
    """The depth is open, so the number of iterations and the row stride of A are, too."""
    K = T.dynamic("k")

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
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm
