"""Decoding over a latent cache: keys and values are one wide tile, a rotary part lies beside it."""

import tilelang
import tilelang.language as T

COLUMNS = T.GemmWarpPolicy.FullCol


@tilelang.jit(out_idx=[-1])
def decode(
    batch=8, heads=128, cache=4096, latent=512, rotary=64, tile_h=64, tile_n=64, num_stages=2
):
    """Heads share what they read, so a block holds the queries of `tile_h` of them."""
    half, full = "float16", "float32"

    @T.prim_func
    def main(
        queries: T.Tensor([batch, heads, latent], half),
        turned: T.Tensor([batch, heads, rotary], half),
        kept: T.Tensor([batch, cache, latent], half),
        kept_turned: T.Tensor([batch, cache, rotary], half),
        out: T.Tensor([batch, heads, latent], half),
    ):
        with T.Kernel(heads // tile_h, batch, threads=128) as (by, bx):
            q = T.alloc_shared([tile_h, latent], half)
            q_turned = T.alloc_shared([tile_h, rotary], half)
            kv = T.alloc_shared([tile_n, latent], half)
            k_turned = T.alloc_shared([tile_n, rotary], half)
            weights = T.alloc_shared([tile_h, tile_n], half)
            scores = T.alloc_fragment([tile_h, tile_n], full)
            total = T.alloc_fragment([tile_h, latent], full)
            T.copy(queries[bx, by * tile_h : (by + 1) * tile_h, :], q)
            T.copy(turned[bx, by * tile_h : (by + 1) * tile_h, :], q_turned)
            T.clear(total)
            for n in T.Pipelined(T.ceildiv(cache, tile_n), num_stages=num_stages):
                T.copy(kept[bx, n * tile_n : (n + 1) * tile_n, :], kv)
                T.copy(kept_turned[bx, n * tile_n : (n + 1) * tile_n, :], k_turned)
                T.clear(scores)
                T.gemm(q, kv, scores, transpose_B=True, policy=COLUMNS)
                T.gemm(q_turned, k_turned, scores, transpose_B=True, policy=COLUMNS)
                T.copy(scores, weights)
                T.gemm(weights, kv, total, policy=COLUMNS)
            T.copy(total, out[bx, by * tile_h : (by + 1) * tile_h, :])

    return main
