"""Tiles of the adapter that may lie over each other: addresses, memory planning, T.gemm alone.

Sizes are shape x bytes of an element; limits are those of Ascend 910B: L0C 131,072 B, L1 524,032 B
(docs/devices.md has the sources).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.opened import ask
from tilefit._devices.names import device
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._placement.account import account
from tilefit._placement.place import place
from tilefit._verdict.judge import Status, Verdict, judge

B1 = device("ascend-910b1")
SCORE, OUT = 64 * 64 * 4, 64 * 512 * 4  # 16,384 and 131,072 B, all of L0C
PLANNING = "tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING"
PHASES = """
            T.copy(A[0, 0], a_l1)
            T.gemm_v0(a_l1, a_l1, s_l0c, transpose_B=True, init=True)
            T.gemm_v0(a_l1, a_l1, o_l0c, init=True)
            T.copy(o_l0c, O[0, 0])
"""


def two_phases(folder: Path, *, configs: str = "None", first: str = "", n: int = 64) -> Kernel:
    """Read a kernel whose two accumulators are needed one after the other."""
    path = folder / "phases.py"
    path.write_text(
        f"""
import tilelang
import tilelang.language as T

FLAG = elsewhere()

@tilelang.jit(out_idx=[1], pass_configs={configs})
def phases(N={n}, D=512):
    @T.prim_func
    def main(A: T.Tensor((N, D), "float16"), O: T.Tensor((N, D), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a_l1 = T.alloc_L1((N, D), "float16")
            s_l0c = T.alloc_L0C((N, N), "float32")
            o_l0c = T.alloc_L0C((N, D), "float32")
            {first}
{PHASES}
    return main
"""
    )
    (found,) = SourceFrontend().load(path).read(ask("phases", {}, "ascend-910b"))
    return found


def judged(kernel: Kernel) -> Verdict:
    return judge(kernel, place(kernel), B1)


def bytes_of(kernel: Kernel, memory: Memory) -> tuple[int | None, int | None]:
    """Return the fewest and the most bytes of a memory."""
    use = kernel.use(memory)
    assert use is not None
    return use.least_bytes, use.total_bytes


def test_without_planning_tiles_lie_one_after_the_other(tmp_path: Path) -> None:
    kernel = two_phases(tmp_path)
    assert bytes_of(kernel, Memory.L0C) == (None, SCORE + OUT)
    assert judged(kernel).status is Status.DOES_NOT_FIT


def test_tiles_at_addresses_take_up_to_where_the_last_ends(tmp_path: Path) -> None:
    kernel = two_phases(tmp_path, first="T.annotate_address({a_l1: 0, s_l0c: 0, o_l0c: 0})")
    assert bytes_of(kernel, Memory.L0C) == (None, OUT)
    assert bytes_of(kernel, Memory.L1) == (None, 64 * 512 * 2)
    assert judged(kernel).status is Status.FITS
    assert "whether two tiles at one address are needed at once was not checked" in str(
        kernel.notes
    )
    rows = [row for row in account(kernel) if row.memory is Memory.L0C]
    assert sum(row.own_bytes for row in rows) == OUT


def test_an_address_past_the_end_does_not_fit(tmp_path: Path) -> None:
    kernel = two_phases(tmp_path, first="T.annotate_address({s_l0c: 0, o_l0c: 32})")
    assert bytes_of(kernel, Memory.L0C) == (None, OUT + 32)
    verdict = judged(kernel)
    assert verdict.status is Status.DOES_NOT_FIT
    assert "over by 32 B" in (verdict.reason or "")


def test_a_tile_without_an_address_may_be_anywhere(tmp_path: Path) -> None:
    kernel = two_phases(tmp_path, first="T.annotate_address({s_l0c: 0})")
    assert bytes_of(kernel, Memory.L0C) == (OUT, SCORE + OUT)
    assert judged(kernel).status is Status.UNKNOWN


def test_an_address_that_the_source_does_not_say_is_none(tmp_path: Path) -> None:
    first = "T.annotate_address({s_l0c: FLAG, o_l0c: 0})"
    kernel = two_phases(tmp_path, first=first)
    assert bytes_of(kernel, Memory.L0C) == (OUT, SCORE + OUT)


def test_addresses_under_a_condition_that_is_not_known_prove_nothing(tmp_path: Path) -> None:
    first = "if FLAG:\n                T.annotate_address({s_l0c: 0, o_l0c: 0})"
    assert judged(two_phases(tmp_path, first=first)).status is not Status.FITS


@pytest.mark.parametrize(
    "configs", [f"{{{PLANNING}: True}}", '{"tl.ascend_memory_planning": True}', "FLAG"]
)
def test_with_planning_on_the_answer_is_an_interval(tmp_path: Path, configs: str) -> None:
    kernel = two_phases(tmp_path, configs=configs)
    assert bytes_of(kernel, Memory.L0C) == (OUT, SCORE + OUT)
    verdict = judged(kernel)
    assert verdict.status is Status.UNKNOWN
    assert f"l0c takes {OUT:,} to {SCORE + OUT:,} B, limit 131,072 B" in (verdict.reason or "")


@pytest.mark.parametrize("configs", [f"{{{PLANNING}: False}}", '{"tl.ascend_auto_sync": True}'])
def test_planning_that_is_off_shares_nothing(tmp_path: Path, configs: str) -> None:
    assert bytes_of(two_phases(tmp_path, configs=configs), Memory.L0C) == (None, SCORE + OUT)


def test_planning_cannot_help_a_tile_that_is_too_large_alone(tmp_path: Path) -> None:
    kernel = two_phases(tmp_path, configs=f"{{{PLANNING}: True}}", n=128)
    assert bytes_of(kernel, Memory.L0C) == (2 * OUT, 2 * OUT + 4 * SCORE)
    assert judged(kernel).status is Status.DOES_NOT_FIT


def test_tiles_that_fit_side_by_side_fit_with_planning_too(tmp_path: Path) -> None:
    kernel = two_phases(tmp_path, configs=f"{{{PLANNING}: True}}", n=32)
    assert bytes_of(kernel, Memory.L0C) == (OUT // 2, OUT // 2 + SCORE // 4)
    assert judged(kernel).status is Status.FITS


# ---- T.alloc_shared: UB or L1 ----------------------------------------------------------------


def shared_tiles(folder: Path, more: str = "", configs: str = "None", k: int = 1024) -> Kernel:
    path = folder / "shared.py"
    path.write_text(
        f"""
import tilelang
import tilelang.language as T

@tilelang.jit(pass_configs={configs})
def product(K={k}):
    @T.prim_func
    def main(A: T.Tensor((64, K), "float16"), B: T.Tensor((K, 64), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_shared((64, K), "float16")
            b = T.alloc_shared((K, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            {more}
            T.gemm_v0(a, b, c, init=True)
    return main
"""
    )
    (found,) = SourceFrontend().load(path).read(ask("product", {}, "ascend-910b"))
    return found


def test_a_tile_that_only_a_product_uses_is_in_l1_and_not_in_ub(tmp_path: Path) -> None:
    kernel = shared_tiles(tmp_path, k=2000)  # 256,000 B each: more than UB has
    assert bytes_of(kernel, Memory.L1) == (None, 2 * 64 * 2000 * 2)
    assert kernel.use(Memory.UB) is None
    assert (judged(kernel).status, kernel.cores) == (Status.FITS, "cube")


@pytest.mark.parametrize("more", ["T.tile.exp(a, a)", "a[0, 0] = a[0, 0] * 2"])
def test_a_tile_that_anything_else_uses_too_stays_open(tmp_path: Path, more: str) -> None:
    kernel = shared_tiles(tmp_path, more)
    assert {b.name: b.memory for b in kernel.buffers} == {
        "a": Memory.UNDECIDED,
        "b": Memory.L1,
        "c": Memory.L0C,
    }


@pytest.mark.parametrize(("configs", "status"), [("None", "does-not-fit"), ("ON", "unknown")])
def test_open_tiles_that_may_share_are_never_said_not_to_fit(
    tmp_path: Path, configs: str, status: str
) -> None:
    # four tiles of 192,000 B: 768,000 B are more than UB (196,352 B) and L1 (524,032 B) together;
    # one after the other all of them fit in either
    path = tmp_path / "four.py"
    path.write_text(
        f"""
import tilelang
import tilelang.language as T

ON = {{{PLANNING}: True}}

@tilelang.jit(pass_configs={configs})
def four(N=96000):
    @T.prim_func
    def main(A: T.Tensor((4, N), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_shared((N,), "float16")
            b = T.alloc_shared((N,), "float16")
            c = T.alloc_shared((N,), "float16")
            d = T.alloc_shared((N,), "float16")
            T.tile.exp(a, a)
            T.tile.exp(b, b)
            T.tile.exp(c, c)
            T.tile.exp(d, d)
    return main
"""
    )
    (kernel,) = SourceFrontend().load(path).read(ask("four", {}, "ascend-910b"))
    assert judged(kernel).status == Status(status)
