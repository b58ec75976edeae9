"""A matrix product whose accumulator lives in Blackwell's tensor memory (TMEM).

TMEM is a memory of its own beside shared memory and registers: 512 columns x 128 lanes x 32 bit
per block. ``T.gemm`` adds up there, so the loop over K holds no accumulator in registers.
Print what TileLang makes of it; no GPU is needed:

    python examples/alloc_scopes/tmem.py              # sm_100a

Look in the printed CUDA source for:

* ``tl::tmem_allocate(..., 128)``: the tile of 128 x 128 float32 takes 128 of the 512 columns,
  one column per tile column, one lane per tile row. Columns are handed out in powers of two
  from 32.
* ``__shared__ ... uint C_t[1]``: all that shared memory holds of ``C_t`` is 4 bytes, the address
  of those columns. Do not count its 64 KiB against the shared memory budget.
* ``mbar``: the tensor core works on its own and reports here (``T.alloc_barrier``, 8 B of
  shared memory each; with ``num_stages=2`` TileLang makes two).
* ``tl::tcgen05_ld_...<128, ...>``: the one trip from TMEM to registers, ``C_f``, 128 x 128 / 128
  threads = 128 floats per thread, because an epilogue cannot read TMEM directly.
* ``tl::tmem_deallocate``: TileLang hands the columns back at the end.
"""

import sys

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def tmem_accumulator(
    M=1024,
    N=1024,
    K=1024,
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """Build the kernel for ``C = A @ B.T``."""

    @T.prim_func
    def tmem_gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K), dtype)
            C_t = T.alloc_tmem((block_M, block_N), accum_dtype)
            C_f = T.alloc_fragment((block_M, block_N), accum_dtype)
            mbar = T.alloc_barrier(1)

            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[bx * block_N, k * block_K], B_s)
                T.gemm(A_s, B_s, C_t, transpose_B=True, clear_accum=k == 0, mbar=mbar)

            T.copy(C_t, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return tmem_gemm


if __name__ == "__main__":
    arch = sys.argv[1] if len(sys.argv) > 1 else "sm_100a"
    with tilelang.tvm.target.Target({"kind": "cuda", "arch": arch}) as target:
        print(tilelang.lower(tmem_accumulator.get_tir(), target=target).kernel_source)
