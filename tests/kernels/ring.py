"""num_stages is the depth of a ring written by hand, not of a T.Pipelined."""

import tilelang
import tilelang.language as T


@tilelang.jit
def ring(M=1024, N=1024, block=128, num_stages=3, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(M // block, threads=128) as bx:
            s = T.alloc_shared((num_stages, block, block), dtype)
            for k in T.serial(N // block):
                for i, j in T.Parallel(block, block):
                    s[k % num_stages, i, j] = A[bx * block + i, k * block + j]
                for i, j in T.Parallel(block, block):
                    B[bx * block + i, k * block + j] = s[k % num_stages, j, i]

    return main
