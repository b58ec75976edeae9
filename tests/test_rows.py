"""The account of shared memory: every byte in one row, and our packer held against TileLang's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import values
from tests.record_kernels import RECORDINGS, Recording, recorded
from tests.values import KIB, buffer, kernel, packing_differs
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.reasons import REASONS
from tilefit._kernel.units import round_up
from tilefit._placement.account import Row, account
from tilefit._placement.place import place

every_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.path.stem)


def rows_of(value: Kernel) -> tuple[Row, ...]:
    rows = account(value)
    assert rows is not None
    return rows


def brief(row: Row) -> tuple[str, int | None, int, int]:
    return row.name, row.offset, row.bytes, row.own_bytes


# ---- any layout ---------------------------------------------------------------------------------


def placed(prefix: str, static: bool) -> st.SearchStrategy[list[Buffer]]:
    """Buffers at any places, over one another or not; in no order."""
    spots = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 60)), max_size=6)
    return spots.map(
        lambda found: [
            buffer(f"{prefix}{n}", size, offset=offset, static=static)
            for n, (offset, size) in enumerate(found)
        ]
    )


def addresses(one: Buffer | Row) -> set[int]:
    assert one.offset is not None
    return set(range(one.offset, one.offset + (one.bytes or 0)))


layouts = given(
    dynamic=placed("d", static=False),
    static=placed("s", static=True),
    behind=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    align=st.one_of(st.none(), st.sampled_from([1, 16, 128, 1024])),
)


def made(
    dynamic: list[Buffer], static: list[Buffer], behind: tuple[int, int], align: int | None
) -> Kernel:
    """A kernel whose parts end so many bytes behind their last buffer."""
    ends = [
        max((max(addresses(b)) + 1 for b in part), default=0) + more
        for part, more in zip((dynamic, static), behind, strict=True)
    ]
    return kernel(*dynamic, *static, dynamic_bytes=ends[0], static_bytes=ends[1], align=align)


@layouts
def test_own_bytes_sum_to_the_launch_total(
    dynamic: list[Buffer], static: list[Buffer], behind: tuple[int, int], align: int | None
) -> None:
    value = made(dynamic, static, behind, align)
    assert value.staged.dynamic_bytes is not None
    padded = round_up(value.staged.static_bytes, align) if align else value.staged.static_bytes
    rows = rows_of(value)
    assert sum(row.own_bytes for row in rows) == value.staged.dynamic_bytes + padded
    assert sum(row.own_bytes for row in rows if row.static) == padded
    assert all(0 <= row.own_bytes <= row.bytes for row in rows)
    assert place(value)[0].total_bytes == value.staged.dynamic_bytes + padded


@layouts
def test_gaps_are_the_addresses_that_no_buffer_covers(
    dynamic: list[Buffer], static: list[Buffer], behind: tuple[int, int], align: int | None
) -> None:
    value = made(dynamic, static, behind, align)
    for part, total in ((dynamic, value.staged.dynamic_bytes), (static, value.staged.static_bytes)):
        is_static = part is static
        gaps = [r for r in rows_of(value) if r.kind == "gap" and r.static == is_static]
        found = [address for gap in gaps for address in sorted(addresses(gap))]
        covered = set().union(*map(addresses, part))
        assert found == sorted(set(range(total or 0)) - covered)  # each one once
        assert all(gap.own_bytes == gap.bytes > 0 for gap in gaps)
        assert {gap.why for gap in gaps} <= {"alignment-gap"}


@layouts
def test_a_byte_counts_where_it_is_first_used_and_sharing_is_mutual(
    dynamic: list[Buffer], static: list[Buffer], behind: tuple[int, int], align: int | None
) -> None:
    rows = rows_of(made(dynamic, static, behind, align))
    for part, is_static in ((dynamic, False), (static, True)):
        mine = [r for r in rows if r.kind == "buffer" and r.static == is_static]
        assert sorted(r.name for r in mine) == sorted(b.name for b in part)
        seen: set[int] = set()
        for row in mine:
            assert row.own_bytes == len(addresses(row) - seen)
            seen |= addresses(row)
            assert sorted(row.shares_with) == sorted(
                other.name
                for other in mine
                if other is not row and addresses(other) & addresses(row)
            )
        starts = [row.offset for row in mine]
        assert starts == sorted(starts)  # type: ignore[type-var]


# ---- layouts by hand ----------------------------------------------------------------------------


def test_a_buffer_aligned_to_1024_behind_128_bytes_leaves_896() -> None:
    first = buffer("scale", 128, offset=0)
    second = buffer("tile", 2048, offset=1024, align_bytes=1024)
    rows = rows_of(kernel(second, first, dynamic_bytes=1024 + 2048, align=1024))
    assert [brief(row) for row in rows] == [
        ("scale", 0, 128, 128),
        ("gap", 128, 1024 - 128, 1024 - 128),
        ("tile", 1024, 2048, 2048),
    ]
    assert [row.origin for row in rows] == ["source", "compiler", "source"]
    assert sum(row.own_bytes for row in rows) == 3 * KIB


def test_bytes_used_in_turn_count_once() -> None:
    """An epilogue tile over both stages' tiles: 48 KiB of buffers in 32 KiB."""
    a = buffer("a", 16 * KIB, offset=0, why="pipeline")
    b = buffer("b", 16 * KIB, offset=16 * KIB, why="pipeline")
    c = buffer("c", 24 * KIB, offset=0, why="not-pipelined")
    rows = rows_of(kernel(a, b, c, dynamic_bytes=32 * KIB))
    assert [(*brief(row), row.shares_with, row.why) for row in rows] == [
        ("c", 0, 24 * KIB, 24 * KIB, ("a", "b"), "not-pipelined"),
        ("a", 0, 16 * KIB, 0, ("c",), "pipeline"),
        ("b", 16 * KIB, 16 * KIB, (16 + 16 - 24) * KIB, ("c",), "pipeline"),
    ]


