"""UB, L1, L0A, L0B and L0C of an Ascend 950 in one kernel of TileLang's Ascend dialect.

The kernel computes ``C = relu(A @ B)``. A core has a cube unit (AIC), which multiplies, and two
vector units (AIV), which do everything else; each memory belongs to one of them. Print what
TileLang makes of it; no NPU and no CANN is needed:

    python examples/alloc_scopes/ascend.py

Look in the printed source for the qualifier that names the memory of each pointer:

* ``__cbuf__`` L1 (``T.alloc_l1``): the tiles of A and B on their way in. Two buffers share one
  arena, ``buf_dyn_l1``, and the loop of two stages keeps two copies of each, so those of B
  start 2 x 128 x 64 = 16384 elements in.
* ``__ca__`` and ``__cb__`` L0A and L0B (``T.alloc_l0a``, ``T.alloc_l0b``): what the cube reads.
* ``__cc__`` L0C (``T.alloc_l0c``): where the cube adds up, 128 x 128 x 4 B = 64 KiB.
* ``__ubuf__`` UB (``T.alloc_shared``; this dialect has no ``alloc_ub``): what the vector units
  read and write. ``C_ub`` is declared with half of the rows because ``T.dual_copy`` gives each
  of the two AIVs its half: 64 x 128 x 4 B = 32 KiB in each one's own UB.
* ``__gm__``: device memory, the kernel's parameters.

The same string means another memory elsewhere: ``T.alloc_shared`` writes the scope
``shared.dyn``, which is UB here and shared memory on an NVIDIA GPU; in the separate adapter
tilelang-ascend that string is L1. ``tilefit scopes`` prints the table.
"""

import tilelang
import tilelang.ascend.language as T


@tilelang.jit(out_idx=[-1], target="ascend")
def ascend_scope_showcase(
    M=1024,
    N=1024,
    K=1024,
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=2,
    num_cores=32,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
):
    """Build the kernel; M, N and K must be multiples of the block sizes."""
    tiles_n = N // block_N

    @T.prim_func
    def showcase(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(num_cores) as core:
            A_l1 = T.alloc_l1((block_M, block_K), dtype)
            B_l1 = T.alloc_l1((block_K, block_N), dtype)
            A_l0 = T.alloc_l0a((block_M, block_K), dtype)
            B_l0 = T.alloc_l0b((block_K, block_N), dtype)
            C_l0 = T.alloc_l0c((block_M, block_N), accum_dtype)
            C_ub = T.alloc_shared((block_M // 2, block_N), accum_dtype)

            for tile in T.Persistent([M // block_M * tiles_n], num_cores, core):
                row = tile // tiles_n * block_M
                col = tile % tiles_n * block_N
                for k in T.Pipelined(K // block_K, num_stages=num_stages):
                    T.copy(A[row, k * block_K], A_l1)
                    T.copy(B[k * block_K, col], B_l1)
                    T.copy(A_l1, A_l0)
                    T.copy(B_l1, B_l0)
                    T.gemm(A_l0, B_l0, C_l0, clear_accum=k == 0)

                T.dual_copy(C_l0, C_ub)
                with T.SimtVF(threads=threads):
                    for i, j in T.Parallel(block_M // 2, block_N):
                        C_ub[i, j] = T.max(C_ub[i, j], 0)
                T.dual_copy(C_ub, C[row : row + block_M, col : col + block_N])

    return showcase


if __name__ == "__main__":
    with tilelang.tvm.target.Target({"kind": "ascend"}) as target:
        print(tilelang.lower(ascend_scope_showcase.get_tir(), target=target).kernel_source)
