"""Linear attention in chunks: a state that is carried along, and intra-chunk products."""

import tilelang
import tilelang.language as T


@tilelang.jit
def chunked(heads=4, length=256, key=64, value=64, chunk=64, num_stages=2):
    """The state starts and ends in shared memory and passes through it once a chunk."""

    @T.prim_func
    def attend(
        Q: T.Tensor((heads, length, key), "float16"),
        K: T.Tensor((heads, length, key), "float16"),
        V: T.Tensor((heads, length, value), "float16"),
        Start: T.Tensor((heads, key, value), "float16"),
        Out: T.Tensor((heads, length, value), "float16"),
        Last: T.Tensor((heads, key, value), "float16"),
    ):
        with T.Kernel(heads, threads=128) as head:
            start = T.alloc_shared((key, value), "float16")
            q = T.alloc_shared((chunk, key), "float16")
            k = T.alloc_shared((chunk, key), "float16")
            v = T.alloc_shared((chunk, value), "float16")
            state = T.alloc_shared((key, value), "float16")
            o = T.alloc_shared((chunk, value), "float16")
            last = T.alloc_shared((key, value), "float16")
            state_sum = T.alloc_fragment((key, value), "float32")
            out = T.alloc_fragment((chunk, value), "float32")
            T.copy(Start[head, 0, 0], start)
            T.copy(start, state_sum)
            for t in T.Pipelined(length // chunk, num_stages=num_stages):
                T.copy(Q[head, t * chunk, 0], q)
                T.copy(K[head, t * chunk, 0], k)
                T.copy(V[head, t * chunk, 0], v)
                T.copy(state_sum, state)
                T.gemm(q, state, out, clear_accum=True)
                T.gemm(k, v, state_sum, transpose_A=True)
                T.copy(out, o)
                T.copy(o, Out[head, t * chunk, 0])
            T.copy(state_sum, last)
            T.copy(last, Last[head, 0, 0])

    return attend


@tilelang.jit
def decayed_output(heads=4, length=128, key=128, value=64, chunk=64, part=32, num_stages=2):
    """Decays are loaded one by one ahead of a loop; a second product follows the loop."""

    @T.prim_func
    def output(
        Q: T.Tensor((heads, length, key), "float16"),
        K: T.Tensor((heads, length, key), "float16"),
        V: T.Tensor((heads, length, value), "float16"),
        H: T.Tensor((heads, length // chunk, key, value), "float16"),
        G: T.Tensor((heads, length), "float32"),
        Out: T.Tensor((heads, length, value), "float16"),
    ):
        with T.Kernel(length // chunk, heads, threads=128) as (bt, head):
            q = T.alloc_shared((chunk, part), "float16")
            k = T.alloc_shared((chunk, part), "float16")
            h = T.alloc_shared((part, value), "float16")
            g = T.alloc_shared((chunk,), "float32")
            score = T.alloc_shared((chunk, chunk), "float16")
            v = T.alloc_shared((chunk, value), "float16")
            o = T.alloc_shared((chunk, value), "float16")
            score_sum = T.alloc_fragment((chunk, chunk), "float32")
            out = T.alloc_fragment((chunk, value), "float32")
            T.clear(score_sum)
            T.clear(out)
            for t in T.Pipelined(key // part, num_stages=num_stages):
                T.copy(Q[head, bt * chunk, t * part], q)
                T.copy(K[head, bt * chunk, t * part], k)
                T.copy(H[head, bt, t * part, 0], h)
                T.gemm(q, h, out)
                T.gemm(q, k, score_sum, transpose_B=True)
            for i in T.Parallel(chunk):
                g[i] = G[head, bt * chunk + i]
            for i, j in T.Parallel(chunk, chunk):
                score[i, j] = score_sum[i, j] * T.exp2(g[i] - g[j])
            T.copy(V[head, bt * chunk, 0], v)
            T.gemm(score, v, out)
            T.copy(out, o)
            T.copy(o, Out[head, bt * chunk, 0])

    return output


@tilelang.jit
def state_passing(heads=4, length=256, key=64, value=64, chunk=64, num_stages=2):
    """Only the state moves: decays come by a plain store, each state leaves as it stands."""

    @T.prim_func
    def states(
        K: T.Tensor((heads, length, key), "float16"),
        V: T.Tensor((heads, length, value), "float16"),
        G: T.Tensor((heads, length), "float32"),
        H: T.Tensor((heads, length // chunk, key, value), "float16"),
    ):
        with T.Kernel(heads, threads=128) as head:
            k = T.alloc_shared((chunk, key), "float16")
            v = T.alloc_shared((chunk, value), "float16")
            g = T.alloc_shared((chunk,), "float32")
            faded = T.alloc_shared((chunk, value), "float16")
            h = T.alloc_shared((key, value), "float16")
            state = T.alloc_fragment((key, value), "float32")
            T.clear(state)
            for t in T.Pipelined(length // chunk, num_stages=num_stages):
                T.copy(K[head, t * chunk, 0], k)
                T.copy(V[head, t * chunk, 0], v)
                for i in T.Parallel(chunk):
                    g[i] = G[head, t * chunk + i]
                T.copy(state, h)
                T.copy(h, H[head, t, 0, 0])
                for i, j in T.Parallel(chunk, value):
                    faded[i, j] = v[i, j] * T.exp2(g[chunk - 1] - g[i])
                T.gemm(k, faded, state, transpose_A=True)

    return states
