"""A file of tests, run by tilelang.testing.main()."""

import pytest
import tilelang
import tilelang.language as T
import tilelang.testing
import torch


@tilelang.jit(out_idx=[1])
def copy(rows, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.testing.requires_cuda
def test_small():
    a = torch.ones(16, 64, dtype=torch.float16, device="cuda")
    tilelang.testing.torch_assert_close(copy(16)(a), a)


@pytest.mark.parametrize(("rows", "columns"), [(32, 128), (64, 256)])
def test_sizes(rows, columns):
    copy(rows, columns)


def test_that_fails():
    raise RuntimeError("the weather is bad")


def test_after_it():
    copy(48)


if __name__ == "__main__":
    tilelang.testing.main()