def test_static_items_with_a_gap_and_the_rounding_to_the_dynamic_alignment() -> None:
    """9 bytes, then 64 at the next multiple of 16; 80 bytes rounded up to 1,024."""
    flags = buffer("flags", 9, offset=0, static=True, scope="shared")
    barriers = buffer(*("mbarrier", 64), offset=16, static=True, origin="compiler", why="barrier")
    tile = buffer("tile", 4 * KIB, offset=0)
    value = kernel(flags, barriers, tile, dynamic_bytes=4 * KIB, static_bytes=80, align=1024)
    rows = rows_of(value)
    assert [(*brief(row), row.static) for row in rows] == [
        ("tile", 0, 4 * KIB, 4 * KIB, False),
        ("flags", 0, 9, 9, True),
        ("gap", 9, 16 - 9, 16 - 9, True),
        ("mbarrier", 16, 64, 64, True),
        ("rounding", 80, 1024 - 80, 1024 - 80, True),
    ]
    assert rows[-1].kind == "rounding"
    assert {row.name: row.origin for row in rows} == {
        **{"tile": "source", "flags": "source"},
        **{"gap": "compiler", "mbarrier": "compiler", "rounding": "compiler"},
    }
    assert {row.why for row in rows if row.why} == {"alignment-gap", "barrier", "static-rounding"}
    assert {"alignment-gap", "barrier", "static-rounding"} <= set(REASONS)


@pytest.mark.parametrize(
    ("static_bytes", "align", "rounding"),
    [
        (2048, 1024, []),  # already a multiple
        (2049, 1024, [1023]),
        (100, None, []),  # no dynamic array to align
        (0, 1024, []),
    ],
)
def test_the_rounding_is_a_row_only_where_there_is_one(
    static_bytes: int, align: int | None, rounding: list[int]
) -> None:
    item = buffer("item", static_bytes, offset=0, static=True)
    rows = rows_of(kernel(item, static_bytes=static_bytes, align=align))
    assert [row.bytes for row in rows if row.kind == "rounding"] == rounding


def test_what_is_behind_the_last_buffer_is_a_gap() -> None:
    """TileLang rounds the array up to 16."""
    rows = rows_of(kernel(buffer("tile", 100, offset=0), dynamic_bytes=112))
    assert [brief(row) for row in rows] == [("tile", 0, 100, 100), ("gap", 100, 12, 12)]


def test_registers_tensor_memory_and_what_vanished_have_no_row() -> None:
    rows = rows_of(
        kernel(
            buffer("acc", 64, memory=Memory.REGISTERS, offset=None),
            buffer("tmem", 512, memory=Memory.TENSOR, offset=None),
            buffer("gone", 0, copies=0, offset=None),
            buffer("tile", 64, offset=0, copies=None),
            dynamic_bytes=64,
        )
    )
    assert [row.name for row in rows] == ["tile"]


@pytest.mark.parametrize(
    "value",
    [
        kernel(buffer("tile", 64, offset=None), dynamic_bytes=64),
        kernel(buffer("tile", None, offset=0), dynamic_bytes=64),
        kernel(buffer("tile", 64, offset=0), dynamic_bytes=None),
        kernel(buffer("flag", 4, offset=None, static=True), static_bytes=4),
    ],
    ids=["no offset", "open size", "open total", "static without offset"],
)
def test_what_is_not_known_is_no_account(value: Kernel) -> None:
    assert account(value) == ()


def test_a_kernel_without_shared_memory_has_an_empty_account() -> None:
    assert account(kernel()) == ()


@every_recording
def test_the_rows_of_real_kernels_sum_to_their_launch_total(recording: Recording) -> None:
    value = recorded(recording.path)
    rows = rows_of(value)
    assert sum(row.own_bytes for row in rows) == place(value)[0].total_bytes
    assert {row.why for row in rows if row.why} <= set(REASONS)


# ---- our packer beside the compiler's -----------------------------------------------------------


def used(name: str, n_bytes: int, offset: int, live: tuple[int, int], **more: int) -> Buffer:
    return buffer(name, n_bytes, offset=offset, live=live, **more)


