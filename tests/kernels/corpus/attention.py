"""Attention: forward, backward for keys and for queries, decoding, latent (MLA) decoding."""

import tilelang
import tilelang.language as T

LOG2_E = 1.4426950408889634


@tilelang.jit
def forward(heads=4, length=256, width=64, tile_q=64, tile_k=64, num_stages=2, threads=128):
    """Softmax of bounded scores over key tiles; the output leaves through the query's place."""
    scale = LOG2_E * width**-0.5

    @T.prim_func
    def attend(
        Q: T.Tensor((heads, length, width), "float16"),
        K: T.Tensor((heads, length, width), "float16"),
        V: T.Tensor((heads, length, width), "float16"),
        Out: T.Tensor((heads, length, width), "float16"),
    ):
        with T.Kernel(length // tile_q, heads, threads=threads) as (bx, head):
            q = T.alloc_shared((tile_q, width), "float16")
            k = T.alloc_shared((tile_k, width), "float16")
            v = T.alloc_shared((tile_k, width), "float16")
            o = T.alloc_shared((tile_q, width), "float16")
            score = T.alloc_fragment((tile_q, tile_k), "float32")
            weight = T.alloc_fragment((tile_q, tile_k), "float16")
            out = T.alloc_fragment((tile_q, width), "float32")
            total = T.alloc_fragment((tile_q,), "float32")
            T.copy(Q[head, bx * tile_q, 0], q)
            T.clear(out)
            T.clear(total)
            for t in T.Pipelined(length // tile_k, num_stages=num_stages):
                T.copy(K[head, t * tile_k, 0], k)
                T.gemm(
                    q,
                    k,
                    score,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                for i, j in T.Parallel(tile_q, tile_k):
                    score[i, j] = T.exp2(score[i, j] * scale)
                T.reduce_sum(score, total, dim=1, clear=False)
                T.copy(score, weight)
                T.copy(V[head, t * tile_k, 0], v)
                T.gemm(weight, v, out, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(tile_q, width):
                out[i, j] /= total[i]
            T.copy(out, o)
            T.copy(o, Out[head, bx * tile_q, 0])

    return attend


@tilelang.jit
def forward_shared_weights(heads=4, length=256, width=64, tile_q=64, tile_k=64, num_stages=2):
    """The weights go through shared memory; no normalisation, to stay small."""

    @T.prim_func
    def attend(
        Q: T.Tensor((heads, length, width), "float16"),
        K: T.Tensor((heads, length, width), "float16"),
        V: T.Tensor((heads, length, width), "float16"),
        Out: T.Tensor((heads, length, width), "float16"),
    ):
        with T.Kernel(length // tile_q, heads, threads=128) as (bx, head):
            q = T.alloc_shared((tile_q, width), "float16")
            k = T.alloc_shared((tile_k, width), "float16")
            v = T.alloc_shared((tile_k, width), "float16")
            weight = T.alloc_shared((tile_q, tile_k), "float16")
            o = T.alloc_shared((tile_q, width), "float16")
            score = T.alloc_fragment((tile_q, tile_k), "float32")
            out = T.alloc_fragment((tile_q, width), "float32")
            T.copy(Q[head, bx * tile_q, 0], q)
            T.clear(out)
            for t in T.Pipelined(length // tile_k, num_stages=num_stages):
                T.copy(K[head, t * tile_k, 0], k)
                T.copy(V[head, t * tile_k, 0], v)
                T.gemm(q, k, score, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(tile_q, tile_k):
                    score[i, j] = T.max(score[i, j], 0)
                T.copy(score, weight)
                T.gemm(weight, v, out)
            T.copy(out, o)
            T.copy(o, Out[head, bx * tile_q, 0])

    return attend


@tilelang.jit
def backward_keys(heads=2, length=128, width=64, tile_k=64, tile_q=32, num_stages=2, threads=128):
    """The gradient of one key tile; queries, output gradients and two row vectors stream past."""
    scale = width**-0.5

    @T.prim_func
    def gradients(
        Q: T.Tensor((heads, length, width), "float16"),
        K: T.Tensor((heads, length, width), "float16"),
        V: T.Tensor((heads, length, width), "float16"),
        dO: T.Tensor((heads, length, width), "float16"),
        LogSum: T.Tensor((heads, length), "float32"),
        Delta: T.Tensor((heads, length), "float32"),
        dK: T.Tensor((heads, length, width), "float16"),
    ):
        with T.Kernel(length // tile_k, heads, threads=threads) as (bx, head):
            k = T.alloc_shared((tile_k, width), "float16")
            v = T.alloc_shared((tile_k, width), "float16")
            q = T.alloc_shared((tile_q, width), "float16")
            do = T.alloc_shared((tile_q, width), "float16")
            log_sum = T.alloc_shared((tile_q,), "float32")
            delta = T.alloc_shared((tile_q,), "float32")
            slope = T.alloc_shared((tile_k, tile_q), "float16")
            dk = T.alloc_shared((tile_k, width), "float16")
            score = T.alloc_fragment((tile_k, tile_q), "float32")
            back = T.alloc_fragment((tile_k, tile_q), "float32")
            dk_sum = T.alloc_fragment((tile_k, width), "float32")
            T.copy(K[head, bx * tile_k, 0], k)
            T.copy(V[head, bx * tile_k, 0], v)
            T.clear(dk_sum)
            for t in T.Pipelined(length // tile_q, num_stages=num_stages):
                T.copy(Q[head, t * tile_q, 0], q)
                T.copy(LogSum[head, t * tile_q], log_sum)
                T.gemm(
                    k, q, score, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=True
                )
                for i, j in T.Parallel(tile_k, tile_q):
                    score[i, j] = T.exp2(score[i, j] * scale - log_sum[j])
                T.copy(dO[head, t * tile_q, 0], do)
                T.gemm(
                    v, do, back, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=True
                )
                T.copy(Delta[head, t * tile_q], delta)
                for i, j in T.Parallel(tile_k, tile_q):
                    score[i, j] *= (back[i, j] - delta[j]) * scale
                T.copy(score, slope)
                T.gemm(slope, q, dk_sum, policy=T.GemmWarpPolicy.FullRow)
            T.copy(dk_sum, dk)
            T.copy(dk, dK[head, bx * tile_k, 0])

    return gradients


@tilelang.jit
def backward_queries(heads=2, length=128, width=64, tile_q=64, tile_k=32, num_stages=2, guard=True):
    """The gradient of the queries; key tiles above the diagonal are skipped by an if/else."""
    scale = width**-0.5

    @T.prim_func
    def gradients(
        Q: T.Tensor((heads, length, width), "float16"),
        K: T.Tensor((heads, length, width), "float16"),
        V: T.Tensor((heads, length, width), "float16"),
        dO: T.Tensor((heads, length, width), "float16"),
        dQ: T.Tensor((heads, length, width), "float16"),
    ):
        with T.Kernel(length // tile_q, heads, threads=128) as (bx, head):
            q = T.alloc_shared((tile_q, width), "float16")
            do = T.alloc_shared((tile_q, width), "float16")
            k = T.alloc_shared((tile_k, width), "float16")
            v = T.alloc_shared((tile_k, width), "float16")
            slope = T.alloc_shared((tile_q, tile_k), "float16")
            dq = T.alloc_shared((tile_q, width), "float16")
            score = T.alloc_fragment((tile_q, tile_k), "float32")
            back = T.alloc_fragment((tile_q, tile_k), "float32")
            dq_sum = T.alloc_fragment((tile_q, width), "float32")
            T.copy(Q[head, bx * tile_q, 0], q)
            T.copy(dO[head, bx * tile_q, 0], do)
            T.clear(dq_sum)
            for t in T.Pipelined(length // tile_k, num_stages=num_stages):
                if guard:
                    if t * tile_k <= bx * tile_q:
                        T.copy(K[head, t * tile_k, 0], k)
                        T.copy(V[head, t * tile_k, 0], v)
                    else:
                        T.clear(k)
                        T.clear(v)
                else:
                    T.copy(K[head, t * tile_k, 0], k)
                    T.copy(V[head, t * tile_k, 0], v)
                T.gemm(q, k, score, transpose_B=True, clear_accum=True)
                T.gemm(do, v, back, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(tile_q, tile_k):
                    score[i, j] = T.exp2(score[i, j] * scale) * back[i, j]
                T.copy(score, slope)
                T.gemm(slope, k, dq_sum)
            T.copy(dq_sum, dq)
            T.copy(dq, dQ[head, bx * tile_q, 0])

    return gradients


@tilelang.jit
def decode(groups=4, heads=16, length=512, width=64, splits=2, tile_k=64, num_stages=2):
    """One query token; the heads of a group share keys and values, the keys are split."""
    part = length // splits

    @T.prim_func
    def attend(
        Q: T.Tensor((groups, heads, width), "float16"),
        K: T.Tensor((groups, length, width), "float16"),
        V: T.Tensor((groups, length, width), "float16"),
        Mask: T.Tensor((groups, length), "uint8"),
        Out: T.Tensor((groups, splits, heads, width), "float16"),
    ):
        with T.Kernel(groups, splits, threads=128) as (group, split):
            q = T.alloc_shared((heads, width), "float16")
            k = T.alloc_shared((tile_k, width), "float16")
            v = T.alloc_shared((tile_k, width), "float16")
            mask = T.alloc_shared((tile_k,), "uint8")
            weight = T.alloc_shared((heads, tile_k), "float16")
            o = T.alloc_shared((heads, width), "float16")
            score = T.alloc_fragment((heads, tile_k), "float32")
            out = T.alloc_fragment((heads, width), "float32")
            total = T.alloc_fragment((heads,), "float32")
            T.copy(Q[group, 0, 0], q)
            T.clear(out)
            T.clear(total)
            for t in T.Pipelined(part // tile_k, num_stages=num_stages):
                T.copy(K[group, split * part + t * tile_k, 0], k)
                T.copy(V[group, split * part + t * tile_k, 0], v)
                T.copy(Mask[group, split * part + t * tile_k], mask)
                T.gemm(
                    q, k, score, transpose_B=True, policy=T.GemmWarpPolicy.FullCol, clear_accum=True
                )
                for i, j in T.Parallel(heads, tile_k):
                    score[i, j] = T.if_then_else(mask[j] != 0, T.exp2(score[i, j]), 0)
                T.reduce_sum(score, total, dim=1, clear=False)
                T.copy(score, weight)
                T.gemm(weight, v, out, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(heads, width):
                out[i, j] /= total[i]
            T.copy(out, o)
            T.copy(o, Out[group, split, 0, 0])

    return attend


@tilelang.jit
def latent_decode(batch=2, heads=64, length=256, latent=128, rotary=32, tile_k=64, num_stages=2):
    """Keys and values are one latent tile; a narrow rotary part is scored beside it."""

    @T.prim_func
    def attend(
        Q: T.Tensor((batch, heads, latent), "float16"),
        Qr: T.Tensor((batch, heads, rotary), "float16"),
        Latent: T.Tensor((batch, length, latent), "float16"),
        Kr: T.Tensor((batch, length, rotary), "float16"),
        Out: T.Tensor((batch, heads, latent), "float16"),
    ):
        with T.Kernel(batch, threads=256) as sequence:
            q = T.alloc_shared((heads, latent), "float16")
            qr = T.alloc_shared((heads, rotary), "float16")
            kv = T.alloc_shared((tile_k, latent), "float16")
            kr = T.alloc_shared((tile_k, rotary), "float16")
            weight = T.alloc_shared((heads, tile_k), "float16")
            o = T.alloc_shared((heads, latent), "float16")
            score = T.alloc_fragment((heads, tile_k), "float32")
            out = T.alloc_fragment((heads, latent), "float32")
            total = T.alloc_fragment((heads,), "float32")
            T.copy(Q[sequence, 0, 0], q)
            T.copy(Qr[sequence, 0, 0], qr)
            T.clear(out)
            T.clear(total)
            for t in T.Pipelined(length // tile_k, num_stages=num_stages):
                T.copy(Latent[sequence, t * tile_k, 0], kv)
                T.copy(Kr[sequence, t * tile_k, 0], kr)
                T.gemm(
                    q,
                    kv,
                    score,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullCol,
                    clear_accum=True,
                )
                T.gemm(qr, kr, score, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                for i, j in T.Parallel(heads, tile_k):
                    score[i, j] = T.exp2(score[i, j])
                T.reduce_sum(score, total, dim=1, clear=False)
                T.copy(score, weight)
                T.gemm(weight, kv, out, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(heads, latent):
                out[i, j] /= total[i]
            T.copy(out, o)
            T.copy(o, Out[sequence, 0, 0])

    return attend


@tilelang.jit
def paged_decode(pages=32, heads=16, page=64, width=64, per_sequence=4, num_stages=2):
    """Keys are read page by page through a table that is fetched inside the loop."""

    @T.prim_func
    def attend(
        Q: T.Tensor((2, heads, width), "float16"),
        K: T.Tensor((pages, page, width), "float16"),
        V: T.Tensor((pages, page, width), "float16"),
        Table: T.Tensor((2, per_sequence), "int32"),
        Out: T.Tensor((2, heads, width), "float16"),
    ):
        with T.Kernel(2, threads=128) as sequence:
            q = T.alloc_shared((heads, width), "float16")
            k = T.alloc_shared((page, width), "float16")
            v = T.alloc_shared((page, width), "float16")
            weight = T.alloc_shared((heads, page), "float16")
            o = T.alloc_shared((heads, width), "float16")
            score = T.alloc_fragment((heads, page), "float32")
            out = T.alloc_fragment((heads, width), "float32")
            T.copy(Q[sequence, 0, 0], q)
            T.clear(out)
            for t in T.Pipelined(per_sequence, num_stages=num_stages):
                T.copy(K[Table[sequence, t], 0, 0], k)
                T.copy(V[Table[sequence, t], 0, 0], v)
                T.gemm(
                    q, k, score, transpose_B=True, policy=T.GemmWarpPolicy.FullCol, clear_accum=True
                )
                for i, j in T.Parallel(heads, page):
                    score[i, j] = T.exp2(score[i, j])
                T.copy(score, weight)
                T.gemm(weight, v, out, policy=T.GemmWarpPolicy.FullCol)
            T.copy(out, o)
            T.copy(o, Out[sequence, 0, 0])

    return attend
