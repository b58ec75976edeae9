"""Shared, fragment, local, var and global in one TileLang kernel, and where each one lives.

The kernel computes ``C = scale * (A @ B)``. Print what TileLang makes of it; no GPU is needed:

    python examples/alloc_scopes/scopes.py            # sm_80
    python examples/alloc_scopes/scopes.py sm_90a

Look in the printed CUDA source for:

* ``A_s`` and ``B_s`` (``T.alloc_shared``): offsets into ``buf_dyn_shmem``, the one
  ``extern __shared__`` array of the block. With ``num_stages=2`` each has two copies, so
  ``B_s`` starts at 2 x 128 x 32 x 2 B = 16384.
* ``C_f`` (``T.alloc_fragment``): written here in the shape of the block's tile, 128 x 128,
  but declared per thread below ``__launch_bounds__``: 128 x 128 / 128 threads = 128 floats
  each, that is 128 registers.
* ``scratch`` (``T.alloc_local``): a small array that every thread has for itself.
* ``scale`` (``T.alloc_var``): one plain scalar per thread, no array.
* ``product`` (``T.alloc_global``): no memory of the block at all. It has become one more
  pointer parameter of the kernel, and the host allocates it in device memory. Prefer a tensor
  parameter of your own in real code, so that your framework's allocator owns it.

On sm_90a the launch bound is 256: TileLang adds 128 threads that only load tiles. The tile of
``C_f`` stays split over the 128 threads that compute.
"""

import sys

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def scope_showcase(
    M=1024,
    N=1024,
    K=1024,
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=2,
    threads=128,
    terms=8,
    dtype="float16",
    accum_dtype="float32",
):
    """Build the kernel; ``scale`` is the sum of ``terms`` halvings, 1 - 2**-terms."""

    @T.prim_func
    def showcase(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_f = T.alloc_fragment((block_M, block_N), accum_dtype)
            scratch = T.alloc_local((terms,), accum_dtype)
            scale = T.alloc_var(accum_dtype, init=0.0)
            product = T.alloc_global((M, N), accum_dtype)

            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)

            # out to device memory and back: every thread reads what it wrote itself
            T.copy(C_f, product[by * block_M, bx * block_N])
            T.copy(product[by * block_M, bx * block_N], C_f)

            scratch[0] = 0.5
            for i in T.serial(1, terms):
                scratch[i] = scratch[i - 1] * 0.5
            for i in T.serial(terms):
                scale += scratch[i]

            for i, j in T.Parallel(block_M, block_N):
                C_f[i, j] = C_f[i, j] * scale
            T.copy(C_f, C[by * block_M, bx * block_N])

    return showcase


if __name__ == "__main__":
    arch = sys.argv[1] if len(sys.argv) > 1 else "sm_80"
    with tilelang.tvm.target.Target({"kind": "cuda", "arch": arch}) as target:
        print(tilelang.lower(scope_showcase.get_tir(), target=target).kernel_source)
