"""Kernels whose sizes are given when they are launched, under the names that serving code has."""

import tilelang
import tilelang.language as T


@tilelang.jit
def rows(K=128, block=64):
    n = T.dynamic("T")  # the name of the language module, too

    @T.prim_func
    def main(A: T.Tensor((n, K), "float16"), C: T.Tensor((n, K), "float16")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            s = T.alloc_shared((block, K), "float16")
            T.copy(A[bx * block, 0], s)
            T.copy(s, C[bx * block, 0])

    return main


@tilelang.jit
def by_macro(H=4, block=64):
    n = T.dynamic("n")

    @T.macro
    def body(A, C, bx, n_seq):
        s = T.alloc_shared((block,), "float16")
        for k in T.serial(T.ceildiv(n_seq, block)):
            T.copy(A[k * block, bx], s)
            T.copy(s, C[k * block, bx])

    @T.prim_func
    def main(A: T.Tensor((n, H), "float16"), C: T.Tensor((n, H), "float16")):
        with T.Kernel(H, T.ceildiv(n, block), threads=128) as (bx, _):
            body(A, C, bx, n)

    return main


@tilelang.jit
def tiles(N=4096, K=4096, bm=128, bn=256, bk=64, num_stages=4):
    M = T.dynamic("M")

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bk, bn), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=num_stages):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * bm, bx * bn])

    return main


def bound_twice(n, block=64):
    """The factory's argument has the name of the size that its body leaves open."""

    @tilelang.jit
    def build(threads=128):
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n, 128), "float16"), B: T.Tensor((n, 128), "float16")):
            with T.Kernel(T.ceildiv(n, block), threads=threads) as bx:
                s = T.alloc_shared((block, 128), "float16")
                T.copy(A[bx * block, 0], s)
                T.copy(s, B[bx * block, 0])

        return main

    return build


@tilelang.jit
def open_tile(K=128):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, K), "float16"), C: T.Tensor((n, K), "float16")):
        with T.Kernel(4, threads=128):
            s = T.alloc_shared((n, K), "float16")
            r = T.alloc_shared((64, K), "float16")
            T.copy(A[0, 0], s)
            T.copy(A[0, 0], r)
            T.copy(s, C[0, 0])
            T.copy(r, C[64, 0])

    return main
