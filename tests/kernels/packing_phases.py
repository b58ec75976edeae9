"""Kernels whose buffers live in phases, so that the packer has holes to choose from."""

import tilelang
import tilelang.language as T

ROWS = 64


def _holes(lower, upper, keep=32, last=64):
    """Return a kernel that leaves two holes and then needs a buffer that fits both."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 1024), "float16"),
        B: T.Tensor((512, 1024), "float16"),
    ):
        with T.Kernel(8, threads=128) as bx:
            first = T.alloc_shared((ROWS, lower), "float16")
            held = T.alloc_shared((ROWS, keep), "float16")
            second = T.alloc_shared((ROWS, upper), "float16")
            wall = T.alloc_shared((ROWS, keep), "float16")
            third = T.alloc_shared((ROWS, last), "float16")
            T.copy(A[bx * ROWS, 0], first)
            T.copy(A[bx * ROWS, 0], held)
            T.copy(A[bx * ROWS, 0], second)
            T.copy(A[bx * ROWS, 64], wall)
            T.copy(first, B[bx * ROWS, 0])
            T.copy(second, B[bx * ROWS, 256])
            T.copy(A[bx * ROWS, 512], third)
            T.copy(third, B[bx * ROWS, 512])
            T.copy(held, B[bx * ROWS, 640])
            T.copy(wall, B[bx * ROWS, 768])

    return main


@tilelang.jit
def tight_above(lower=256, upper=128):
    """The wide hole is below, the tight one above: the tight one leaves less over."""
    return _holes(lower, upper)


@tilelang.jit
def tight_below(lower=128, upper=256):
    """The tight hole is below, the wide one above."""
    return _holes(lower, upper)


@tilelang.jit
def one_statement():
    """One statement, no loop, reads a buffer for the last time and writes the next one."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(8, threads=128) as bx:
            one = T.alloc_shared((16, 64), "float16")
            two = T.alloc_shared((16, 64), "float16")
            three = T.alloc_shared((16, 64), "float16")
            T.copy(A[bx * 16, 0], one)
            T.copy(one, two)
            T.copy(two, three)
            T.copy(three, B[bx * 16, 0])

    return main


@tilelang.jit
def touching(steps=4):
    """Each buffer dies in the statement before the next one is born, or in the very same one."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 256), "float16"),
        B: T.Tensor((512, 256), "float16"),
    ):
        with T.Kernel(8, threads=128) as bx:
            one = T.alloc_shared((ROWS, 64), "float16")
            two = T.alloc_shared((ROWS, 64), "float16")
            three = T.alloc_shared((ROWS, 64), "float16")
            four = T.alloc_shared((ROWS, 64), "float16")
            T.copy(A[bx * ROWS, 0], one)
            T.copy(one, two)
            T.copy(two, B[bx * ROWS, 0])
            T.copy(A[bx * ROWS, 64], three)
            T.copy(three, B[bx * ROWS, 64])
            T.copy(A[bx * ROWS, 128], four)
            for _ in T.serial(steps):
                T.copy(four, B[bx * ROWS, 128])

    return main


@tilelang.jit
def growing(small=32, large=128):
    """The last hole touches the top: a larger buffer starts in it and the array grows."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
    ):
        with T.Kernel(8, threads=128) as bx:
            base = T.alloc_shared((ROWS, small), "float16")
            tail = T.alloc_shared((ROWS, small), "float16")
            big = T.alloc_shared((ROWS, large), "float16")
            T.copy(A[bx * ROWS, 0], base)
            T.copy(A[bx * ROWS, 128], tail)
            T.copy(tail, B[bx * ROWS, 128])
            T.copy(A[bx * ROWS, 256], big)
            T.copy(big, B[bx * ROWS, 256])
            T.copy(base, B[bx * ROWS, 0])

    return main


