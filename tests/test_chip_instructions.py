"""Instructions that a chip lacks are told by an operator's whole name."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilefit

pytestmark = [pytest.mark.tilelang, pytest.mark.filterwarnings("ignore")]

SCALE = """
import tilelang
import tilelang.language as T

@tilelang.jit
def scale(M=1024, N=128, BM=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, BM), threads=128) as bx:
            T.{call}
            s = T.alloc_shared((BM, N), "float16")
            T.copy(A[bx * BM, 0], s)
            for i, j in T.Parallel(BM, N):
                s[i, j] = s[i, j] * T.float16(2)
            T.copy(s, C[bx * BM, 0])

    return main
"""


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        ("no_set_max_nreg()", "fits"),  # asks for nothing: the tile is 64 x 128 x 2 B = 16 KiB
        ("set_max_nreg(240, 1)", "cannot-lower"),  # PTX ISA: setmaxnreg requires sm_90a or later
    ],
)
def test_setmaxnreg_is_no_part_of_a_longer_name(tmp_path: Path, call: str, verdict: str) -> None:
    path = tmp_path / "scale.py"
    path.write_text(SCALE.replace("{call}", call))
    (result,) = tilefit.plan(f"{path}::scale", "a100").results
    assert result.status.value == verdict
