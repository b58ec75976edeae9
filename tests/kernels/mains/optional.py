"""Uses packages that may not be installed, for its reference and its inputs."""

import importlib.util

import einops
import flash_attn_that_nobody_installs as flash
import tilelang
import tilelang.language as T
import torch
import triton
import triton.language as tl
from flash_attn_that_nobody_installs.ops import softmax as other_softmax

try:
    import fast_path_that_nobody_installs

    FAST = bool(fast_path_that_nobody_installs)
except ImportError:
    FAST = False


@triton.jit
def reference_kernel(x_ptr, n: tl.constexpr):
    tl.store(x_ptr, tl.load(x_ptr) + n)


class Wrapper(flash.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size


@tilelang.jit(out_idx=[1])
def copy(rows, columns):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)

    return main


if __name__ == "__main__":
    assert not FAST
    assert importlib.util.find_spec("another_that_nobody_installs") is None
    assert triton.runtime.driver.active.get_current_target().backend == "cuda"
    x = torch.randn(4, 8, 16, 64, dtype=torch.float16, device="cuda")
    flat = einops.rearrange(x, "b s h d -> (b s) (h d)")
    reference_kernel[(triton.cdiv(flat.shape[0], 32),)](flat, 3)
    out, lse = flash.flash_attn_func(x, x, x, causal=True)
    torch.testing.assert_close(out + 1, other_softmax(lse))
    assert torch.matmul(out, x.transpose(-1, -2)).sum().item() < 1e-2
    assert Wrapper(3).size == 3
    # 4 x 8 rows of 16 x 64
    copy(flat.shape[0], flat.shape[1] // triton.next_power_of_2(15))(flat)