@every_recording
def test_our_packer_agrees_on_real_kernels(recording: Recording) -> None:
    assert packing_differs(recorded(recording.path)) is None


def test_the_recordings_have_something_to_pack() -> None:
    """Else the test above would compare nothing."""
    counts = [
        len([b for b in recorded(r.path).buffers if b.live is not None and not b.static])
        for r in RECORDINGS
    ]
    assert sum(count >= 2 for count in counts) >= 12


@every_recording
def test_a_buffer_at_another_place_is_named(recording: Recording) -> None:
    """Each buffer of each recording is moved 16 bytes up: the first moved one is told."""
    value = recorded(recording.path)
    for number, one in enumerate(value.buffers):
        if one.live is None or one.static or not one.copies:
            continue
        assert one.offset is not None
        moved = replace(one, offset=one.offset + 16)
        buffers = (*value.buffers[:number], moved, *value.buffers[number + 1 :])
        assert packing_differs(replace(value, buffers=buffers)) == (
            f"our packer puts {one.name} at {one.offset:,}, the compiler at "
            f"{one.offset + 16:,}: please report this kernel"
        )


def test_the_first_difference_in_the_order_of_the_buffers_is_told() -> None:
    """Of two that start together the larger goes first; here they changed places."""
    value = kernel(
        used("small", 1024, 0, (1, 9)), used("big", 4096, 1024, (1, 9)), dynamic_bytes=5120
    )
    assert packing_differs(value) == (
        "our packer puts small at 4,096, the compiler at 0: please report this kernel"
    )


def test_another_total_is_told() -> None:
    buffers = (used("a", 4096, 0, (1, 9)), used("b", 1024, 4096, (1, 9)))
    assert packing_differs(kernel(*buffers, dynamic_bytes=5120)) is None
    assert packing_differs(kernel(*buffers, dynamic_bytes=5120 + 16)) == (
        "our packer needs 5,120 B, the compiler 5,136 B: please report this kernel"
    )


def test_our_packer_minds_the_alignment() -> None:
    """2,048 bytes that need 1,024 stand behind 128 that came first: at 1,024, not at 128."""
    scale = used("scale", 128, 0, (1, 9))
    tile = used("tile", 2048, 1024, (3, 9), align_bytes=1024)
    assert packing_differs(kernel(scale, tile, dynamic_bytes=1024 + 2048)) is None


def test_work_areas_that_are_alike_may_change_places() -> None:
    """TileLang orders them by the address of an object, which is chance."""
    first = used("workspace", 512, 0, (3, 5))
    second = used("workspace", 512, 512, (3, 5))
    for order in ((first, second), (second, first)):
        assert packing_differs(kernel(*order, dynamic_bytes=1024)) is None
    # what is alike in all but its size may not
    longer = used("workspace", 1024, 512, (3, 5))
    assert packing_differs(kernel(first, longer, dynamic_bytes=512 + 1024)) is not None


def test_a_buffer_that_the_compiler_left_without_a_place_is_told() -> None:
    value = kernel(
        used("a", 4096, 0, (1, 9)),
        replace(used("b", 1024, 4096, (1, 9)), offset=None),
        dynamic_bytes=5120,
    )
    assert packing_differs(value) == (
        "our packer puts b at 4,096, the compiler nowhere: please report this kernel"
    )


def test_static_bytes_that_the_assembler_counts_otherwise_are_told() -> None:
    """48 bytes are 1,024 where the dynamic array wants that alignment; else there is no account."""
    value = kernel(
        buffer("mbarrier", 48, offset=0, static=True), static_bytes=48, align=1024, dynamic_bytes=0
    )
    told = replace(value, assembly=values.made(static_bytes=1024))
    assert packing_differs(told) is None
    assert sum(row.own_bytes for row in rows_of(told)) == 1024
    other = replace(value, assembly=values.made(static_bytes=2048))
    assert packing_differs(other) == (
        "our static layout needs 1,024 B, the assembler says 2,048 B: please report this kernel"
    )
    assert account(other) == ()


def test_without_reuse_every_buffer_keeps_its_bytes() -> None:
    """By name, one behind the other, though they never live together."""
    a, b = used("a", 1024, 0, (5, 9)), used("b", 1024, 1024, (1, 5))
    apart = replace(kernel(a, b, dynamic_bytes=2048), reuse=False)
    assert packing_differs(apart) is None
    assert packing_differs(replace(apart, reuse=True)) is not None


@pytest.mark.parametrize(
    "value",
    [
        kernel(),
        kernel(buffer("a", 64, offset=0), dynamic_bytes=64),  # no live interval
        kernel(used("a", 64, 0, (1, 2)), dynamic_bytes=None),
        kernel(used("a", 64, 0, (1, 2), static=True), static_bytes=64),
    ],
    ids=["nothing", "liveness unknown", "open total", "static only"],
)
def test_nothing_to_compare_is_no_difference(value: Kernel) -> None:
    assert packing_differs(value) is None
