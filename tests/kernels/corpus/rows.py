"""Work on rows without a matrix product: softmax, norms, scans, top-k, histogram."""

import tilelang
import tilelang.language as T


@tilelang.jit
def softmax(rows=64, columns=1024, tile=256, lines=4, num_stages=2):
    """Two pipelined passes over the columns; each pass has a buffer of its own."""

    @T.prim_func
    def normalise(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // lines, threads=128) as block:
            first = T.alloc_shared((lines, tile), "float32")
            second = T.alloc_shared((lines, tile), "float32")
            y = T.alloc_shared((lines, tile), "float32")
            values = T.alloc_fragment((lines, tile), "float32")
            total = T.alloc_fragment((lines,), "float32")
            T.clear(total)
            for t in T.Pipelined(columns // tile, num_stages=num_stages):
                T.copy(X[block * lines, t * tile], first)
                for i, j in T.Parallel(lines, tile):
                    values[i, j] = T.exp(first[i, j])
                T.reduce_sum(values, total, dim=1, clear=False)
            for t in T.Pipelined(columns // tile, num_stages=num_stages):
                T.copy(X[block * lines, t * tile], second)
                for i, j in T.Parallel(lines, tile):
                    y[i, j] = T.exp(second[i, j]) / total[i]
                T.copy(y, Y[block * lines, t * tile])

    return normalise


@tilelang.jit
def layernorm(rows=64, columns=512, lines=4, threads=128, epsilon=1e-5):
    """Mean and variance across warps, then scale and shift from shared memory."""

    @T.prim_func
    def normalise(
        X: T.Tensor((rows, columns), "float32"),
        Scale: T.Tensor((columns,), "float32"),
        Shift: T.Tensor((columns,), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(rows // lines, threads=threads) as block:
            x = T.alloc_shared((lines, columns), "float32")
            scale = T.alloc_shared((columns,), "float32")
            shift = T.alloc_shared((columns,), "float32")
            y = T.alloc_shared((lines, columns), "float32")
            values = T.alloc_fragment((lines, columns), "float32")
            squares = T.alloc_fragment((lines, columns), "float32")
            mean = T.alloc_fragment((lines,), "float32")
            spread = T.alloc_fragment((lines,), "float32")
            T.copy(X[block * lines, 0], x)
            T.copy(x, values)
            T.reduce_sum(values, mean, dim=1)
            for i, j in T.Parallel(lines, columns):
                values[i, j] -= mean[i] / columns
                squares[i, j] = values[i, j] * values[i, j]
            T.reduce_sum(squares, spread, dim=1)
            T.copy(Scale, scale)
            T.copy(Shift, shift)
            for i, j in T.Parallel(lines, columns):
                y[i, j] = (
                    values[i, j] * T.rsqrt(spread[i] / columns + epsilon) * scale[j] + shift[j]
                )
            T.copy(y, Y[block * lines, 0])

    return normalise


@tilelang.jit
def cumulative_sum(X, W, rows: int = 64, columns: int = 256, lines: int = 4):
    """An inclusive scan within a tile of shared memory, then weights on its result. Eager."""
    X: T.Tensor[[rows, columns], T.float32]
    W: T.Tensor[[rows, columns], T.float32]
    Y = T.empty((rows, columns), T.float32)
    with T.Kernel(rows // lines, threads=128) as block:
        x = T.alloc_shared((lines, columns), T.float32)
        sums = T.alloc_shared((lines, columns), T.float32)
        w = T.alloc_shared((lines, columns), T.float32)
        y = T.alloc_shared((lines, columns), T.float32)
        T.copy(X[block * lines, 0], x)
        T.cumsum(x, sums, dim=1)
        T.copy(W[block * lines, 0], w)
        for i, j in T.Parallel(lines, columns):
            y[i, j] = sums[i, j] * w[i, j]
        T.copy(y, Y[block * lines, 0])
    return Y


@tilelang.jit
def top_k(rows=64, experts=64, lines=32, k=4):
    """The largest k of each row, one after the other; winners are struck out."""

    @T.prim_func
    def choose(
        X: T.Tensor((rows, experts), "float32"),
        Values: T.Tensor((rows, k), "float32"),
        Indices: T.Tensor((rows, k), "int32"),
    ):
        with T.Kernel(rows // lines, threads=128) as block:
            x = T.alloc_shared((lines, experts), "float32")
            value = T.alloc_shared((lines, k), "float32")
            index = T.alloc_shared((lines, k), "int32")
            left = T.alloc_fragment((lines, experts), "float32")
            places = T.alloc_fragment((lines, experts), "int32")
            best = T.alloc_fragment((lines,), "float32")
            where = T.alloc_fragment((lines,), "int32")
            T.copy(X[block * lines, 0], x)
            T.copy(x, left)
            for turn in T.serial(k):
                T.reduce_max(left, best, dim=1)
                for i, j in T.Parallel(lines, experts):
                    places[i, j] = T.if_then_else(left[i, j] == best[i], j, -1)
                T.reduce_max(places, where, dim=1)
                for i, j in T.Parallel(lines, experts):
                    if places[i, j] == where[i]:
                        left[i, j] = -T.infinity("float32")
                for i in T.Parallel(lines):
                    value[i, turn] = best[i]
                    index[i, turn] = where[i]
            T.copy(value, Values[block * lines, 0])
            T.copy(index, Indices[block * lines, 0])

    return choose


@tilelang.jit
def masked_mean(rows=64, columns=256, lines=4):
    """A mask of bools: TileLang keeps it in the static part."""

    @T.prim_func
    def mean(
        X: T.Tensor((rows, columns), "float32"),
        Low: T.Tensor((rows,), "float32"),
        Y: T.Tensor((rows,), "float32"),
    ):
        with T.Kernel(rows // lines, threads=128) as block:
            x = T.alloc_shared((lines, columns), "float32")
            low = T.alloc_shared((lines,), "float32")
            keep = T.alloc_shared((lines, columns), "bool")
            values = T.alloc_fragment((lines, columns), "float32")
            total = T.alloc_fragment((lines,), "float32")
            T.copy(X[block * lines, 0], x)
            for i in T.Parallel(lines):
                low[i] = Low[block * lines + i]
            for i, j in T.Parallel(lines, columns):
                keep[i, j] = x[i, j] > low[i]
            for i, j in T.Parallel(lines, columns):
                values[i, j] = T.if_then_else(keep[i, j], x[i, j], 0)
            T.reduce_sum(values, total, dim=1)
            T.copy(total, Y[block * lines])

    return mean


@tilelang.jit
def vector_product(N=64, K=1024, lines=4, threads=64):
    """Matrix times vector: the threads of a line add up their parts in one reduction."""
    each = K // threads

    @T.prim_func
    def product(
        A: T.Tensor((N, K), "float16"),
        X: T.Tensor((K,), "float16"),
        Y: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(N // lines, threads=(threads, lines)) as block:
            column = T.get_thread_binding(0)
            line = T.get_thread_binding(1)
            x = T.alloc_shared((K,), "float16")
            part = T.alloc_local((1,), "float32")
            total = T.alloc_local((1,), "float32")
            for i in T.serial(each):
                x[i * threads + column] = X[i * threads + column]
            part[0] = 0
            for i in T.serial(each):
                part[0] += A[block * lines + line, i * threads + column] * x[i * threads + column]
            with T.attr(
                T.comm_reducer(lambda left, right: left + right, [T.Cast("float32", 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(
                        T.uint32(1), part[0], True, total[0], column, dtype="handle"
                    )
                )
            if column == 0:
                Y[block * lines + line] = total[0]

    return product
