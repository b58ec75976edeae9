"""Ascend kernels as TileLang's own backend lays them out, against its generated source.

Three things are held together: what tilefit reads from the compiler's passes, the addresses in the
generated source (`ascend_truth`), and arithmetic written by hand (kernels/ascend/expected.toml).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import ascend_truth
from tests.ascend_corpus import MEMORIES, Case, accepted, arithmetic, cases, read
from tests.lowering import source
from tilefit._errors import RefusedError
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.reasons import ALIGNMENTS, REASONS

pytestmark = pytest.mark.tilelang

# an Ascend 950, bytes: UB per AIV, with and without SIMT; the others per AIC
UB, UB_SIMT = 253_952, 221_184
CUBE = {"l1": 524_288, "l0a": 65_536, "l0b": 65_536, "l0c": 262_144}
HIDDEN = "l1-gemm-slots"

every = pytest.mark.parametrize("case", accepted(), ids=lambda case: case.id)


def on_chip(kernel: Kernel) -> list[Buffer]:
    return [b for b in kernel.buffers if b.memory in MEMORIES and b.copies != 0]


def totals(kernel: Kernel) -> dict[str, int | None]:
    return {str(arena.memory): arena.total_bytes for arena in kernel.memories}


def test_the_corpus_holds_thirty_kernels_and_names_each() -> None:
    named = {(case.file, case.kernel) for case in cases()}
    found = {
        (file, listing.name)
        for file in {case.file for case in cases()}
        for listing in source(next(c.path for c in cases() if c.file == file)).kernels()
    }
    assert named == found
    assert len(named) >= 30


@every
def test_totals_are_the_arithmetic_of_the_rules(case: Case) -> None:
    for kernel, expected in zip(read(case).kernels, case.functions, strict=True):
        by_hand = {m: arithmetic(expected[m]) for m in MEMORIES if m in expected}
        assert totals(kernel).keys() == by_hand.keys()
        for memory, total in totals(kernel).items():
            assert total is not None
            # in a memory with several buffers each starts at a multiple of 32 B or more
            starts = sum(b.align_bytes or 0 for b in on_chip(kernel) if b.memory == memory)
            loose = by_hand[memory] % 32 != 0
            assert 0 <= total - by_hand[memory] <= (starts if loose else 0)


@every
def test_versions_and_codes(case: Case) -> None:
    for kernel, expected in zip(read(case).kernels, case.functions, strict=True):
        own = [b for b in kernel.buffers if b.origin == "source" and b.memory in MEMORIES]
        assert {b.name: [b.copies, b.why] for b in own} == expected["buffers"]
        padded = {b.name: list(b.padded_shape) for b in own if b.padded_shape}
        assert padded == expected.get("padded", {})
        assert all(b.why in REASONS for b in own)
        assert all(b.align_why in ALIGNMENTS for b in own if b.copies)


@every
def test_totals_are_the_highest_end_in_the_generated_source(case: Case) -> None:
    lowered = read(case)
    if lowered.source is None:
        assert "no_code" in case.expected
        return
    for kernel, expected in zip(lowered.kernels, case.functions, strict=True):
        ends = ascend_truth.totals(lowered.source, kernel.function)
        assert ends.keys() == totals(kernel).keys()
        if "past_end" in expected:  # a defect of the compiler's, not of the layout
            assert ends["ub"] == arithmetic(expected["past_end"])
            ends["ub"] = arithmetic(expected["ub"])
        for memory, total in totals(kernel).items():
            assert total is not None
            assert 0 <= total - ends[memory] < 32, memory
        assert totals(kernel).get("ub", 0) == lowered.ub_bytes[kernel.function]


@every
def test_every_buffer_starts_where_the_generated_source_uses_it(case: Case) -> None:
    lowered = read(case)
    if lowered.source is None:
        return
    for kernel in lowered.kernels:
        uses = ascend_truth.uses(lowered.source, kernel.function)
        starts = {(use.memory, use.start) for use in uses}
        placed = on_chip(kernel)
        assert all((str(b.memory), b.offset) in starts for b in placed)
        if any("past_end" in expected for expected in case.functions):
            continue
        for use in uses:
            assert any(holds(b, use) for b in placed), use


def holds(buffer: Buffer, use: ascend_truth.Use) -> bool:
    assert buffer.offset is not None
    assert buffer.bytes is not None
    end = buffer.offset + buffer.bytes
    return str(buffer.memory) == use.memory and buffer.offset <= use.start and use.end <= end


@every
def test_every_byte_is_a_buffers_or_a_gap_that_alignment_leaves(case: Case) -> None:
    for kernel in read(case).kernels:
        for memory, total in totals(kernel).items():
            end = 0
            for b in sorted(
                (b for b in on_chip(kernel) if b.memory == memory),
                key=lambda b: (b.offset or 0, -(b.bytes or 0)),
            ):
                assert b.offset is not None
                assert b.bytes is not None
                assert b.align_bytes is not None
                assert b.offset % b.align_bytes == 0
                assert b.offset - end < b.align_bytes
                end = max(end, b.offset + b.bytes)
            assert total is not None
            assert 0 <= total - end < 32


@every
def test_only_buffers_that_are_never_live_together_share_bytes(case: Case) -> None:
    for kernel in read(case).kernels:
        placed = [b for b in on_chip(kernel) if b.why != HIDDEN]
        for number, one in enumerate(placed):
            for other in placed[number + 1 :]:
                if one.memory is other.memory and meet(one, other):
                    assert one.live is not None
                    assert other.live is not None
                    assert one.live[1] <= other.live[0] or other.live[1] <= one.live[0]


def meet(one: Buffer, other: Buffer) -> bool:
    a, b = one.offset or 0, other.offset or 0
    return a < b + (other.bytes or 0) and b < a + (one.bytes or 0)


def test_two_of_four_chained_tiles_share_with_the_other_two() -> None:
    (kernel,) = lowered("vector", "chain", "default")
    offsets = {b.name: b.offset for b in on_chip(kernel)}
    assert offsets == {"first": 0, "third": 0, "second": 65_536, "fourth": 65_536}


def lowered(file: str, kernel: str, name: str) -> tuple[Kernel, ...]:
    (case,) = (c for c in cases() if (c.file, c.kernel, c.name) == (file, kernel, name))
    return read(case).kernels


@every
def test_cores_and_the_simt_condition_are_those_of_the_generated_source(case: Case) -> None:
    result = read(case)
    if result.source is None:
        return
    for kernel in result.kernels:
        head = next(
            line
            for line in result.source.splitlines()
            if "__global__" in line and f" {kernel.function}(" in line
        )
        marks = {"cube": "__cube__", "vector": "__vector__", "mixed": "__mix__(1, 2)"}
        assert kernel.cores is not None
        assert marks[kernel.cores] in head
        simt = f"{kernel.function}_simt_vf_" in result.source
        assert kernel.conditions == (("simt",) if simt else ())


@every
def test_what_no_chip_has_is_what_is_expected_to_be_too_much(case: Case) -> None:
    for kernel, expected in zip(read(case).kernels, case.functions, strict=True):
        limits = {**CUBE, "ub": UB_SIMT if kernel.conditions else UB}
        over = [m for m, total in totals(kernel).items() if (total or 0) > limits[m]]
        assert over == expected.get("over", [])


@every
def test_a_multiplication_that_writes_over_kept_operands_is_named(case: Case) -> None:
    for kernel, expected in zip(read(case).kernels, case.functions, strict=True):
        names = expected.get("overlaps", [])
        assert len(kernel.overlaps) == len(names)
        assert all(
            f"while {n} is live" in line for n, line in zip(names, kernel.overlaps, strict=True)
        )


@pytest.mark.parametrize(
    "case", [c for c in cases() if "refused" in c.expected], ids=lambda c: c.id
)
def test_a_refusal_keeps_the_compilers_numbers(case: Case) -> None:
    with pytest.raises(RefusedError, match=case.expected["refused"]):
        read(case)


def test_a_layout_without_code_says_so() -> None:
    (kernel,) = lowered("mixed", "dequantised", "int8")
    assert kernel.built == "cannot-assemble"
    assert "int8x4" in kernel.assembly.reason
    assert {use.align_bytes for use in kernel.memories} == {None}


def test_hidden_bytes_are_rows_of_the_compiler() -> None:
    (softmax,) = lowered("reductions", "softmax", "default")
    scratch = [b for b in softmax.buffers if b.origin == "compiler"]
    assert [(b.why, b.bytes) for b in scratch] == [("reduce-workspace", 256 * 4)] * 2
    (plain,) = lowered("gemm", "plain", "all-of-l1")
    slots = {str(b.memory): (b.copies, b.shape, b.bytes) for b in plain.buffers if b.why == HIDDEN}
    assert slots == {
        "l0a": (2, (128, 128), 2 * 128 * 128 * 2),
        "l0b": (2, (128, 128), 2 * 128 * 128 * 2),
    }
    (wide,) = lowered("mixed", "attention", "default")
    (fractal,) = (b for b in wide.buffers if b.why == "nz-scratch")
    assert fractal.bytes == (32 + 1) * 128 * 2


@every
def test_a_store_past_the_end_of_its_buffer_is_noted(case: Case) -> None:
    for kernel, expected in zip(read(case).kernels, case.functions, strict=True):
        notes = [note for note in kernel.notes if "is written over" in note]
        # 16 rows of 64 elements into 16: the last register begins at 15 x 64
        past = ["element 960 of total, which has 16"] if "past_end" in expected else []
        assert len(notes) == len(past)
        assert all(words in note for words, note in zip(past, notes, strict=True))


def live(file: str, kernel: str) -> dict[str, tuple[int, int] | None]:
    (one,) = lowered(file, kernel, "default")
    return {b.name: b.live for b in on_chip(one) if b.origin == "source"}


def test_live_intervals_are_those_of_the_statements() -> None:
    # 0 copy in, 1 to 3 a vector region each, 4 copy out
    assert live("vector", "chain") == {
        "first": (0, 2),
        "second": (1, 3),
        "third": (2, 4),
        "fourth": (3, 5),
    }
    # a plain loop, each iteration fresh: 0 copy in, 1 vector, 2 copy out
    assert live("vector", "add_serial") == {"a": (0, 2), "c": (1, 3)}


def test_iterations_that_overlap_keep_a_buffer_live_for_the_whole_loop() -> None:
    # 0 and 1 copy in, 2 vector, 3 copy out
    assert live("vector", "add") == {"a": (0, 4), "b": (0, 4), "c": (0, 4)}
    # 0 and 1 copy in, 2 multiply, behind the loop 3 copy out: c is carried through the loop
    assert live("gemm", "plain") == {"a": (0, 3), "b": (0, 3), "c": (0, 4)}
    # 0 clear, inner loop of 1 copy in and 2 add, 3 copy out
    assert live("vector", "nested") == {"a": (1, 3), "total": (0, 4)}


def test_stages_stand_beside_the_versions() -> None:
    (kernel,) = lowered("gemm", "plain", "four-stages")
    asked = {b.name: (b.copies, b.stages) for b in on_chip(kernel) if b.origin == "source"}
    assert asked == {"a": (2, 4), "b": (3, 4), "c": (1, 4)}
    (nested,) = lowered("vector", "nested", "three-stages")
    assert {b.name: b.stages for b in on_chip(nested)} == {"a": 3, "total": 3}


def test_a_grid_is_one_of_cores() -> None:
    (kernel,) = lowered("gemm", "plain", "default")
    assert kernel.launch.grid == (4, 1, 1)
    assert kernel.launch.threads is None
    first, second = lowered("vector", "two_launches", "default")
    assert (first.launch.grid[0], second.launch.grid[0]) == (1, 2)


def test_lines_are_those_of_the_file() -> None:
    (kernel,) = lowered("gemm", "plain", "default")
    lines = (cases()[0].path).read_text().splitlines()
    for buffer in kernel.buffers:
        if buffer.line is not None:
            assert lines[buffer.line - 1].strip().startswith(f"{buffer.name} = T.alloc_")


@every
def test_a_kernel_survives_json(case: Case) -> None:
    for kernel in read(case).kernels:
        data: dict[str, Any] = json.loads(json.dumps(kernel.to_dict()))
        assert Kernel.from_dict(data) == kernel