@tilelang.jit
def branches(limit=4):
    """Branches in branches: a buffer of a branch shares with one behind it."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
        sel: T.Tensor((8,), "int32"),
    ):
        with T.Kernel(8, threads=128) as bx:
            before = T.alloc_shared((ROWS, 64), "float16")
            outer = T.alloc_shared((ROWS, 64), "float16")
            inner = T.alloc_shared((ROWS, 128), "float16")
            after = T.alloc_shared((ROWS, 192), "float16")
            T.copy(A[bx * ROWS, 0], before)
            if sel[bx] > 0:
                T.copy(A[bx * ROWS, 64], outer)
                if sel[bx] > limit:
                    T.copy(A[bx * ROWS, 128], inner)
                    T.copy(inner, B[bx * ROWS, 128])
                else:
                    T.copy(before, B[bx * ROWS, 64])
                T.copy(outer, B[bx * ROWS, 0])
            T.copy(A[bx * ROWS, 256], after)
            T.copy(after, B[bx * ROWS, 256])

    return main


@tilelang.jit
def loops(rounds=3):
    """Loops in loops, serial and while; what a loop uses lives as long as the loop."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
        count: T.Tensor((8,), "int32"),
    ):
        with T.Kernel(8, threads=128) as bx:
            table = T.alloc_shared((ROWS, 32), "float16")
            ping = T.alloc_shared((ROWS, 64), "float16")
            pong = T.alloc_shared((ROWS, 64), "float16")
            tile = T.alloc_shared((ROWS, 96), "float16")
            late = T.alloc_shared((ROWS, 128), "float16")
            turn = T.alloc_var("int32")
            T.copy(A[bx * ROWS, 0], table)
            for i in T.serial(rounds):
                T.copy(A[bx * ROWS, i * 64], ping)
                for j in T.serial(rounds):
                    T.copy(ping, pong)
                    T.copy(pong, B[bx * ROWS, j * 64])
            turn = 0
            while turn < count[bx]:
                T.copy(A[bx * ROWS, 256], tile)
                T.copy(tile, B[bx * ROWS, 256])
                turn = turn + 1
            T.copy(A[bx * ROWS, 384], late)
            T.copy(late, B[bx * ROWS, 384])
            T.copy(table, B[bx * ROWS, 0])

    return main


@tilelang.jit
def sizes():
    """Sizes that are no multiple of 16 bytes, and several elements sizes at once."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 64), "float16"),
        F: T.Tensor((512,), "float32"),
        H: T.Tensor((512,), "int8"),
        B: T.Tensor((512, 64), "float16"),
        G: T.Tensor((512,), "float32"),
        J: T.Tensor((512,), "int8"),
    ):
        with T.Kernel(8, threads=128) as bx:
            bytes7 = T.alloc_shared((7,), "int8")
            floats5 = T.alloc_shared((5,), "float32")
            halves = T.alloc_shared((3, 64), "float16")
            bytes33 = T.alloc_shared((33,), "int8")
            more = T.alloc_shared((9,), "float32")
            for i in T.Parallel(7):
                bytes7[i] = H[bx * 64 + i]
            for i in T.Parallel(5):
                floats5[i] = F[bx * 64 + i]
            for i in T.Parallel(7):
                J[bx * 64 + i] = bytes7[6 - i]
            for i, j in T.Parallel(3, 64):
                halves[i, j] = A[bx * 64 + i, j]
            for i in T.Parallel(33):
                bytes33[i] = H[bx * 64 + i]
            for i, j in T.Parallel(3, 64):
                B[bx * 64 + i, j] = halves[2 - i, j]
            for i in T.Parallel(9):
                more[i] = F[bx * 64 + i]
            for i in T.Parallel(33):
                J[bx * 64 + i] = bytes33[32 - i]
            for i in T.Parallel(9):
                G[bx * 64 + i] = more[8 - i] + floats5[0]

    return main


@tilelang.jit
def ties(rounds=3):
    """Born in one loop: the largest goes first, and of two alike the one whose name does."""

    @T.prim_func
    def main(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
    ):
        with T.Kernel(8, threads=128) as bx:
            zeta = T.alloc_shared((ROWS, 32), "float16")
            alpha = T.alloc_shared((ROWS, 32), "float16")
            wide = T.alloc_shared((ROWS, 96), "float16")
            for i in T.serial(rounds):
                T.copy(A[bx * ROWS, i * 32], zeta)
                T.copy(A[bx * ROWS, i * 64], alpha)
                T.copy(A[bx * ROWS, i * 96], wide)
                T.copy(zeta, B[bx * ROWS, i * 32])
                T.copy(alpha, B[bx * ROWS, i * 64])
                T.copy(wide, B[bx * ROWS, i * 96])

    return main
