"""Autotuned kernels: one with complete defaults, one without, one through an AutoTuner."""

import tilelang
import tilelang.language as T
import torch
from tilelang.autotuner import AutoTuner

CONFIGS = [{"rows": rows, "threads": threads} for rows in (96, 48, 24) for threads in (128, 64)]


def body(rows, columns, threads):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.autotune(configs=CONFIGS)
@tilelang.jit(out_idx=[1])
def with_defaults(columns, rows=32, threads=128):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.autotune(configs=lambda columns: CONFIGS[2:], warmup=10, rep=10)
@tilelang.jit(out_idx=[1])
def without_defaults(columns, rows=None, threads=None):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


def by_tuner(columns):
    def candidate(rows=None, threads=None):
        return body(rows, columns, threads)

    tuner = AutoTuner.from_kernel(kernel=candidate, configs=CONFIGS).set_compile_args(out_idx=[1])
    return tuner.set_profile_args(warmup=3, rep=5).run(warmup=3, rep=5)


if __name__ == "__main__":
    kernel = with_defaults(64)
    kernel(torch.empty(32, 64, device="cuda", dtype=torch.float16))
    assert kernel.latency > 0
    without_defaults(64)
    result = by_tuner(128)
    print(result.config, result.latency, result.kernel.get_kernel_source())
