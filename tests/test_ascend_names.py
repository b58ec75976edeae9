"""Ascend kernels whose buffers are hard to tell apart, as TileLang's own backend lays them out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ascend_corpus import MEMORIES, cases
from tests.lowering import KERNELS, lower, source
from tests.opened import ask
from tests.values import packing_differs
from tilefit._devices.names import device
from tilefit._frontends.tilelang.ascend import why as _ascend_why
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.reasons import REASONS
from tilefit._placement.place import place
from tilefit._verdict.judge import Status, Verdict, judge

pytestmark = pytest.mark.tilelang

FILE = KERNELS / "ascend_names.py"
UB_SIMT = 221_184  # of one AIV of an Ascend 950 where a kernel has SIMT parts


def read(kernel: str, **params: Any) -> tuple[Kernel, ...]:
    return lower(FILE, kernel, "ascend", **params)


def one(kernel: str, **params: Any) -> Kernel:
    (found,) = read(kernel, **params)
    return found


def totals(kernel: Kernel) -> dict[str, int | None]:
    return {str(arena.memory): arena.total_bytes for arena in kernel.memories}


def tiles(kernel: Kernel) -> list[Buffer]:
    return [b for b in kernel.buffers if b.memory in MEMORIES]


def judged(kernel: Kernel) -> Verdict:
    return judge(kernel, place(kernel), device("ascend-950"))


def test_of_two_buffers_of_one_name_the_used_one_has_the_bytes() -> None:
    kernel = one("namesake")
    found = [(b.shape, b.copies, b.bytes, b.why) for b in tiles(kernel)]
    assert found == [
        ((77,), 0, 0, "unused"),
        ((1024,), 1, 1024 * 4, "not-pipelined"),
    ]
    assert packing_differs(kernel) is None


def test_scratch_is_told_from_a_tile_that_has_its_name() -> None:
    kernel = one("called_workspace")
    found = [(b.name, b.bytes, b.copies, b.origin) for b in tiles(kernel)]
    assert found == [
        ("workspace", 2 * 4 * 512 * 4, 2, "source"),
        ("most", 2 * 32, 2, "source"),  # 16 B in each of two versions, aligned to 32 B
        ("workspace", 128 * 4, 1, "compiler"),  # an element for each of 128 threads
    ]
    assert [b.why for b in tiles(kernel) if b.origin == "compiler"] == ["reduce-workspace"]
    assert totals(kernel) == {"ub": 2 * 4 * 512 * 4 + 128 * 4 + 2 * 32}
    assert packing_differs(kernel) is None


def test_tiles_of_two_branches_share_and_nothing_is_reported() -> None:
    kernel = one("branches")
    assert totals(kernel) == {"ub": 3 * 1024 * 4}
    assert [b.offset for b in tiles(kernel)] == [0, 0]
    assert packing_differs(kernel) is None


def test_operands_that_are_done_before_a_gemm_from_l1_are_not_written_over() -> None:
    kernel = one("before_and_after")
    assert {b.name: b.offset for b in tiles(kernel) if b.memory == "l0a"} == {
        "a0": 0,
        "slots for a": 0,
    }
    assert kernel.overlaps == ()
    assert judged(kernel).status is Status.FITS


def test_a_gemm_of_another_launch_with_the_same_names_writes_over_nothing() -> None:
    first, second = read("same_names")
    assert first.overlaps == second.overlaps == ()
    # 0 and 1 copy in, 2 multiply, 3 copy out; 4 to 7 copy in, 8 and 9 multiply
    assert {b.live for b in first.buffers if b.why == "l1-gemm-slots"} == {(2, 3)}
    assert {b.live for b in second.buffers if b.why == "l1-gemm-slots"} == {(9, 10)}


def test_rows_of_block_scales_are_padded_to_16_and_our_rules_say_so_too() -> None:
    kernel = one("odd_scales")
    padded = {b.name: b.padded_shape for b in tiles(kernel) if b.padded_shape}
    assert padded["sa"] == (48, 3)
    assert padded["sb"] == (32, 3)
    sizes = {b.name: b.bytes for b in tiles(kernel)}
    a, b, sa = 2 * 48 * 192 // 2, 2 * 32 * 192 // 2, 2 * 48 * 3 * 2
    assert (sizes["a"], sizes["b"], sizes["sa"], sizes["sb"]) == (a, b, sa, 32 * 3 * 2)
    # a and b are multiples of 512 B, sa is not: sb starts at the next one
    assert totals(kernel)["l1"] == a + b + 1024 + 32 * 3 * 2
    assert packing_differs(kernel) is None


def test_a_loop_of_one_iteration_keeps_no_tile_longer_than_its_uses() -> None:
    kernel = one("one_iteration")
    # 0 copy in, 1 to 3 a vector region each, 4 copy out
    assert {b.name: b.live for b in tiles(kernel)} == {
        "first": (0, 2),
        "second": (1, 3),
        "third": (2, 4),
        "fourth": (3, 5),
    }
    assert totals(kernel) == {"ub": 2 * 256 * 4}
    assert packing_differs(kernel) is None


def test_a_size_that_is_open_until_run_time_can_be_given() -> None:
    unknown = judged(one("open_tile"))
    assert unknown.status is Status.UNKNOWN
    assert unknown.reason == "ub bytes depend on a size that is not set: --set NAME=VALUE"
    kernel = one("open_tile", n=100)
    assert [(b.shape, b.bytes, b.offset) for b in tiles(kernel)] == [
        ((100, 64), 100 * 64 * 4, 64 * 4),
        ((64,), 64 * 4, 0),
    ]
    assert totals(kernel) == {"ub": 100 * 64 * 4 + 64 * 4}
    assert judged(kernel).status is Status.FITS
    over = judged(one("open_tile", n=900))
    assert (over.status, over.silent_overflow) == (Status.DOES_NOT_FIT, True)
    assert over.memories[0].margin == UB_SIMT - (900 * 64 * 4 + 64 * 4)


def test_a_row_of_no_elements_proves_nothing() -> None:
    assert judged(one("open_row", n=1)).status is Status.FITS
    empty = judged(one("open_row", n=0))
    assert empty.status is Status.UNKNOWN
    assert "the loop over j has no iterations" in (empty.reason or "")


@pytest.mark.parametrize("error", [RuntimeError, TypeError, ValueError])
def test_a_scheduler_that_cannot_be_asked_again_costs_only_the_reason(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    case = next(
        c
        for c in cases()
        if any("no-room" in why for why in c.expected.get("buffers", {}).values())
    )

    def refuse(_: Any) -> Any:
        raise error("no")

    monkeypatch.setattr(_ascend_why, "_schedule_without_limits", refuse)
    (kernel,) = source(case.path).read(ask(case.kernel, case.params, "ascend"))
    expected = case.expected["buffers"]
    found = {b.name: [b.copies, b.why] for b in tiles(kernel) if b.origin == "source"}
    assert {name: copies for name, (copies, _) in found.items()} == {
        name: copies for name, (copies, _) in expected.items()
    }
    held = {name for name, (_, why) in expected.items() if why == "no-room"}
    assert held
    assert {found[name][1] for name in held} == {"fewer-taken"}
    assert {why for _, why in found.values()} <= {"fewer-taken", *(w for _, w in expected.values())}
    assert "fewer-taken" in REASONS
