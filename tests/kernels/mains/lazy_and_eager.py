"""A lazy kernel compiled twice and an eager one, with options, inputs and checks around them."""

import argparse

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[1])
def copy(rows, columns=64, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), dtype)
            T.copy(A, tile)
            T.copy(tile, B)

    return main


@tilelang.jit
def double(A, block: int = 32):
    M, N = T.const("M N")
    A: T.Tensor[[M, N], T.float32]
    B = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        tile = T.alloc_shared((block, N), T.float32)
        T.copy(A[bx * block, 0], tile)
        for i, j in T.Parallel(block, N):
            tile[i, j] = tile[i, j] * 2.0
        T.copy(tile, B[bx * block, 0])
    return B


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=128)
    rows = parser.parse_args().rows

    # the lengths decide how large the second kernel is: they have to stay known
    lengths = torch.tensor([0, 16, 80], dtype=torch.int32, device="cuda")
    longest = int((lengths[1:] - lengths[:-1]).max().item())
    assert longest == 80 - 16
    for size in (rows, longest, rows):
        kernel = copy(size)
        a = torch.randn(size, 64, dtype=torch.float16, device="cuda")
        b = kernel(a)
        assert b.shape == a.shape
        assert b.is_cuda
        assert b.device.type == "cuda"
        torch.testing.assert_close(b, a)
        assert torch.allclose(b, a)
        assert (b - a).abs().max().item() < 1e-3
        assert not torch.isnan(b).any()

    x = torch.rand(256, 512).cuda().requires_grad_()
    y = double(x)
    (x * 2).sum().backward()
    assert torch.equal(y, x * 2)
    print(f"latency {copy(rows).get_profiler().do_bench():.3f} ms, checksum {y.sum().item():.2f}")
    print(y.cpu().numpy().shape, x.grad.clone().shape)


if __name__ == "__main__":
    main()
