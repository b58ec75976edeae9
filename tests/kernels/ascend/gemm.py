"""Matrix multiplications on the cube of an Ascend 950: what lies in L1, L0A, L0B and L0C."""

import tilelang
import tilelang.ascend.language as T


def plain(block_m=128, block_n=128, block_k=64, stages=2, dtype="float16", accum="float32"):
    """C = A @ B.T, one tile a core; the operands pass through hidden slots of L0A and L0B."""
    m, n, k = 2 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), accum)
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), accum)
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[row, i * block_k], a)
                T.copy(B[col, i * block_k], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[row, col])

    return multiply


def serial(block_m=128, block_n=64, block_k=128, dtype="bfloat16"):
    """The same with a plain loop: nothing is multiplied."""
    m, n, k = 2 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.serial(k // block_k):
                T.copy(A[row, i * block_k], a)
                T.copy(B[col, i * block_k], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[row, col])

    return multiply


def persistent(block_m=128, block_n=256, block_k=64, stages=2, outer=0, dtype="bfloat16"):
    """Each core works off several tiles; the accumulator lives through the inner loop."""
    m, n, k = 4 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(2) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            for tile in T.Persistent([8], 2, core, num_stages=outer):
                row = tile // 2 * block_m
                col = tile % 2 * block_n
                for i in T.Pipelined(k // block_k, num_stages=stages):
                    T.copy(A[row, i * block_k], a)
                    T.copy(B[col, i * block_k], b)
                    T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
                T.copy(c, C[row, col])

    return multiply


def one_slice(block_m=128, block_n=256, block_k=128, outer=2, dtype="float16"):
    """K in one piece: the accumulator is fresh in each outer iteration and takes turns too."""
    m, n = 4 * block_m, 2 * block_n

    @T.prim_func
    def multiply(
        A: T.Tensor((m, block_k), dtype),
        B: T.Tensor((n, block_k), dtype),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(2) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            for tile in T.Persistent([8], 2, core, num_stages=outer):
                row = tile // 2 * block_m
                col = tile % 2 * block_n
                T.copy(A[row, 0], a)
                T.copy(B[col, 0], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=True)
                T.copy(c, C[row, col])

    return multiply


def explicit_l0(block_m=128, block_n=128, block_k=64, stages=2, dtype="float16"):
    """The author moves the operands into L0A and L0B himself."""
    m, n, k = 2 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            a0 = T.alloc_l0a((block_m, block_k), dtype)
            b0 = T.alloc_l0b((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[row, i * block_k], a)
                T.copy(B[col, i * block_k], b)
                T.copy(a, a0)
                T.copy(b, b0)
                T.gemm(a0, b0, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[row, col])

    return multiply


def sub_slices(block_m=128, block_n=128, block_k=256, sub=64, stages=2, dtype="float16"):
    """A loop in a loop: L1 tiles wait outside, slices of them pass L0A and L0B inside."""
    m, n, k = 2 * block_m, 2 * block_n, 4 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            a0 = T.alloc_l0a((block_m, sub), dtype)
            b0 = T.alloc_l0b((block_n, sub), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[row, i * block_k], a)
                T.copy(B[col, i * block_k], b)
                for j in T.Pipelined(block_k // sub, num_stages=stages):
                    T.copy(a[:, j * sub : (j + 1) * sub], a0)
                    T.copy(b[:, j * sub : (j + 1) * sub], b0)
                    T.gemm(a0, b0, c, transpose_B=True, clear_accum=(i == 0) & (j == 0))
            T.copy(c, C[row, col])

    return multiply


def untransposed_b(block_m=64, block_n=128, block_k=64, stages=2, dtype="float16"):
    """B as (K, N), by way of L0B; straight from L1 the compiler takes only the other form."""
    m, n, k = 2 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_k, block_n), dtype)
            a0 = T.alloc_l0a((block_m, block_k), dtype)
            b0 = T.alloc_l0b((block_k, block_n), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[row, i * block_k], a)
                T.copy(B[i * block_k, col], b)
                T.copy(a, a0)
                T.copy(b, b0)
                T.gemm(a0, b0, c, clear_accum=i == 0)
            T.copy(c, C[row, col])

    return multiply


def transposed_a(block_m=128, block_n=128, block_k=64, stages=2, dtype="float16"):
    """A as (K, M), by way of L0A."""
    m, n, k = 2 * block_m, 2 * block_n, 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((k, m), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_k, block_m), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            a0 = T.alloc_l0a((block_k, block_m), dtype)
            b0 = T.alloc_l0b((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[i * block_k, row], a)
                T.copy(B[col, i * block_k], b)
                T.copy(a, a0)
                T.copy(b, b0)
                T.gemm(a0, b0, c, transpose_A=True, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[row, col])

    return multiply


def odd(block_m=33, block_n=17, block_k=48, stages=2, dtype="float8_e4m3fn"):
    """Sizes that no fractal divides: the tiles are padded."""
    k = 4 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((block_m, k), dtype),
        B: T.Tensor((block_n, k), dtype),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            a0 = T.alloc_l0a((block_m, block_k), dtype)
            b0 = T.alloc_l0b((block_n, block_k), dtype)
            c = T.alloc_l0c((block_m, block_n), "float32")
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[0, i * block_k], a)
                T.copy(B[0, i * block_k], b)
                T.copy(a, a0)
                T.copy(b, b0)
                T.gemm(a0, b0, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[0, 0])

    return multiply


def scaled(block_m=128, block_n=128, block_k=256, stages=2, dtype="float4_e2m1fn"):
    """Block-scaled operands: scales lie in L1 beside the data."""
    m, n, k = 2 * block_m, 2 * block_n, 4 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor((n, k), dtype),
        SA: T.Tensor((m, k // 64), "uint16"),
        SB: T.Tensor((n, k // 64), "uint16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            sa = T.alloc_l1((block_m, block_k // 64), "uint16")
            sb = T.alloc_l1((block_n, block_k // 64), "uint16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[row, i * block_k], a)
                T.copy(B[col, i * block_k], b)
                T.copy(SA[row, i * block_k // 64], sa)
                T.copy(SB[col, i * block_k // 64], sb)
                T.gemm_blockscaled(a, b, c, sa, sb, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[row, col])

    return multiply


def scaled_l0(block_m=128, block_n=128, block_k=128, stages=2, dtype="float8_e4m3fn"):
    """Block-scaled operands by way of L0A and L0B: the scales' handles have no bytes there."""
    m, n, k = 2 * block_m, 2 * block_n, 4 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor((n, k), dtype),
        SA: T.Tensor((m, k // 64), "uint16"),
        SB: T.Tensor((n, k // 64), "uint16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(4) as core:
            a = T.alloc_l1((block_m, block_k), dtype)
            b = T.alloc_l1((block_n, block_k), dtype)
            sa = T.alloc_l1((block_m, block_k // 64), "uint16")
            sb = T.alloc_l1((block_n, block_k // 64), "uint16")
            a0 = T.alloc_l0a((block_m, block_k), dtype)
            b0 = T.alloc_l0b((block_n, block_k), dtype)
            a0_scales = T.alloc_l0a_sf(a0, "uint16")
            b0_scales = T.alloc_l0b_sf(b0, "uint16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            row = core // 2 * block_m
            col = core % 2 * block_n
            for i in T.Pipelined(k // block_k, num_stages=stages):
                T.copy(A[row, i * block_k], a)
                T.copy(B[col, i * block_k], b)
                T.copy(SA[row, i * block_k // 64], sa)
                T.copy(SB[col, i * block_k // 64], sb)
                T.copy(a, a0)
                T.copy(b, b0)
                T.copy(sa, a0_scales)
                T.copy(sb, b0_scales)
                T.gemm_blockscaled(
                    a0, b0, c, a0_scales, b0_scales, transpose_B=True, clear_accum=i == 0
                )
            T.copy(c, C[row, col])

    return multiply


def two_products(block=128, narrow=32, block_k=64, dtype="float16"):
    """Two multiplications of different width, one after the other: slots in turn."""

    @T.prim_func
    def multiply(
        A: T.Tensor((block, 512), dtype),
        B: T.Tensor((block, 512), dtype),
        D: T.Tensor((narrow, 512), dtype),
        C: T.Tensor((block, block), "float32"),
        E: T.Tensor((block, narrow), "float32"),
    ):
        with T.Kernel(1):
            a = T.alloc_l1((block, block_k), dtype)
            b = T.alloc_l1((block, block_k), dtype)
            d = T.alloc_l1((narrow, block_k), dtype)
            c = T.alloc_l0c((block, block), "float32")
            e = T.alloc_l0c((block, narrow), "float32")
            for i in T.Pipelined(512 // block_k, num_stages=2):
                T.copy(A[0, i * block_k], a)
                T.copy(B[0, i * block_k], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[0, 0])
            for j in T.Pipelined(512 // block_k, num_stages=2):
                T.copy(A[0, j * block_k], a)
                T.copy(D[0, j * block_k], d)
                T.gemm(a, d, e, transpose_B=True, clear_accum=j == 0)
            T.copy(e, E[0, 0])

    return multiply


@tilelang.jit(target="ascend", pass_configs={"tl.enable_auto_schedule": False})
def unscheduled(block_m=128, block_n=128, block_k=64):
    """The scheduler turned off: the author's order, one version of everything."""
    k = 8 * block_k

    @T.prim_func
    def multiply(
        A: T.Tensor((block_m, k), "float16"),
        B: T.Tensor((block_n, k), "float16"),
        C: T.Tensor((block_m, block_n), "float32"),
    ):
        with T.Kernel(1), T.Cube():
            a = T.alloc_l1((block_m, block_k), "float16")
            b = T.alloc_l1((block_n, block_k), "float16")
            c = T.alloc_l0c((block_m, block_n), "float32")
            for i in T.serial(8):
                T.copy(A[0, i * block_k], a)
                T.copy(B[0, i * block_k], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=i == 0)
            T.copy(c, C[0, 0])

    return multiply
