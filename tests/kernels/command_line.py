"""A kernel whose sizes come from a command line, at its defaults where nothing is given."""

import argparse

import tilelang.language as T

parser = argparse.ArgumentParser(description="copies rows")
sizes = parser.add_argument_group("sizes")
sizes.add_argument("--rows", "-r", type=int, default=1024)
parser.add_argument("--block-size", dest="block", type=int, default=32)
parser.add_argument("--double", action="store_true")
parser.add_argument("--width", type=int)
parser.set_defaults(width=64)
options, _ = parser.parse_known_args([])


def copy(rows, block, width=64):
    """The factory of the kernel below."""

    @T.prim_func
    def main(A: T.Tensor((rows, width), "float16"), B: T.Tensor((rows, width), "float16")):
        with T.Kernel(rows // block, threads=128) as bx:
            tile = T.alloc_shared((block, width), "float16")
            T.copy(A[bx * block, 0], tile)
            T.copy(tile, B[bx * block, 0])

    return main


finished = copy(options.rows, 2 * options.block if options.double else options.block, options.width)
