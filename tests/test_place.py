"""Placement: static shared memory rounds to the dynamic array's alignment, columns are exact."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record_kernels import RECORDINGS, Recording, recorded
from tests.values import KIB, kernel, tmem
from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import Evidence, Memory, Owner
from tilefit._placement.place import place

alignments = st.integers(4, 11).map(lambda power: 2**power)
every_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.path.stem)
GEMMS = [r for r in RECORDINGS if r.kernel == "matmul"]
# a 128x64 and a 64x128 tile of fp16
STAGE_BYTES = (128 * 64 + 64 * 128) * 2


@pytest.mark.parametrize(
    ("static", "align", "rounded"),
    [
        (48, 1024, 1024),  # 3 full and 3 empty barriers of 8 bytes before a swizzled tile
        (1024, 1024, 1024),
        (1025, 1024, 2048),
        (0, 1024, 0),  # nothing before the dynamic array: nothing to round
        (48, 16, 48),
        (52, 16, 64),
        (52, None, 52),  # no dynamic array behind it
    ],
)
def test_static_bytes_round_up_to_the_alignment_of_the_dynamic_array(
    static: int, align: int | None, rounded: int
) -> None:
    (use,) = place(kernel(dynamic_bytes=4096, static_bytes=static, align=align))
    assert (use.static_raw_bytes, use.static_bytes) == (static, rounded)
    assert use.total_bytes == 4096 + rounded
    assert (use.memory, use.owner, use.columns) == (Memory.SHARED, Owner.BLOCK, None)


@given(dynamic=st.integers(0, 10**6), static=st.integers(0, 10**4), align=alignments)
def test_rounding_adds_less_than_one_alignment(dynamic: int, static: int, align: int) -> None:
    (use,) = place(kernel(dynamic_bytes=dynamic, static_bytes=static, align=align))
    assert use.static_bytes % align == 0
    assert 0 <= use.static_bytes - static < align
    assert use.total_bytes == dynamic + use.static_bytes


def test_a_kernel_without_shared_memory_needs_0_bytes() -> None:
    (use,) = place(kernel())
    assert (use.total_bytes, use.evidence) == (0, Evidence.COMPILED)


def test_a_symbolic_dynamic_size_leaves_the_total_open() -> None:
    (use,) = place(kernel(dynamic_bytes=None, static_bytes=48, align=128))
    assert (use.dynamic_bytes, use.total_bytes) == (None, None)
    assert use.static_bytes == 128


@pytest.mark.parametrize(("static", "evidence"), [(0, "compiled"), (8, "modelled")])
def test_only_the_static_layout_is_modelled(static: int, evidence: str) -> None:
    (use,) = place(kernel(dynamic_bytes=512, static_bytes=static, align=16))
    assert use.evidence == evidence


def test_tensor_memory_comes_second_and_counts_columns() -> None:
    shared, tensor = place(kernel(tmem("C_t", 128), tmem("P_t", 64), dynamic_bytes=512))
    assert shared.memory is Memory.SHARED
    assert tensor.memory is Memory.TENSOR
    # a column is 128 lanes of 4 bytes
    assert tensor.columns == 128 + 64
    assert tensor.total_bytes == (128 + 64) * 128 * 4
    assert shared.total_bytes == 512


def test_tensor_memory_of_unknown_size_is_not_0() -> None:
    tensor = place(kernel(tmem("C_t", 128), tmem("P_t", None)))[1]
    assert (tensor.total_bytes, tensor.columns) == (None, None)


def test_tensor_evidence_is_that_of_the_weakest_buffer() -> None:
    declared = tmem("P_t", 64, evidence=Evidence.DECLARED)
    assert place(kernel(tmem("C_t", 128), declared))[1].evidence is Evidence.DECLARED


@pytest.mark.parametrize("recording", GEMMS, ids=lambda r: r.path.stem)
def test_a_recorded_gemm_needs_its_stages_and_two_barriers_for_each(recording: Recording) -> None:
    """Barriers are there where warps specialise: not on 8.0."""
    stages = dict(recording.params)["num_stages"]
    (use,) = place(recorded(recording.path))
    assert use.dynamic_bytes == stages * STAGE_BYTES
    if recording.target == "sm_80":
        assert use.static_bytes == use.static_raw_bytes == 0
    else:
        assert use.static_raw_bytes == stages * 2 * 8
        assert use.static_bytes == KIB
    assert use.total_bytes == stages * STAGE_BYTES + use.static_bytes


def test_the_recorded_tmem_accumulator_takes_a_quarter_of_the_columns() -> None:
    (recording,) = [r for r in RECORDINGS if r.kernel == "tmem_accumulator"]
    shared, tensor = place(recorded(recording.path))
    # 128x128 fp32: one column for each column of the tile
    assert tensor.columns == 128
    # 2 barriers of its own, 2 full, 2 empty, and the word that holds the address of C_t
    # behind a 16-byte boundary: 6 * 8 = 48 is one
    assert shared.static_raw_bytes == 6 * 8 + 4


def dynamic(buffers: tuple[Buffer, ...]) -> list[Buffer]:
    return [b for b in buffers if b.memory is Memory.SHARED and not b.static and b.copies]


@every_recording
def test_the_rows_of_a_recorded_kernel_add_up(recording: Recording) -> None:
    """None of them reuses memory, so the parts sum to the whole."""
    lowered = recorded(recording.path)
    assert sum(b.bytes or 0 for b in dynamic(lowered.buffers)) == lowered.staged.dynamic_bytes


@every_recording
def test_no_two_buffers_of_a_recorded_kernel_overlap(recording: Recording) -> None:
    lowered = recorded(recording.path)
    for arena, end in (
        (dynamic(lowered.buffers), lowered.staged.dynamic_bytes),
        ([b for b in lowered.buffers if b.static], lowered.staged.static_bytes),
    ):
        spans = [(b.offset or 0, (b.offset or 0) + (b.bytes or 0)) for b in arena]
        spans = [*sorted(spans), (end or 0, end or 0)]
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        assert all((b.offset or 0) % (b.align_bytes or 1) == 0 for b in arena)
