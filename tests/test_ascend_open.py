"""What an answer for Ascend says where its source leaves something open, or has several launches.

The files are written by the tests in the spelling of the adapter tilelang-ascend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.opened import ask
from tests.test_ascend_plan import L0A, L0B, L0C, L1, LISTING, UB, buffer, kernel
from tilefit._devices.names import device
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.request import Request
from tilefit._placement.ascend_packer import Tile, padded_shape, tile_bytes
from tilefit._placement.place import place
from tilefit._planning.planner import Planner
from tilefit._planning.question import Options
from tilefit._planning.reader import Reader
from tilefit._planning.report import FileSeen, Report, Result
from tilefit._planning.residency import rounds
from tilefit._render.text import files as _text_files
from tilefit._render.text import map as _text
from tilefit._verdict.judge import Status, Verdict, judge

HEAD = "import tilelang\nimport tilelang.language as T\n\n"
B1 = device("ascend-910b1")  # 24 AIC and 48 AIV


def declared(folder: Path, body: str, grid: int = 8, **params: Any) -> Kernel:
    """Read one kernel of the adapter from its source."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    path = folder / "kernels.py"
    path.write_text(
        f"{HEAD}@T.prim_func\ndef main(A: T.Tensor((64,), 'int8')):\n"
        f"    with T.Kernel({grid}, is_npu=True) as (cid, vid):\n{lines}\n"
    )
    (found,) = SourceFrontend().load(path).read(ask("main", params, "ascend-910b"))
    return found


def judged(one: Kernel) -> Verdict:
    return judge(one, place(one), B1)


@pytest.mark.parametrize(
    ("body", "call"),
    [
        (
            "a = T.alloc_buffer((64,), 'float32', scope='wmma.accumulator')\nT.copy(A, a)",
            "T.alloc_buffer((64,), 'float32', scope='wmma.accumulator')",
        ),
        ("a = made_elsewhere((64,))\nT.copy(A, a)", "made_elsewhere()"),
    ],
)
def test_a_kernel_of_which_no_buffer_was_read_is_unknown(
    tmp_path: Path, body: str, call: str
) -> None:
    one = declared(tmp_path, body)
    assert place(one) == ()
    found = judged(one)
    assert (found.status, found.silent_overflow) == (Status.UNKNOWN, False)
    assert found.reason == f"line 7: what {call} allocates is not known"


def test_a_file_without_a_launch_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(f"{HEAD}@T.prim_func\ndef main(A: T.Tensor((64,), 'int8')):\n    run(A)\n")
    (one,) = SourceFrontend().load(path).read(ask("main", {}, "ascend-910b"))
    assert judged(one).status is Status.UNKNOWN


def test_what_was_read_beside_a_gap_is_unknown_for_the_gap(tmp_path: Path) -> None:
    found = judged(declared(tmp_path, "a = T.alloc_ub((64,), 'int8')\nb = made_elsewhere()"))
    assert found.status is Status.UNKNOWN
    gap = "line 8: what made_elsewhere() allocates is not known"
    assert found.reason == f"ub bytes are not known: {gap}"
    assert "--set" not in (found.reason or "")


def test_a_fragment_in_several_places_is_the_reason_no_size_is(tmp_path: Path) -> None:
    one = declared(
        tmp_path,
        "a = T.alloc_fragment((16, 16), 'float16')\n"
        "b = T.alloc_fragment((16, 16), 'float16')\n"
        "c = T.alloc_fragment((16, 16), 'float32')\n"
        "d = T.alloc_fragment((16, 16), 'float32')\n"
        "T.gemm(a, b, c)\nT.gemm(c, b, d)",
    )
    reason = "bytes depend on where c is: allocate with a function that names it"
    assert [c.reason for c in judged(one).memories] == [f"{m} {reason}" for m in (L0A, L0B, L0C)]


OPEN = "a = T.alloc_shared((64,), 'int8')\nT.copy(A, a)"


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        (24, 1),
        (25, None),  # ceil(25 / 48) = 1 on vector cores, ceil(25 / 24) = 2 on cube cores
        (48, None),
    ],
)
def test_rounds_of_a_block_in_ub_or_in_l1_are_counted_both_ways(
    tmp_path: Path, grid: int, expected: int | None
) -> None:
    one = declared(tmp_path, OPEN, grid)
    assert [b.memory for b in one.buffers] == [Memory.UNDECIDED]
    found = rounds(one, B1)
    assert found is not None
    assert (found.rounds, found.blocks, found.core) == (expected, grid, "AIV or AIC")
    if expected is None:
        assert "1 on 48 AIV, 2 on 24 AIC" in (found.reason or "")
    else:
        assert found.reason is None


