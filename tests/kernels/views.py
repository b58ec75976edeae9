"""Kernels that reach a buffer by another name: `T.reshape` and `T.view` allocate nothing."""

import tilelang
import tilelang.language as T


@tilelang.jit
def reshaped(rows=8, columns=8192):
    @T.prim_func
    def kernel(
        X: T.Tensor((rows, columns), "float16"),
        Y: T.Tensor((rows, columns), "float16"),
    ):
        with T.Kernel(rows, threads=128) as bx:
            row = T.alloc_shared((columns,), "float16")
            values = T.alloc_fragment((columns,), "float32")
            largest = T.alloc_fragment((1,), "float32")
            T.copy(X[bx, 0:columns], row)
            T.copy(row, values)
            as_row = T.reshape(values, [1, columns])
            T.reduce_max(as_row, largest, dim=1)
            for j in T.Parallel(columns):
                values[j] = values[j] - largest[0]
            T.copy(values, Y[bx, 0:columns])

    return kernel


@tilelang.jit
def shared(rows=8, columns=4096):
    @T.prim_func
    def kernel(
        X: T.Tensor((rows, columns), "float16"),
        Y: T.Tensor((rows, columns), "float16"),
    ):
        with T.Kernel(rows, threads=128) as bx:
            tile = T.alloc_shared((columns,), "float16")
            values = T.alloc_fragment((1, columns), "float16")
            as_row = T.reshape(tile, [1, columns])
            T.copy(X[bx, 0:columns], tile)
            T.copy(as_row, values)
            T.copy(values, Y[bx : bx + 1, 0:columns])

    return kernel


@tilelang.jit
def viewed(columns=1024):
    @T.prim_func
    def kernel(X: T.Tensor((columns,), "float16"), Y: T.Tensor((columns,), "int16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            halves = T.alloc_local([8], "float16")
            untouched = T.alloc_local([8], "float16")  # noqa: F841
            bits = T.view(halves, [8], "int16")
            for i in T.serial(8):
                halves[i] = X[tx * 8 + i]
            for i in T.serial(8):
                Y[tx * 8 + i] = bits[i]

    return kernel


@tilelang.jit
def pipelined(size=1024, tile=64, num_stages=3):
    @T.prim_func
    def kernel(
        A: T.Tensor((size, size), "float16"),
        B: T.Tensor((size, size), "float16"),
        C: T.Tensor((size, size), "float16"),
    ):
        with T.Kernel(size // tile, size // tile, threads=128) as (bx, by):
            flat = T.alloc_shared((tile * tile,), "float16")
            other = T.alloc_shared((tile, tile), "float16")
            sums = T.alloc_fragment((tile, tile), "float32")
            square = T.reshape(flat, (tile, tile))
            T.clear(sums)
            for k in T.Pipelined(size // tile, num_stages=num_stages):
                T.copy(A[by * tile, k * tile], square)
                T.copy(B[k * tile, bx * tile], other)
                T.gemm(square, other, sums)
            T.copy(sums, C[by * tile, bx * tile])

    return kernel
