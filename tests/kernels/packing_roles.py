"""Kernels on the pipeline's two paths: operands, epilogues, reductions, alignments."""

import tilelang
import tilelang.language as T


@tilelang.jit
def biased_gemm(M=512, N=512, K=512, rows=128, columns=128, depth=32, num_stages=3):
    """A product with a bias row, a scale column and a residual tile, and two epilogue tiles."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((N,), "float32"),
        scale: T.Tensor((M,), "float32"),
        R: T.Tensor((M, N), "float16"),
        C: T.Tensor((M, N), "float16"),
        D: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            row = T.alloc_shared((columns,), "float32")
            column = T.alloc_shared((rows,), "float32")
            residual = T.alloc_shared((rows, columns // 2), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.copy(bias[bx * columns], row)
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(scale[by * rows], column)
            for i, j in T.Parallel(rows, columns):
                acc[i, j] = acc[i, j] * column[i] + row[j]
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])
            T.copy(R[by * rows, bx * columns], residual)
            T.copy(residual, D[by * rows, bx * columns])

    return main


@tilelang.jit
def attention(heads=4, length=256, dim=64, rows=64, columns=64, num_stages=2, threads=128):
    """Forward attention: the output tile takes the place of Q or K."""
    scale = dim**-0.5

    @T.prim_func
    def main(
        Q: T.Tensor((heads, length, dim), "float16"),
        K: T.Tensor((heads, length, dim), "float16"),
        V: T.Tensor((heads, length, dim), "float16"),
        Out: T.Tensor((heads, length, dim), "float16"),
    ):
        with T.Kernel(length // rows, heads, threads=threads) as (bx, h):
            q = T.alloc_shared((rows, dim), "float16")
            k = T.alloc_shared((columns, dim), "float16")
            v = T.alloc_shared((columns, dim), "float16")
            p = T.alloc_shared((rows, columns), "float16")
            o = T.alloc_shared((rows, dim), "float16")
            s = T.alloc_fragment((rows, columns), "float32")
            out = T.alloc_fragment((rows, dim), "float32")
            top = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(Q[h, bx * rows : (bx + 1) * rows, :], q)
            T.clear(out)
            T.clear(total)
            for step in T.Pipelined(length // columns, num_stages=num_stages):
                T.copy(K[h, step * columns : (step + 1) * columns, :], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                T.reduce_max(s, top, dim=1)
                for i, j in T.Parallel(rows, columns):
                    s[i, j] = T.exp2((s[i, j] - top[i]) * scale)
                T.reduce_sum(s, total, dim=1, clear=False)
                T.copy(s, p)
                T.copy(V[h, step * columns : (step + 1) * columns, :], v)
                T.gemm(p, v, out)
            for i, j in T.Parallel(rows, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, o)
            T.copy(o, Out[h, bx * rows : (bx + 1) * rows, :])

    return main


@tilelang.jit
def reductions(M=512, N=1024, rows=2, threads=256):
    """Row statistics over many warps: the compiler adds work areas of one and the same name."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"),
        B: T.Tensor((M, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(M // rows, threads=threads) as bx:
            tile = T.alloc_shared((rows, N), "float32")
            weight = T.alloc_shared((rows, N), "float32")
            x = T.alloc_fragment((rows, N), "float32")
            top = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            square = T.alloc_fragment((rows,), "float32")
            T.copy(A[bx * rows, 0], tile)
            T.copy(tile, x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(B[bx * rows, 0], weight)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] * weight[i, j]
            T.reduce_absmax(x, square, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] = x[i, j] / square[i]
            T.copy(x, C[bx * rows, 0])

    return main


@tilelang.jit
def swizzles(M=512, K=512):
    """Tiles 16 to 64 elements wide: on TMA targets each width has another alignment."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        F: T.Tensor((M,), "float32"),
        B: T.Tensor((M, K), "float16"),
        G: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(M // 64, threads=128) as bx:
            tiny = T.alloc_shared((4,), "float32")
            w16 = T.alloc_shared((9, 16), "float16")
            w32 = T.alloc_shared((9, 32), "float16")
            w64 = T.alloc_shared((9, 64), "float16")
            again = T.alloc_shared((5, 16), "float16")
            for i in T.Parallel(4):
                tiny[i] = F[bx * 64 + i]
            T.copy(A[bx * 64, 0], w16)
            T.copy(A[bx * 64, 64], w32)
            T.copy(A[bx * 64, 128], w64)
            T.copy(w32, B[bx * 64, 64])
            T.copy(A[bx * 64, 256], again)
            T.copy(w16, B[bx * 64, 0])
            T.copy(w64, B[bx * 64, 128])
            T.copy(again, B[bx * 64, 256])
            for i in T.Parallel(4):
                G[bx * 64 + i] = tiny[3 - i]

    return main


@tilelang.jit
def manual_roles(M=512, N=512, K=512, tile=64):
    """Roles written by hand with barriers; producer and consumer side by side."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // tile, M // tile, threads=256) as (bx, by):
            a = T.alloc_shared((2, tile, tile), "float16")
            b = T.alloc_shared((2, tile, tile), "float16")
            c = T.alloc_shared((tile, tile), "float16")
            acc = T.alloc_fragment((tile, tile), "float32")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(K // tile):
                    T.mbarrier_wait_parity(empty[k % 2], ((k // 2) % 2) ^ 1)
                    T.copy(
                        A[by * tile : (by + 1) * tile, k * tile : (k + 1) * tile], a[k % 2, :, :]
                    )
                    T.copy(
                        B[k * tile : (k + 1) * tile, bx * tile : (bx + 1) * tile], b[k % 2, :, :]
                    )
                    T.mbarrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(acc)
                for k in T.serial(K // tile):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    T.gemm(a[k % 2, :, :], b[k % 2, :, :], acc)
                    T.mbarrier_arrive(empty[k % 2])
                T.copy(acc, c)
                T.copy(c, C[by * tile, bx * tile])

    return main