def test_rounds_of_an_open_block_name_a_product_where_cores_are_not_known(tmp_path: Path) -> None:
    found = rounds(declared(tmp_path, OPEN), device("ascend-910b"))
    assert found is not None
    assert (found.rounds, found.cores, found.core) == (None, None, "AIV or AIC")
    assert "ascend-910b1" in (found.reason or "")


def test_chips_with_one_kind_of_core_leave_no_choice(tmp_path: Path) -> None:
    chip = replace(device("ascend-310p"), cores=(("AI core", 8),))
    found = rounds(declared(tmp_path, OPEN, 17), chip)
    assert found is not None
    assert (found.rounds, found.cores, found.core) == (3, 8, "AI core")  # ceil(17 / 8)


def test_a_cube_buffer_beside_an_open_one_takes_an_aic(tmp_path: Path) -> None:
    found = rounds(declared(tmp_path, f"{OPEN}\nc = T.alloc_L1((64,), 'int8')", 30), B1)
    assert found is not None
    assert (found.rounds, found.core) == (2, "AIC")  # ceil(30 / 24)


# ---- several launches in one kernel ------------------------------------------------------


def two(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
    size = params.get("tile", 512)
    cube = kernel(
        buffer("a", L1, 2 * KIB, 0, copies=2, stages=2, why="scheduled"),
        totals={L1: 2 * KIB},
        cores="cube",
    )
    wide = kernel(buffer("u", UB, size * KIB, 0), totals={UB: size * KIB, L1: 4 * KIB})
    return replace(cube, function="first"), replace(wide, function="second")


KIB = 1024


def planned(**options: Any) -> list[Result]:
    def read(request: Request) -> tuple[Kernel, ...]:
        return two(request.params)

    asked = Options(**options)
    reader = Reader(read, LISTING, TILELANG, "0.1.15", asked)
    return Planner(reader, LISTING, {}, "made.py::made", asked).on(device("ascend-950pr_957b"))


def test_each_launch_has_the_versions_of_its_own_buffers() -> None:
    first, second = planned(suggest=False)
    assert [v.buffer for v in first.stages.versions] == ["a"]
    assert second.stages.versions == ()
    assert "fewer versions" in (second.stages.reason or "")


def test_the_ladder_shows_the_most_of_each_memory_over_all_launches() -> None:
    text = _text.render(Report(tuple(planned(suggest=False, ladder="tile=100,512")))).plain
    lines = [line.split() for line in text.splitlines()]
    # 100 KiB of UB fit, 512 KiB do not; L1 is the second launch's 4 KiB, not the first's 2 KiB
    assert ["100", "102,400", "4,096"] in lines
    assert any(line[:3] == ["512", "524,288", "4,096"] for line in lines)


def test_a_list_of_kernels_has_no_threads_for_ascend() -> None:
    seen = FileSeen(file="made.py", planned=2)
    report = Report(tuple(planned(suggest=False)), files=(seen,))
    lines = [line.plain.split() for line in _text_files.render(report)]
    limit, spare = "524,288", f"{512 * KIB - 2 * KIB:,}"
    assert ["l1", "2,048", limit, spare, "-", "fits", "made", "(first)"] in lines


# ---- block scales ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "shape", "padded"),
    [
        (16, (40, 3), (48, 3)),
        (16, (24, 3), (32, 3)),
        (8, (40, 6), (48, 6)),
        (8, (16, 3), (16, 4)),  # the cube reads scales in pairs of bytes
    ],
)
def test_block_scales_are_padded_to_16_rows_and_2_bytes(
    bits: int, shape: tuple[int, int], padded: tuple[int, int]
) -> None:
    tile = Tile(name="s", memory=L1, shape=shape, bits=bits, scales=True)
    assert padded_shape(tile) == padded
    assert tile_bytes(tile) == padded[0] * padded[1] * bits // 8
