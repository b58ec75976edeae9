"""Kernels with more than one loop over tiles."""

import tilelang
import tilelang.language as T


@tilelang.jit
def apart(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, first=True):
    """Two pipelined loops with operands of their own; `first` says if the first is pipelined."""

    @T.prim_func
    def sum_of_products(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, K), "float16"),
        E: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            d = T.alloc_shared((rows, depth), "float16")
            e = T.alloc_shared((depth, columns), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages if first else 0):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(D[by * rows, k * depth], d)
                T.copy(E[k * depth, bx * columns], e)
                T.gemm(d, e, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return sum_of_products


@tilelang.jit
def same_buffers(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2, second=2):
    """Two pipelined loops that fill the same pair of buffers; 0 stages make a loop plain."""

    @T.prim_func
    def sum_of_products(
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
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            for k in T.Pipelined(K // depth, num_stages=second):
                T.copy(D[by * rows, k * depth], a)
                T.copy(E[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return sum_of_products


@tilelang.jit
def plain_second(M=256, N=256, K=256, rows=64, columns=64, depth=32, num_stages=2):
    """A pipelined loop and a plain one, each with operands of its own."""

    @T.prim_func
    def sum_of_products(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, K), "float16"),
        E: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, columns), "float16")
            d = T.alloc_shared((rows, depth), "float16")
            e = T.alloc_shared((depth, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, bx * columns], b)
                T.gemm(a, b, acc)
            for k in T.serial(K // depth):
                T.copy(D[by * rows, k * depth], d)
                T.copy(E[k * depth, bx * columns], e)
                T.gemm(d, e, acc)
            T.copy(acc, C[by * rows, bx * columns])

    return sum_of_products


@tilelang.jit
def chained(M=256, N=256, K=256, L=128, rows=64, columns=64, depth=32, num_stages=2):
    """(A B) E: the first product stays in shared memory and feeds the second loop."""

    @T.prim_func
    def product_of_three(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, L), "float16"),
        E: T.Tensor((L, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((depth, L), "float16")
            middle = T.alloc_shared((rows, L), "float16")
            e = T.alloc_shared((depth, columns), "float16")
            first = T.alloc_fragment((rows, L), "float32")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(first)
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[k * depth, 0], b)
                T.gemm(a, b, first)
            T.copy(first, middle)
            for k in T.Pipelined(L // depth, num_stages=num_stages):
                T.copy(E[k * depth, bx * columns], e)
                T.gemm(middle[:, k * depth : (k + 1) * depth], e, acc)
            T.copy(acc, C[by * rows, bx * columns])

    return product_of_three
