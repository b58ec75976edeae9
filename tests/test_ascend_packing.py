"""Our own layout of Ascend's memories: its rules by hand, its laws, and what the compiler chose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ascend_corpus import FOLDER, Case, accepted, read
from tests.lowering import source
from tests.opened import ask
from tilefit._errors import InputError
from tilefit._kernel.memory import Memory
from tilefit._placement.ascend_compare import arena_differs
from tilefit._placement.ascend_packer import (
    SLOT_ALIGN_BYTES,
    Tile,
    apart,
    gemm_slots,
    layout,
    padded_shape,
    tile_bytes,
)

KIB = 1024
FP4, FP8, FP16, FP32 = 4, 8, 16, 32


def tile(name: str, memory: Memory, shape: tuple[int, ...], bits: int, **more: Any) -> Tile:
    return Tile(name=name, memory=memory, shape=shape, bits=bits, **more)


def ub(name: str, n_bytes: int, *live: int, **more: Any) -> Tile:
    interval = (live[0], live[1]) if live else None
    return tile(name, Memory.UB, (n_bytes,), 8, live=interval, **more)


# ---- fractals ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "shape", "bits", "transposed", "padded"),
    [
        # 32 B are 32 fp8, 16 fp16, 8 fp32 and 64 fp4; rows go to 16
        (Memory.L1, (33, 48), FP8, False, (48, 64)),
        (Memory.L1, (17, 48), FP8, False, (32, 64)),
        (Memory.L1, (33, 20), FP16, False, (48, 32)),
        (Memory.L0A, (33, 20), FP32, False, (48, 24)),
        (Memory.L0B, (16, 65), FP4, False, (16, 128)),
        (Memory.L1, (33, 17), FP8, True, (64, 32)),
        (Memory.L1, (33, 17), FP32, True, (40, 32)),
        (Memory.L0C, (33, 17), FP32, False, (48, 32)),
        (Memory.L1, (3, 33, 20), FP16, False, (3, 48, 32)),
        (Memory.UB, (33, 17), FP16, False, (33, 17)),
        (Memory.L1, (100,), FP16, False, (100,)),
    ],
)
def test_rows_and_columns_are_padded_to_whole_fractals(
    memory: Memory, shape: tuple[int, ...], bits: int, transposed: bool, padded: tuple[int, ...]
) -> None:
    assert padded_shape(tile("t", memory, shape, bits, transposed=transposed)) == padded


def test_what_the_cube_does_not_use_is_not_padded() -> None:
    assert padded_shape(tile("t", Memory.L1, (33, 17), FP16, fractal=False)) == (33, 17)


def test_an_odd_fp8_product_takes_twice_its_declared_bytes_of_l1() -> None:
    a = tile("a", Memory.L1, (33, 48), FP8)
    b = tile("b", Memory.L1, (17, 48), FP8)
    assert 33 * 48 + 17 * 48 == 2400
    assert layout([a, b]).total_bytes == 48 * 64 + 32 * 64 == 5120


def test_versions_multiply_what_is_padded() -> None:
    assert tile_bytes(tile("a", Memory.L1, (33, 48), FP8, versions=3)) == 3 * 48 * 64
    assert tile_bytes(tile("a", Memory.L0B, (16, 64), FP4, versions=2)) == 2 * 16 * 64 // 2


def test_versions_in_ub_each_start_at_a_multiple_of_32_bytes() -> None:
    assert tile_bytes(ub("a", 40, versions=2)) == 2 * 64
    assert tile_bytes(ub("a", 40)) == 40


# ---- slots -------------------------------------------------------------------------------


def test_a_tile_alone_in_its_memory_is_left_as_it_is() -> None:
    assert layout([ub("a", 40)]).total_bytes == 40
    assert layout([]).total_bytes == 0


def test_larger_slots_come_first_and_the_end_is_a_multiple_of_32_bytes() -> None:
    found = layout([ub("small", 40, 0, 9), ub("large", 72, 0, 9)])
    assert found.offsets == (96, 0)  # 72 rounded up to 32
    assert found.total_bytes == 160  # 96 + 40 = 136, rounded up


def test_slots_of_accumulators_start_at_a_multiple_of_1024_bytes() -> None:
    wide = tile("wide", Memory.L0C, (33, 17), FP32)
    one = tile("one", Memory.L0C, (16, 16), FP32)
    found = layout([one, wide])
    assert found.offsets == (6 * KIB, 0)  # 48 x 32 x 4 B are 6 KiB
    assert found.total_bytes == 6 * KIB + 16 * 16 * 4


def test_tiles_that_are_never_live_together_share_a_slot_of_the_larger_one() -> None:
    found = layout([ub("first", 4096, 0, 3), ub("second", 1024, 3, 6)])
    assert (found.offsets, found.total_bytes) == ((0, 0), 4096)


def test_tiles_of_one_pipelined_loop_do_not_share() -> None:
    loop = frozenset({0})
    tiles = [ub("first", 4096, 0, 3, loops=loop), ub("second", 1024, 3, 6, loops=loop)]
    assert layout(tiles).offsets == (0, 4096)


def test_a_chain_of_four_takes_two_slots() -> None:
    # b and c exclude two others each: b opens a slot, c the next, then a joins c and d joins b;
    # the slot of a is the earlier one of two equal slots
    chain = [ub(name, 4096, n, n + 2) for n, name in enumerate("abcd")]
    found = layout(chain)
    assert found.offsets == (0, 4096, 0, 4096)
    assert found.total_bytes == 2 * 4096


def test_without_reuse_tiles_follow_one_another_by_name() -> None:
    tiles = [ub("z", 40, 0, 1), ub("a", 72, 1, 2)]
    assert layout(tiles, reuse=False).offsets == (96, 0)
    assert layout(tiles, reuse=False).total_bytes == 96 + 64  # 40 rounded up to 32


def test_what_is_no_tile_is_refused() -> None:
    with pytest.raises(InputError, match="no memory of Ascend"):
        tile("t", Memory.SHARED, (1,), 8)
    with pytest.raises(InputError, match="0 versions"):
        ub("t", 1, versions=0)
    with pytest.raises(InputError, match="end 1 is before 2"):
        ub("t", 1, 2, 1)


# ---- hidden slots of a GEMM --------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "n", "k", "bits", "expected"),
    [
        # all of K in one slot each: 128 x 64 and 256 x 64 fp16
        (128, 256, 64, FP16, (64, 128 * 64 * 2, 256 * 64 * 2)),
        # 32 KiB hold 64 columns of 256 rows of fp16: two slots of 256 x 64
        (256, 128, 256, FP16, (64, 2 * 256 * 64 * 2, 2 * 128 * 64 * 2)),
        # 64 columns would fit, and 96 is no multiple of them: 48 is the next that divides it
        (256, 16, 96, FP16, (48, 2 * 256 * 48 * 2, 2 * 16 * 48 * 2)),
        # 32 KiB hold 8 columns of 2048 rows: less than the 16 of a fractal
        (2048, 16, 64, FP16, None),
        # no multiple of 16 up to 72 divides 72
        (64, 64, 72, FP16, None),
    ],
)
def test_a_gemm_on_l1_tiles_takes_two_slots_of_l0_at_most(
    m: int, n: int, k: int, bits: int, expected: tuple[int, int, int] | None
) -> None:
    assert gemm_slots(m, n, k, bits) == expected


# ---- laws --------------------------------------------------------------------------------


@st.composite
def tiles(draw: st.DrawFn) -> list[Tile]:
    memory = draw(st.sampled_from(list(SLOT_ALIGN_BYTES)))
    found = []
    for number in range(draw(st.integers(0, 7))):
        start = draw(st.integers(0, 6))
        end = draw(st.none() | st.integers(start, 8))
        shape = tuple(draw(st.lists(st.integers(1, 70), min_size=1, max_size=3)))
        found.append(
            Tile(
                name=f"t{number}",
                memory=memory,
                shape=shape,
                bits=draw(st.sampled_from([FP4, FP8, FP16, FP32])),
                versions=draw(st.integers(1, 3)),
                live=None if end is None else (start, end),
                loops=frozenset(draw(st.sets(st.integers(0, 1)))),
            )
        )
    return found


def spans(found: Sequence[Tile], offsets: Sequence[int]) -> Iterator[tuple[Tile, int, int]]:
    for one, offset in zip(found, offsets, strict=True):
        yield one, offset, offset + tile_bytes(one)


@given(tiles(), st.booleans())
def test_tiles_that_are_live_together_never_overlap(found: list[Tile], reuse: bool) -> None:
    placed = list(spans(found, layout(found, reuse=reuse).offsets))
    for number, (one, start, end) in enumerate(placed):
        for other, begin, stop in placed[:number]:
            meet = start < stop and begin < end
            assert not meet or (reuse and apart(one, other))


@given(tiles(), st.booleans())
def test_slots_are_aligned_and_within_the_total(found: list[Tile], reuse: bool) -> None:
    result = layout(found, reuse=reuse)
    for one, start, end in spans(found, result.offsets):
        assert start % SLOT_ALIGN_BYTES[one.memory] == 0
        assert end <= result.total_bytes
    if len(found) > 1:
        assert result.total_bytes % 32 == 0


@given(tiles())
def test_the_total_is_between_the_largest_moment_and_all_side_by_side(found: list[Tile]) -> None:
    total = layout(found).total_bytes
    moments = [
        sum(tile_bytes(t) for t in found if t.live and t.live[0] <= step < t.live[1])
        for step in range(9)
    ]
    assert total >= max([*moments, *(tile_bytes(t) for t in found), 0])
    assert total <= layout([replace(t, live=None) for t in found]).total_bytes


@given(tiles())
def test_padding_never_takes_away(found: list[Tile]) -> None:
    for one in found:
        assert all(p >= s for p, s in zip(padded_shape(one), one.shape, strict=True))
        assert padded_shape(replace(one, shape=padded_shape(one))) == padded_shape(one)


# ---- against the compiler ----------------------------------------------------------------

# two loops one after the other, or a tile that waits behind one: never live together, and the
# compiler keeps them apart all the same
KEPT_APART = {"two_loops", "two_products", "ub_two_loops", "ub_live_across"}


@pytest.mark.tilelang
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", accepted(), ids=lambda case: case.id)
def test_sizes_offsets_and_totals_are_the_compilers_to_the_byte(case: Case) -> None:
    for kernel in read(case).kernels:
        notes = {arena.memory: arena_differs(kernel, arena) for arena in kernel.memories}
        notes = {memory: note for memory, note in notes.items() if note is not None}
        if case.kernel in KEPT_APART:
            assert all("it keeps tiles apart" in note for note in notes.values() if note)
        else:
            assert notes == {}


@pytest.mark.tilelang
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "params", "m", "n", "k"),
    [
        ("plain", {}, 128, 128, 64),
        ("plain", {"block_n": 256, "block_k": 128}, 128, 256, 128),
        ("plain", {"block_m": 256, "block_k": 96}, 256, 128, 96),
        ("serial", {}, 128, 64, 128),
    ],
)
def test_the_slots_of_a_gemm_are_those_of_the_generated_call(
    name: str, params: dict[str, int], m: int, n: int, k: int
) -> None:
    (kernel,) = source(FOLDER / "gemm.py").read(ask(name, params, "ascend"))
    hidden = {b.memory: b for b in kernel.buffers if b.why == "l1-gemm-slots"}
    part, of_a, of_b = gemm_slots(m, n, k, FP16) or (0, 0, 0)
    assert hidden[Memory.L0A].shape == (m, part)
    assert hidden[Memory.L0B].shape == (n, part)
    assert (hidden[Memory.L0A].bytes, hidden[Memory.L0B].bytes) == (of_a, of_b)
