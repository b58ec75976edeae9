"""Convolutions as implicit matrix products."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gathered(
    images=2, side=16, channels=32, filters=64, kernel=3, rows=64, depth=32, num_stages=2, pad=1
):
    """The input tile is gathered element by element, with zeros outside of the image."""
    out = side + 2 * pad - kernel + 1
    pixels = images * out * out
    taps = kernel * kernel * channels

    @T.prim_func
    def convolve(
        X: T.Tensor((images, side, side, channels), "float16"),
        W: T.Tensor((taps, filters), "float16"),
        Y: T.Tensor((pixels, filters), "float16"),
    ):
        with T.Kernel(T.ceildiv(pixels, rows), threads=128) as block:
            x = T.alloc_shared((rows, depth), "float16")
            w = T.alloc_shared((depth, filters), "float16")
            y = T.alloc_shared((rows, filters), "float16")
            acc = T.alloc_fragment((rows, filters), "float32")
            T.clear(acc)
            for k in T.Pipelined(taps // depth, num_stages=num_stages):
                for i, j in T.Parallel(rows, depth):
                    tap = (k * depth + j) // channels
                    pixel = block * rows + i
                    line = pixel % (out * out) // out + tap // kernel - pad
                    column = pixel % out + tap % kernel - pad
                    inside = (line >= 0) and (line < side) and (column >= 0) and (column < side)
                    x[i, j] = T.if_then_else(
                        inside, X[pixel // (out * out), line, column, (k * depth + j) % channels], 0
                    )
                T.copy(W[k * depth, 0], w)
                T.gemm(x, w, acc)
            T.copy(acc, y)
            T.copy(y, Y[block * rows, 0])

    return convolve


@tilelang.jit
def by_im2col(
    images=2, side=16, channels=64, filters=64, kernel=3, rows=64, depth=32, num_stages=2
):
    """The input tile comes by the im2col operation."""
    out = side - kernel + 1
    pixels = images * out * out
    taps = kernel * kernel * channels

    @T.prim_func
    def convolve(
        X: T.Tensor((images, side, side, channels), "float16"),
        W: T.Tensor((taps, filters), "float16"),
        Y: T.Tensor((pixels, filters), "float16"),
    ):
        with T.Kernel(T.ceildiv(pixels, rows), threads=128) as block:
            x = T.alloc_shared((rows, depth), "float16")
            w = T.alloc_shared((depth, filters), "float16")
            y = T.alloc_shared((rows, filters), "float16")
            acc = T.alloc_fragment((rows, filters), "float32")
            T.clear(acc)
            for k in T.Pipelined(taps // depth, num_stages=num_stages):
                T.im2col(X, x, block, k, kernel, 1, 1, 0)
                T.copy(W[k * depth, 0], w)
                T.gemm(x, w, acc)
            T.copy(acc, y)
            T.copy(y, Y[block * rows, 0])

    return convolve


@tilelang.jit
def pointwise(
    X,
    W,
    Bias,
    images: int = 2,
    side: int = 16,
    channels: int = 128,
    filters: int = 64,
    depth: int = 32,
    num_stages: int = 2,
):
    """A 1 x 1 convolution of lines of pixels, bias and clipping behind the loop. Eager."""
    X: T.Tensor[[images, side, side, channels], T.float16]
    W: T.Tensor[[channels, filters], T.float16]
    Bias: T.Tensor[[filters], T.float32]
    Y = T.empty((images, side, side, filters), T.float16)
    with T.Kernel(side, images, threads=128) as (line, image):
        x = T.alloc_shared((side, depth), T.float16)
        w = T.alloc_shared((depth, filters), T.float16)
        bias = T.alloc_shared((filters,), T.float32)
        y = T.alloc_shared((side, filters), T.float16)
        acc = T.alloc_fragment((side, filters), T.float32)
        T.clear(acc)
        T.copy(Bias, bias)
        for k in T.Pipelined(channels // depth, num_stages=num_stages):
            T.copy(X[image, line, 0, k * depth], x)
            T.copy(W[k * depth, 0], w)
            T.gemm(x, w, acc, policy=T.GemmWarpPolicy.FullCol)
        for i, j in T.Parallel(side, filters):
            acc[i, j] = T.max(acc[i, j] + bias[j], 0)
        T.copy(acc, y)
        T.copy(y, Y[image, line, 0, 0])
    return Y
