"""What becomes of an Ascend kernel after it was read: memories, limits, overflows, rounds, edits.

Kernels are made by hand, so nothing here needs a toolchain; the sizes are those of kernels that
TileLang 0.1.15 was seen to accept or to refuse.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.values import packing_differs
from tilefit._devices.names import Device, device
from tilefit._errors import RefusedError
from tilefit._frontends.source.frontend import SOURCE
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import (
    Buffer,
    Kernel,
    Launch,
    Listing,
    Loop,
    MemoryUse,
    Parameter,
    StageRule,
)
from tilefit._kernel.memory import Evidence, Memory, Owner
from tilefit._kernel.request import Request
from tilefit._placement.account import account
from tilefit._placement.place import owned, place
from tilefit._planning.outcome import judged
from tilefit._planning.planner import Planner
from tilefit._planning.question import Options
from tilefit._planning.reader import Reader
from tilefit._planning.report import Edit, NextStep, Report, Result
from tilefit._planning.residency import residency, rounds, uses_cube
from tilefit._planning.stages import largest_stages
from tilefit._planning.suggest import cuts_of, edits, tried_edits
from tilefit._render import json as _json
from tilefit._render import table as _table
from tilefit._render.text import map as _text
from tilefit._verdict.advice import advice
from tilefit._verdict.judge import Policy, Status, Verdict, judge

KIB = 1024
UB, L1, L0A, L0B, L0C = Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C
OWNER = {UB: Owner.AIV, L1: Owner.AIC, L0A: Owner.AIC, L0B: Owner.AIC, L0C: Owner.AIC}
A950 = device("ascend-950")


def buffer(
    name: str, memory: Memory, n_bytes: int | None, offset: int | None, **more: Any
) -> Buffer:
    values: dict[str, Any] = {
        "scope": "shared.dyn" if memory is UB else f"shared.{memory}",
        "owner": OWNER.get(memory, Owner.BLOCK),
        "shape": (n_bytes if n_bytes is not None else "n",),
        "dtype": "int8",
    }
    return Buffer(name=name, memory=memory, bytes=n_bytes, offset=offset, **{**values, **more})


def use(memory: Memory, total: int | None, evidence: Evidence = Evidence.COMPILED) -> MemoryUse:
    return MemoryUse(memory=memory, owner=OWNER[memory], dynamic_bytes=total, evidence=evidence)


def kernel(*buffers: Buffer, totals: Mapping[Memory, int | None], **more: Any) -> Kernel:
    evidence = more.pop("evidence", Evidence.COMPILED)
    values: dict[str, Any] = {
        "name": "made",
        "function": "made_kernel",
        "toolchain": "tilelang",
        "toolchain_version": "0.1.15",
        "target": "ascend",
        "params": (),
        "launch": Launch(threads_declared=None, threads=None, grid=(1, 1, 1)),
        "memories": tuple(use(m, t, evidence) for m, t in totals.items()),
        "complete": None not in totals.values(),
        "stage_rule": StageRule.CHOSEN,
        "cores": "vector" if set(totals) == {UB} else "mixed",
    }
    return Kernel(buffers=buffers, **{**values, **more})


def verdict(one: Kernel, on: Device = A950, **policy: int) -> Verdict:
    return judge(one, place(one), on, Policy(**policy))


def row(n_bytes: int, count: int, memory: Memory = UB) -> list[Buffer]:
    """Buffers of one size, one behind the other."""
    return [buffer(f"t{n}", memory, n_bytes, n * n_bytes) for n in range(count)]


# ---- memories --------------------------------------------------------------------------


def test_every_memory_is_placed_with_the_core_that_has_it() -> None:
    one = kernel(totals={L0C: 64, UB: 32, L1: 512})
    assert [(u.memory, u.owner, u.total_bytes) for u in place(one)] == [
        (UB, Owner.AIV, 32),
        (L1, Owner.AIC, 512),
        (L0C, Owner.AIC, 64),
    ]


def test_older_chips_have_one_kind_of_core() -> None:
    uses = owned(place(kernel(totals={UB: 32, L1: 512})), device("ascend-310p"))
    assert [u.owner for u in uses] == [Owner.CORE, Owner.CORE]


# ---- every byte ------------------------------------------------------------------------


def own(one: Kernel) -> dict[tuple[Memory, str], int]:
    return {(r.memory, r.name): r.own_bytes for r in account(one)}


def test_rows_sum_to_the_total_of_each_memory() -> None:
    one = kernel(
        buffer("a", UB, 96, 0),
        buffer("b", UB, 40, 96),
        buffer("c", L0C, 6 * KIB, 0, live=(0, 2)),
        buffer("d", L0C, 1 * KIB, 0, live=(2, 4)),
        totals={UB: 160, L0C: 6 * KIB},
    )
    assert own(one) == {
        (UB, "a"): 96,
        (UB, "b"): 40,
        (UB, "rounding"): 160 - 96 - 40,
        (L0C, "c"): 6 * KIB,
        (L0C, "d"): 0,  # in the bytes of c, at another time
    }
    rows = {r.name: r for r in account(one)}
    assert rows["d"].shares_with == ("c",)
    assert (rows["rounding"].kind, rows["rounding"].why) == ("rounding", "arena-end")


def test_alignment_of_versions_and_between_slots_are_rows_of_their_own() -> None:
    # two versions of 10 fp32: 40 B each, the second one at 64; then a slot at a multiple of 512
    one = kernel(
        buffer("x", UB, 2 * 64, 0, shape=(10,), dtype="float32", copies=2),
        buffer("a", L1, 700, 0),
        buffer("b", L1, 100, 1024),
        totals={UB: 128, L1: 1152},
    )
    assert own(one) == {
        (UB, "x"): 2 * 40,
        (UB, "alignment of x"): 2 * (64 - 40),
        (L1, "a"): 700,
        (L1, "b"): 100,
        (L1, "gap"): 1024 - 700,
        (L1, "rounding"): 1152 - 1024 - 100,
    }


def test_the_scratch_of_a_reduction_is_a_row_that_the_compiler_added() -> None:
    one = kernel(
        buffer("a", UB, 220160, 0),
        buffer("workspace", UB, 1024, 220160, origin="compiler", why="reduce-workspace"),
        totals={UB: 221184},
    )
    (_, scratch) = account(one)
    assert (scratch.own_bytes, scratch.origin, scratch.why) == (
        1024,
        "compiler",
        "reduce-workspace",
    )


def test_a_hidden_slot_over_an_explicit_tile_counts_its_bytes_once() -> None:
    one = kernel(
        buffer("a0", L0A, 16 * KIB, 0, live=(0, 4)),
        buffer("slots for a", L0A, 32 * KIB, 0, origin="compiler", why="l1-gemm-slots"),
        totals={L0A: 32 * KIB},
    )
    rows = account(one)
    assert sum(r.own_bytes for r in rows) == 32 * KIB
    assert {r.name: r.shares_with for r in rows} == {"slots for a": ("a0",), "a0": ("slots for a",)}


def test_our_layout_is_held_against_the_compilers() -> None:
    tiles = [
        buffer("a", L1, 48 * 64, 0, shape=(33, 48), dtype="float8_e4m3fn", padded_shape=(48, 64)),
        buffer(
            "b", L1, 32 * 64, 3072, shape=(17, 48), dtype="float8_e4m3fn", padded_shape=(32, 64)
        ),
    ]
    assert packing_differs(kernel(*tiles, totals={L1: 5120})) is None
    moved = kernel(tiles[0], replace(tiles[1], offset=4096), totals={L1: 5120})
    assert "our rules put b at 3,072 in l1, the compiler at 4,096" in (packing_differs(moved) or "")
    larger = kernel(tiles[0], replace(tiles[1], bytes=2 * 2048), totals={L1: 7168})
    assert "b takes 2,048 B (1 x 2,048 B)" in (packing_differs(larger) or "")
    apart = kernel(*(replace(t, live=(n, n + 1)) for n, t in enumerate(tiles)), totals={L1: 5120})
    assert "5,120 B of l1 where 3,072 B would do" in (packing_differs(apart) or "")


# ---- limits, and what is above them without a word ---------------------------------------

SIMT = ("simt",)


@pytest.mark.parametrize(
    ("tiles", "memory", "conditions", "total", "limit"),
    [
        pytest.param(row(98304, 3), UB, SIMT, 3 * 98304, 216 * KIB, id="no loop"),
        pytest.param(row(112128, 2), UB, SIMT, 2 * 112128, 216 * KIB, id="no loop, above SIMT's"),
        pytest.param(
            [buffer("x", UB, 3 * 98304, 0, copies=3, why="fixed-versions")],
            *(UB, SIMT, 3 * 98304, 216 * KIB),
            id="versions fixed",
        ),
        pytest.param(row(147456, 2), UB, SIMT, 2 * 147456, 216 * KIB, id="scheduler off"),
        pytest.param(row(98304, 4), UB, SIMT, 4 * 98304, 216 * KIB, id="check silenced"),
        pytest.param(
            [
                buffer("a", UB, 220160, 0),
                buffer("total", UB, 1024, 220160),
                buffer("workspace", UB, 2048, 221184, origin="compiler", why="reduce-workspace"),
            ],
            *(UB, SIMT, 220160 + 1024 + 2048, 216 * KIB),
            id="scratch of a reduction",
        ),
        pytest.param(row(114688, 2), UB, SIMT, 2 * 114688, 216 * KIB, id="live across a loop"),
        pytest.param(
            [buffer("x", UB, 2 * 137216, 0, copies=2, stages=2, why="scheduled")],
            *(UB, (), 2 * 137216, 248 * KIB),
            id="a loop in a loop",
        ),
        pytest.param(row(524288, 2, L1), L1, (), 2 * 524288, 512 * KIB, id="L1, no loop"),
        pytest.param(row(196608, 3, L1), L1, (), 3 * 196608, 512 * KIB, id="L1, outer stages"),
        pytest.param(row(524288, 1, L0C), L0C, (), 524288, 256 * KIB, id="L0C, along K"),
        pytest.param(row(131072, 1, L0A), L0A, (), 131072, 64 * KIB, id="L0A"),
        pytest.param(row(131072, 1, L0B), L0B, (), 131072, 64 * KIB, id="L0B"),
    ],
)
def test_what_the_compiler_accepts_and_the_chip_lacks_is_named(
    tiles: list[Buffer], memory: Memory, conditions: tuple[str, ...], total: int, limit: int
) -> None:
    found = verdict(kernel(*tiles, totals={memory: total}, conditions=conditions))
    (check,) = found.memories
    assert (found.status, found.silent_overflow) == (Status.DOES_NOT_FIT, True)
    assert (check.value, check.limit, check.margin) == (total, limit, limit - total)
    reason = found.reason or ""
    assert f"{memory} {total:,} B, limit {limit:,} B" in reason
    assert f"over by {total - limit:,} B" in reason
    assert "the compiler accepts this; the chip has no such bytes" in reason
    last = tiles[-1]
    past = reason.partition("past the end: ")[2]
    assert f"{last.name} (" in past or f"{last.name} alone takes {total:,} B" in reason
    assert ("data cache" in reason) == bool(conditions)


def test_what_fits_to_the_byte_fits() -> None:
    totals = {UB: 248 * KIB, L1: 512 * KIB, L0A: 64 * KIB, L0B: 64 * KIB, L0C: 256 * KIB}
    found = verdict(kernel(totals=totals))
    assert (found.status, found.silent_overflow) == (Status.FITS, False)
    assert [c.margin for c in found.memories] == [0] * 5


def test_a_simt_part_takes_32_kib_of_ub() -> None:
    found = verdict(kernel(totals={UB: 216 * KIB}, conditions=SIMT))
    assert found.status is Status.FITS
    assert "SIMT" in (found.memories[0].limit_reason or "")
    assert verdict(kernel(totals={UB: 216 * KIB + 1}, conditions=SIMT)).silent_overflow
    assert verdict(kernel(totals={UB: 216 * KIB + 1})).status is Status.FITS


def test_the_blame_names_what_lies_past_the_end_and_the_largest() -> None:
    tiles = [buffer("big", UB, 160000, 0), buffer("scratch", UB, 2048, 252928, origin="compiler")]
    reason = verdict(kernel(*tiles, totals={UB: 254976})).reason or ""
    assert "past the end: scratch (added by the compiler, 2,048 B at 252,928)" in reason
    assert reason.endswith("the largest: big, 160,000 B")


def test_an_estimate_is_no_silent_overflow_for_nothing_was_accepted() -> None:
    one = kernel(*row(98304, 3), totals={UB: 3 * 98304}, evidence=Evidence.DECLARED)
    found = verdict(one)
    assert (found.status, found.silent_overflow) == (Status.DOES_NOT_FIT, False)
    assert "accepts" not in (found.reason or "")


def test_headroom_is_asked_of_ub_alone() -> None:
    one = kernel(totals={UB: 248 * KIB, L0A: 64 * KIB})
    found = verdict(one, headroom_bytes=32)
    assert [c.status for c in found.memories] == [Status.DOES_NOT_FIT, Status.FITS]
    assert found.memories[0].limit == 248 * KIB - 32
    assert not found.silent_overflow  # the chip has these bytes


def test_an_overlap_does_not_fit_though_there_are_bytes_enough() -> None:
    line = "T.gemm of a and b writes bytes 0 to 16,384 of L0A while a0 is live at 0"
    found = verdict(kernel(totals={L0A: 16 * KIB}, overlaps=(line,)))
    assert (found.status, found.silent_overflow) == (Status.DOES_NOT_FIT, False)
    assert found.memories[0].status is Status.FITS
    assert line in (found.reason or "")
    assert "before the GEMM" in advice(kernel(totals={}), found.limits, A950)[0]


def test_a_grid_does_not_decide_whether_the_bytes_fit() -> None:
    one = kernel(totals={UB: 32})
    for grid, status in (((70000, 1, 1), Status.FITS), (("n", 1, 1), Status.FITS)):
        launch = replace(one.launch, grid=grid)
        assert verdict(replace(one, launch=launch)).status is status
    empty = verdict(replace(one, launch=replace(one.launch, grid=(0, 1, 1))))
    assert empty.status is Status.UNKNOWN


# ---- chips that no compiler here lowers for ----------------------------------------------


@pytest.mark.parametrize(
    ("on", "n_bytes", "status"),
    [
        # 192 KiB, 256 B of them for the link between cube and vector, 8 KiB perhaps for scratch
        ("ascend-910b1", 192 * KIB - 256, Status.UNKNOWN),
        ("ascend-910b1", 192 * KIB - 255, Status.DOES_NOT_FIT),
        ("ascend-910b1", 184 * KIB, Status.FITS),
        ("ascend-910b1", 184 * KIB + 1, Status.UNKNOWN),
        ("ascend-910_9362", 184 * KIB + 1, Status.UNKNOWN),
        ("ascend-310p", 248 * KIB, Status.FITS),
        ("ascend-910a", 256 * KIB, Status.UNKNOWN),
        ("ascend-910a", 256 * KIB + 1, Status.DOES_NOT_FIT),
    ],
)
def test_an_estimate_is_held_against_what_is_usable(on: str, n_bytes: int, status: Status) -> None:
    one = kernel(buffer("a", UB, n_bytes, None), totals={UB: n_bytes}, evidence=Evidence.DECLARED)
    found = verdict(one, device(on))
    assert found.status is status
    assert "the top 8 KiB" in (found.memories[0].limit_reason or "")
    if status is Status.UNKNOWN:
        assert "the source does not say" in (found.reason or "")


def test_what_may_be_in_ub_or_in_l1_is_read_both_ways() -> None:
    def with_open(n_bytes: int) -> Verdict:
        tile = buffer("t", Memory.UNDECIDED, n_bytes, None, scope="shared")
        tile = replace(tile, evidence=Evidence.DECLARED)
        return verdict(replace(kernel(tile, totals={}), target="ascend-910b"), device("910b1"))

    either = with_open(100 * KIB)
    assert either.status is Status.FITS
    assert [(c.name, c.value) for c in either.memories] == [("ub", 102400), ("l1", 102400)]
    depends = with_open(200 * KIB)
    assert depends.status is Status.UNKNOWN
    assert "as UB does not fit" in (depends.reason or "")
    assert "as L1 fits" in (depends.reason or "")
    assert with_open(600 * KIB).status is Status.DOES_NOT_FIT


# ---- rounds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "totals", "cores", "blocks", "count", "core", "expected"),
    [
        ("ascend-910b1", {L1: 1, L0C: 1}, "cube", 100, 24, "AIC", 5),
        ("ascend-910b1", {UB: 1}, "vector", 100, 48, "AIV", 3),
        ("ascend-910b1", {UB: 1, L1: 1}, "mixed", 24, 24, "AIC", 1),
        ("ascend-950pr_957b", {UB: 1}, "vector", 57, 56, "AIV", 2),
        ("ascend-910a", {UB: 1}, "vector", 33, 32, "AI core", 2),
        ("ascend-910b1", {UB: 1, L0C: 1}, None, 25, 24, "AIC", 2),  # from the source alone
    ],
)
def test_rounds_are_blocks_over_the_cores_that_take_them(
    on: str,
    totals: dict[Memory, int],
    cores: str | None,
    blocks: int,
    count: int,
    core: str,
    expected: int,
) -> None:
    used = [buffer("b", memory, size, 0) for memory, size in totals.items()]
    one = kernel(*used, totals=totals, cores=cores)
    one = replace(one, launch=replace(one.launch, grid=(blocks, 1, 1)))
    found = rounds(one, device(on))
    assert found is not None
    assert (found.rounds, found.blocks, found.cores, found.core) == (expected, blocks, count, core)
    assert -(-blocks // count) == expected
    assert residency(one, device(on)) is None  # nothing is claimed of blocks side by side


def test_rounds_name_what_is_missing() -> None:
    one = kernel(totals={UB: 1})
    of_arch = rounds(one, A950)
    assert of_arch is not None
    assert of_arch.rounds is None
    assert "ascend-950pr_957b" in (of_arch.reason or "")
    symbolic = rounds(replace(one, launch=replace(one.launch, grid=("m // 8", 2, 1))), A950)
    assert symbolic is not None
    assert symbolic.rounds is None
    assert "m // 8" in (symbolic.reason or "")
    assert "--set" in (symbolic.reason or "")
    assert rounds(one, device("h100")) is None
    assert not uses_cube(one)


# ---- stages and edits ----------------------------------------------------------------------


def test_no_stage_count_is_the_largest_and_the_versions_are_said() -> None:
    one = kernel(
        buffer("a", L1, 2 * KIB, 0, copies=2, stages=3),
        buffer("c", L0C, 1 * KIB, 0, copies=1, stages=3),
        buffer("u", UB, 32, 0),
        totals={UB: 32, L1: 2 * KIB, L0C: KIB},
        loops=(Loop(variable="i", extent=8, num_stages=3, buffers=("a",)),),
    )

    def unread(_: Mapping[str, Any]) -> tuple[Kernel, ...]:
        raise AssertionError("there is no count to search for")

    found = largest_stages(
        (one,), parameter="num_stages", current=3, params={}, read=unread, judge=verdict
    )
    assert found.largest is None
    assert "fewer versions instead of failing" in (found.reason or "")
    assert [(v.buffer, v.asked, v.chosen) for v in found.versions] == [("a", 3, 2), ("c", 3, 1)]


def test_on_ascend_every_loops_stages_are_edited_and_nothing_is_merged() -> None:
    own_params = {"block_K": 64, "num_stages": 2, "outer_stages": 3, "M": 4096}
    found = edits(own_params, TILELANG, "ascend")
    assert [(e.cost, e.params) for e in found if len(e.params) == 1] == [
        (2, (("outer_stages", 2),)),
        (3, (("block_K", 32),)),
        (2 + 6, (("num_stages", 1),)),
        (4 + 6, (("outer_stages", 1),)),
    ]
    assert all(e.pass_configs == () for e in found)
    assert Edit(2 + 6 + 2, (("num_stages", 1), ("outer_stages", 2))) in found


def test_a_tile_of_ub_is_cut_to_what_the_limit_leaves() -> None:
    # 3 tiles of 24576 fp32: 18432 is the most of which three fit 216 KiB, and a multiple of 256
    tiles = [
        buffer(f"t{n}", UB, 24576 * 4, n * 24576 * 4, shape=(24576,), dtype="float32")
        for n in range(3)
    ]
    one = kernel(*tiles, totals={UB: 3 * 24576 * 4}, conditions=SIMT)
    assert cuts_of((one,), verdict, {"tile": 24576, "n": 24576}) == {"tile": 18432}
    assert 216 * KIB == 3 * 18432 * 4
    found = edits({"tile": 24576}, TILELANG, "ascend", cuts={"tile": 18432})
    assert [(e.cost, e.params) for e in found] == [(3, (("tile", 18432),)), (4, (("tile", 12288),))]
    fits = kernel(*tiles, totals={UB: 100}, conditions=SIMT)
    assert cuts_of((fits,), verdict, {"tile": 24576}) == {}
    far = kernel(*tiles, totals={UB: 10 * 24576 * 4}, conditions=SIMT)
    assert cuts_of((far,), verdict, {"tile": 24576}) == {}  # half is less


def test_a_cut_that_makes_room_for_more_versions_is_cut_again() -> None:
    def read(params: Mapping[str, Any], _: Mapping[str, Any]) -> tuple[Kernel, ...]:
        tile = params["tile"]
        small = 1024 if tile == 63488 else 2048  # two versions as soon as there is room
        parts = [buffer("a", UB, 4 * tile, 0, shape=(tile,)), buffer("b", UB, small, 4 * tile)]
        return (kernel(*parts, totals={UB: 4 * tile + small}),)

    # 4 x 63488 = 253,952 B are all there is, so 1,024 B more are too much
    cuts = cuts_of(read({"tile": 63488}, {}), verdict, {"tile": 63488})
    assert cuts == {"tile": 63488 - 256}
    found = tried_edits(
        {"tile": 63488}, TILELANG, "ascend", params={}, read=read, judge=verdict, cuts=cuts
    )
    sizes = [(t.edit.params[0][1], t.outcome.status) for t in found]
    assert sizes[:2] == [(63232, Status.DOES_NOT_FIT), (62976, Status.FITS)]
    assert 4 * 62976 + 2048 == 253_952


def test_an_outcome_is_that_of_the_fullest_memory() -> None:
    one = kernel(totals={UB: 100 * KIB, L1: 256 * KIB, L0A: 60 * KIB})
    found = judged((one,), verdict)
    assert (found.memory, found.total_bytes, found.limit_bytes) == ("l0a", 60 * KIB, 64 * KIB)


# ---- the whole answer ------------------------------------------------------------------------

TILE = Parameter(name="tile", default=512, required=False)
LISTING = Listing(name="made", style="factory", parameters=(TILE,), line=1)


def silent(params: Mapping[str, Any]) -> Kernel:
    """Two versions of a row of tiles and a product; 393,216 B of UB at the default size."""
    n_bytes = params.get("tile", 512) * 384
    return kernel(
        buffer("x", UB, 2 * n_bytes, 0, shape=(n_bytes,), copies=2, stages=3, why="scheduled"),
        buffer("a", L1, 48 * 64, 0, shape=(33, 48), padded_shape=(48, 64)),
        buffer("slots for a", L0A, 3072, 0, origin="compiler", why="l1-gemm-slots"),
        totals={UB: 2 * n_bytes, L1: 48 * 64, L0A: 3072},
        params=tuple({"tile": 512, **params}.items()),
    )


def planned(*names: str, **options: Any) -> Report:
    def read(request: Request) -> tuple[Kernel, ...]:
        params, target = request.params, request.target
        if target == "ascend":
            return (silent(params),)
        if params.get("tile", 512) < 0:
            raise RefusedError("never")
        sources = [replace(b, evidence=Evidence.DECLARED, offset=None) for b in silent({}).buffers]
        sums = {m: sum(b.bytes or 0 for b in sources if b.memory is m) for m in (UB, L1, L0A)}
        uses = tuple(use(m, n_bytes, Evidence.DECLARED) for m, n_bytes in sums.items())
        read = replace(silent({}), buffers=tuple(sources), memories=uses, target=target)
        return (replace(read, stage_rule=StageRule.UNKNOWN),)

    results: list[Result] = []
    for name in names:
        on = device(name)
        estimate = on.target("tilelang") is None
        toolchain, version = (SOURCE, "") if estimate else (TILELANG, "0.1.15")
        asked = Options(**options)
        reader = Reader(read, LISTING, toolchain, version, asked)
        results += Planner(reader, LISTING, {}, "made.py::made", asked).on(on)
    return Report(tuple(results))


def test_the_map_says_what_each_memory_holds_and_what_overflows() -> None:
    text = _text.render(planned("ascend-950pr_957b")).plain
    assert "silent overflow: the compiler accepts this; the chip has no such bytes" in text
    # 2 x 512 x 384 B
    assert "ub 393,216 B, limit 253,952 B: over by 139,264 B" in " ".join(text.split())
    assert "in fractals 48x64" in text
    assert "x2 of 3" in text
    assert "added by the compiler" in text
    assert "x 2 of 3" in text  # asked of the loop, and what came of it
    assert "1 round: 1 block on 28 AIC" in text
    assert "tile 512 -> 256" in text
    assert "--set tile=256" in text  # 2 x 256 x 384 B = 196,608 B
    assert all(len(line) <= 80 for line in text.splitlines() if "tilefit plan" not in line)


def test_the_smallest_change_was_tried() -> None:
    (result,) = planned("ascend-950").results
    (first, *_) = [t for t in result.tried if t.outcome.status is Status.FITS]
    assert first.edit.params == (("tile", 256),)
    assert (first.outcome.memory, first.outcome.total_bytes) == ("ub", 2 * 256 * 384)
    assert result.next_step is NextStep.FITS


def test_a_migration_shows_each_memory_of_each_chip() -> None:
    text = _text.render(planned("ascend-950", "ascend-910b1", suggest=False)).plain
    lines = [line.split() for line in text.splitlines()]
    # 2 x 512 x 384 B of UB each, and what each chip has of it
    sizes = ["ub", "393,216", "253,952", "-139,264", "OVER"]
    assert ["ascend-950", "DOES", "NOT", "FIT", "(1)", *sizes] in lines
    assert ["silent", "overflow", "l1", "3,072", "524,288", "521,216"] in lines
    sizes = ["ub", "393,216", "196,352", "-196,864", "OVER"]
    assert ["ascend-910b1", "DOES", "NOT", "FIT", "(2)", *sizes] in lines
    assert ["declared", "l1", "3,072", "524,032", "520,960"] in lines
    assert "0 of 2 fit." in text
    assert all(len(line) <= 80 for line in text.splitlines() if "tilefit plan" not in line)


def test_json_carries_the_contract() -> None:
    (result,) = json.loads(_json.render(planned("ascend-910b1", suggest=False)))["results"]
    assert result["silent_overflow"] is False
    (result,) = json.loads(_json.render(planned("ascend-950pr_957b")))["results"]
    assert (result["verdict"], result["silent_overflow"]) == ("does-not-fit", True)
    assert (result["max_stages"], result["threads"]) == (None, None)
    assert result["versions"] == [{"buffer": "x", "num_stages": 3, "versions": 2}]
    memories = {m["memory"]: m for m in result["memories"]}
    assert memories["ub"]["total_bytes"] == 393216
    assert memories["ub"]["margin_bytes"] == 253952 - 393216
    assert memories["l1"]["owner"] == "AIC"
    assert (memories["ub"]["silent_overflow"], memories["l1"]["silent_overflow"]) == (True, False)
    assert result["occupancy"] == {
        "rounds": 1,
        "blocks": 1,
        "cores": 28,
        "core": "AIC",
        "reason": None,
    }
    by_name = {b["name"]: b for b in result["buffers"]}
    assert (by_name["x"]["stages"], by_name["x"]["copies"]) == (3, 2)
    assert by_name["a"]["padded_shape"] == [48, 64]
    assert {row["memory"] for row in result["rows"]} == {"ub", "l1", "l0a"}


def test_csv_and_markdown_carry_the_bytes_of_each_memory() -> None:
    report = planned("ascend-950", "ascend-910b1", suggest=False)
    first, second = csv.DictReader(io.StringIO(_table.render_csv(report)))
    assert (first["memory"], first["ub_bytes"], first["ub_limit_bytes"]) == (
        "ub",
        "393216",
        "253952",
    )
    assert (second["ub_limit_bytes"], second["evidence"]) == ("196352", "declared")
    assert (first["l1_bytes"], first["silent_overflow"]) == ("3072", "True")
    assert "| 393216 |" in _table.render_md(report)


def test_a_use_keeps_what_it_does_not_know() -> None:
    open_one = kernel(buffer("a", UB, None, 0), totals={UB: None})
    (use,) = place(open_one)
    assert use.total_bytes is None
    found = verdict(open_one)
    assert found.status is Status.UNKNOWN
    assert "--set" in (found.reason or "")
    assert account(open_one) == ()
