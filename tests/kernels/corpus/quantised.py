"""Products of narrow operands: fp8, packed int4, scales per block."""

import tilelang
import tilelang.language as T


@tilelang.jit
def fp8(M=256, N=256, K=512, rows=64, columns=64, depth=64, num_stages=2):
    """An e4m3 product. The scale of each row block is read straight from global memory."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float8_e4m3fn"),
        B: T.Tensor((N, K), "float8_e4m3fn"),
        Scale: T.Tensor((M // rows, K // depth), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float8_e4m3fn")
            b = T.alloc_shared((columns, depth), "float8_e4m3fn")
            c = T.alloc_shared((rows, columns), "bfloat16")
            part = T.alloc_fragment((rows, columns), "float32")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[bx * columns, k * depth], b)
                T.clear(part)
                T.gemm(a, b, part, transpose_B=True)
                for i, j in T.Parallel(rows, columns):
                    acc[i, j] += part[i, j] * Scale[by, k]
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def fp8_scaled(M=256, N=256, K=512, rows=64, columns=64, depth=64, num_stages=2):
    """An e4m3 product with one scale a row and block of K, kept in shared memory."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float8_e4m3fn"),
        B: T.Tensor((N, K), "float8_e4m3fn"),
        Scale: T.Tensor((K // depth, M), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float8_e4m3fn")
            b = T.alloc_shared((columns, depth), "float8_e4m3fn")
            scale = T.alloc_shared((rows,), "float32")
            c = T.alloc_shared((rows, columns), "bfloat16")
            part = T.alloc_fragment((rows, columns), "float32")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(B[bx * columns, k * depth], b)
                for i in T.Parallel(rows):
                    scale[i] = Scale[k, by * rows + i]
                T.clear(part)
                T.gemm(a, b, part, transpose_B=True)
                for i, j in T.Parallel(rows, columns):
                    acc[i, j] += part[i, j] * scale[i]
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def int4(M=256, N=256, K=256, rows=64, columns=64, depth=64, num_stages=2):
    """Two int4 weights a byte: packed tiles come ahead, unpacked ones live in the loop."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        Packed: T.Tensor((N, K // 2), "uint8"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            packed = T.alloc_shared((columns, depth // 2), "uint8")
            b = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            bytes_ = T.alloc_fragment((columns, depth // 2), "uint8")
            wide = T.alloc_fragment((columns, depth), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(Packed[bx * columns, k * depth // 2], packed)
                T.copy(packed, bytes_)
                for i, j in T.Parallel(columns, depth):
                    nibble = (bytes_[i, j // 2] >> ((j % 2) * 4).astype("uint8")) & T.uint8(15)
                    wide[i, j] = nibble.astype("float16") - T.float16(8)
                T.copy(wide, b)
                T.gemm(a, b, acc, transpose_B=True)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm


@tilelang.jit
def int4_scaled(M=256, N=256, K=256, rows=64, columns=64, depth=64, num_stages=2):
    """The unpacking store multiplies by a scale that it reads from global memory itself."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        Packed: T.Tensor((N, K // 2), "uint8"),
        Scale: T.Tensor((N, K // depth), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // columns, M // rows, threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "float16")
            packed = T.alloc_shared((columns, depth // 2), "uint8")
            b = T.alloc_shared((columns, depth), "float16")
            c = T.alloc_shared((rows, columns), "float16")
            acc = T.alloc_fragment((rows, columns), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // depth, num_stages=num_stages):
                T.copy(A[by * rows, k * depth], a)
                T.copy(Packed[bx * columns, k * depth // 2], packed)
                for i, j in T.Parallel(columns, depth):
                    nibble = (packed[i, j // 2] >> ((j % 2) * 4).astype("uint8")) & T.uint8(15)
                    b[i, j] = nibble.astype("float16") * Scale[bx * columns + i, k]
                T.gemm(a, b, acc, transpose_B=True)
            T.copy(acc, c)
            T.copy(c, C[by * rows, bx * columns])

    return gemm
