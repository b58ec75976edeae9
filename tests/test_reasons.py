"""For each code a pair of kernels: without the named cause, the copies are other ones.

Each row lowers two kernels that differ in the cause alone; the copies with and without it follow
from the rules at the head of tests/kernels/corpus/expected.toml.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.lowering import KERNELS, lower
from tilefit._errors import RefusedError
from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import Memory
from tilefit._kernel.reasons import REASONS
from tilefit._placement.account import account

CORPUS = KERNELS / "corpus"
# codes that only kernels for Ascend have: tests/test_ascend*.py and test_source_versions.py
OF_ASCEND = {
    *("scheduled", "fewer-suffice", "fewer-taken", "no-room", "outlives-iteration"),
    *("fixed-versions", "manual-versions", "schedule-off", "fewest-versions"),
    *("l1-gemm-slots", "nz-scratch", "version-alignment", "arena-end"),
}


@dataclass(frozen=True)
class Side:
    """One kernel of a pair, and what its buffer is expected to be."""

    kernel: str
    copies: int | None
    code: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """The same buffer of the same target with and without a cause."""

    cause: str
    target: str
    buffer: str
    having: Side
    without: Side

    @property
    def id(self) -> str:
        return f"{self.having.code}-{self.cause.replace(' ', '-')}-{self.target}"


def pair(
    cause: str,
    target: str,
    kernel: str,
    buffer: str,
    having: tuple[int | None, str, dict[str, Any]],
    without: tuple[int | None, str, dict[str, Any]],
    other: str | None = None,
) -> Pair:
    """A pair of one kernel under two sets of parameters, or of two kernels."""
    return Pair(
        cause=cause,
        target=target,
        buffer=buffer,
        having=Side(kernel, *having),
        without=Side(other or kernel, *without),
    )


PAIRS = (
    # more than one copy
    pair(
        *("three stages", "sm_90a", "gemm.epilogue", "a"),
        (3, "ws-pipeline", {"num_stages": 3}),
        (1, "one-stage", {"num_stages": 1}),
    ),
    pair(
        *("three stages", "sm_80", "gemm.epilogue", "a"),
        (3, "pipeline", {"num_stages": 3}),
        (1, "one-stage", {"num_stages": 1}),
    ),
    pair(
        *("pipelined loop", "sm_80", "gemm.epilogue", "b"),
        (3, "pipeline", {}),
        (1, "not-pipelined", {"num_stages": 0}),
    ),
    pair(
        *("first loop", "sm_90a", "loops.apart", "d"),
        (2 * 2, "two-loops", {"first": True}),
        (2, "ws-pipeline", {"first": False}),
    ),
    pair(
        *("global read", "sm_80", "causes.fill", "a"),
        (3, "store-driven", {"by": "store"}),
        (1, "same-stage", {"by": "fragment"}),
    ),
    pair(
        *("global read", "sm_90a", "causes.fill", "a"),
        (3, "store-driven", {"by": "store"}),
        (1, "same-stage", {"by": "fragment"}),
    ),
    pair(
        *("scale in global memory", "sm_90a", "quantised.int4_scaled", "b"),
        (2, "store-driven", {}),
        (1, "same-stage", {}),
        other="quantised.int4",
    ),
    pair(
        *("global read", "sm_90a", "causes.fill", "a"),
        (3, "guarded-load", {"by": "guard"}),
        (1, "same-stage", {"by": "fragment"}),
    ),
    pair(
        *("stage list", "sm_90a", "causes.ordered", "a"),
        (2 - 0 + 1, "explicit-order", {"apart": 2}),
        (1 - 0 + 1, "explicit-order", {"apart": 1}),
    ),
    # the copies behind the reader: no writer is ahead of a reader in order, so one copy less
    pair(
        *("order list", "sm_80", "causes.ordered", "a"),
        (2 - 0 + 1, "explicit-order", {"copies_first": True}),
        (2 - 0, "explicit-order", {"copies_first": False}),
    ),
    # one copy
    pair(
        *("plain loop", "sm_90a", "gemm.unpipelined", "a"),
        (1, "not-pipelined", {}),
        (2, "ws-pipeline", {"num_stages": 2}),
        other="gemm.epilogue",
    ),
    pair(
        *("index from outside", "sm_90a", "sparse.gathered_rows", "index"),
        (1, "read-only", {}),
        (2, "ws-pipeline", {}),
        other="sparse.indices_in_loop",
    ),
    pair(
        *("fragment between", "sm_80", "causes.fill", "a"),
        (1, "same-stage", {"by": "fragment"}),
        (3, "pipeline", {"by": "copy"}),
    ),
    # a guard keeps a store from being moved ahead, but only where there is no producer
    pair(
        *("guard", "sm_80", "causes.fill", "a"),
        (1, "same-stage", {"by": "guard"}),
        (3, "store-driven", {"by": "store"}),
    ),
    pair(
        *("clear before the copy", "sm_90a", "causes.cleared_first", "a"),
        (1, "same-stage", {"clear": True}),
        (2, "ws-pipeline", {"clear": False}),
    ),
    pair(
        *("one stage", "sm_90a", "causes.one_stage", "a"),
        (1, "one-stage", {"num_stages": 1}),
        (2, "ws-pipeline", {"num_stages": 2}),
    ),
    pair(
        *("if with an else", "sm_90a", "causes.branches", "a"),
        (1, "stages-dropped", {"otherwise": "copy"}),
        (2, "ws-pipeline", {"otherwise": "none"}),
    ),
    pair(
        *("clear in the else", "sm_80", "causes.branches", "a"),
        (1, "same-stage", {"otherwise": "clear"}),
        (2, "pipeline", {"otherwise": "copy"}),
    ),
    pair(
        *("if with an else", "sm_100a", "attention.backward_queries", "k"),
        (1, "stages-dropped", {"guard": True}),
        (2, "ws-pipeline", {"guard": False}),
    ),
    # none, or not a whole number
    pair(
        *("never touched", "sm_90a", "causes.forgotten", "spare"),
        (0, "unused", {"use": False}),
        (1, "not-pipelined", {"use": True}),
    ),
    pair(
        *("16 // 32 iterations", "sm_90a", "causes.empty_loop", "a"),
        (0, "empty-loop", {"K": 16}),
        (2, "ws-pipeline", {"K": 256}),
    ),
    pair(
        *("padding", "sm_80", "causes.padded", "a"),
        (None, "layout", {"pad": 8}),
        (2, "pipeline", {"pad": 0}),
    ),
)

# Where the copies stay: on the other path, or because both pipelines keep a copy a stage
SAME = (
    # without warp specialisation only one pass multiplies
    pair(
        *("first loop", "sm_80", "loops.apart", "d"),
        (2, "pipeline", {"first": True}),
        (2, "pipeline", {"first": False}),
    ),
    # the same branches are a copy to the ordinary pipeline
    pair(
        *("if with an else", "sm_80", "causes.branches", "a"),
        (2, "pipeline", {"otherwise": "copy"}),
        (2, "pipeline", {"otherwise": "none"}),
    ),
    # what decides between the two pipelines: a copy that TMA can do
    pair(
        *("row stride of 520 bytes", "sm_90a", "causes.unaligned", "a"),
        (2, "pipeline", {"N": 260}),
        (2, "ws-pipeline", {"N": 256}),
    ),
    pair(
        *("no copy by TMA", "sm_90a", "causes.without_tma", "a"),
        (2, "pipeline", {}),
        (2, "ws-pipeline", {"b_tma": True}),
    ),
    pair(
        *("warp specialisation off", "sm_90a", "own_configs.one_role", "a"),
        (2, "pipeline", {}),
        (2, "ws-pipeline", {}),
        other="own_configs.no_reuse",
    ),
)


def buffer_of(side: Side, target: str, name: str) -> Buffer:
    """Lower one side of a pair and return its buffer."""
    module, kernel = side.kernel.split(".")
    (lowered,) = lower(CORPUS / f"{module}.py", kernel, target, **side.params)
    (found,) = [b for b in lowered.buffers if b.name == name and b.origin == "source"]
    return found


@pytest.mark.tilelang
@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row.id)
def test_without_the_cause_the_copies_are_other_ones(row: Pair) -> None:
    having = buffer_of(row.having, row.target, row.buffer)
    without = buffer_of(row.without, row.target, row.buffer)
    assert (having.copies, having.why) == (row.having.copies, row.having.code)
    assert (without.copies, without.why) == (row.without.copies, row.without.code)
    assert having.copies != without.copies


@pytest.mark.tilelang
@pytest.mark.parametrize("row", SAME, ids=lambda row: row.id)
def test_elsewhere_it_is_no_cause_and_the_copies_stay(row: Pair) -> None:
    having = buffer_of(row.having, row.target, row.buffer)
    without = buffer_of(row.without, row.target, row.buffer)
    assert (having.copies, having.why) == (row.having.copies, row.having.code)
    assert (without.copies, without.why) == (row.without.copies, row.without.code)
    assert having.copies == without.copies


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("target", "stages", "second"),
    [
        # the ordinary pipeline: each loop gives the buffer a shape by its own stages
        *(("sm_80", 2, 3), ("sm_80", 3, 2), ("sm_80", 2, 0), ("sm_80", 0, 2)),
        # warp specialisation: the second loop is multiplied twice, the first once
        *(("sm_90a", 2, 2), ("sm_90a", 3, 2), ("sm_90a", 0, 2)),
    ],
)
def test_loops_that_disagree_about_a_buffer_are_refused(
    target: str, stages: int, second: int
) -> None:
    with pytest.raises(RefusedError, match="shape"):
        lower(CORPUS / "loops.py", "same_buffers", target, num_stages=stages, second=second)


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("target", "stages", "second", "copies"),
    [("sm_80", 2, 2, 2), ("sm_80", 3, 3, 3), ("sm_90a", 2, 1, 2)],
)
def test_loops_that_agree_about_a_buffer_share_its_copies(
    target: str, stages: int, second: int, copies: int
) -> None:
    (kernel,) = lower(CORPUS / "loops.py", "same_buffers", target, num_stages=stages, second=second)
    assert {b.name: b.copies for b in kernel.buffers if b.name in "ab"} == {
        "a": copies,
        "b": copies,
    }


def compiler_rows(kernel: str, target: str, **params: Any) -> dict[str | None, int]:
    """The bytes of shared memory that lowering added, by code."""
    module, name = kernel.split(".")
    (lowered,) = lower(CORPUS / f"{module}.py", name, target, **params)
    found: dict[str | None, int] = {}
    for b in lowered.buffers:
        if b.origin == "compiler" and b.memory is Memory.SHARED:
            found[b.why] = found.get(b.why, 0) + (b.bytes or 0)
    return found


@pytest.mark.tilelang
def test_barriers_come_with_warp_specialisation_alone() -> None:
    # all copies wait and release together: one group of 3 full and 3 free barriers of 8 bytes
    assert compiler_rows("gemm.epilogue", "sm_90a") == {"barrier": 2 * 3 * 8}
    assert compiler_rows("gemm.epilogue", "sm_80") == {}
    assert compiler_rows("own_configs.one_role", "sm_90a") == {}


@pytest.mark.tilelang
def test_a_reduction_across_warps_has_a_workspace_and_one_within_a_warp_has_none() -> None:
    # two reductions, one float a thread
    assert compiler_rows("rows.layernorm", "sm_90a") == {"reduce-workspace": 2 * 128 * 4}
    assert compiler_rows("rows.layernorm", "sm_90a", threads=32) == {}


@pytest.mark.tilelang
def test_a_reduction_by_all_reduce_has_static_scratch_beyond_a_warp_only() -> None:
    # 4 lines of 64 threads: a float for each of 8 warps and one for each line
    across = compiler_rows("rows.vector_product", "sm_80")
    assert sum(across.values()) == 8 * 4 + 4 * 4
    assert set(across) <= {"reduce-workspace", "compiler-scratch"}
    assert compiler_rows("rows.vector_product", "sm_80", threads=32) == {}


@pytest.mark.tilelang
def test_each_tmem_allocation_leaves_a_word_with_its_address() -> None:
    one = compiler_rows("tensor_memory.accumulator", "sm_100a")
    two = compiler_rows("tensor_memory.two_accumulators", "sm_100a")
    assert (one["tmem-address"], two["tmem-address"]) == (4, 2 * 4)


def counted(kernel: str, target: str, code: str) -> int:
    """The bytes that the account of shared memory gives to a code."""
    module, name = kernel.split(".")
    (lowered,) = lower(CORPUS / f"{module}.py", name, target)
    rows = account(lowered)
    assert rows is not None
    return sum(row.own_bytes for row in rows if row.why == code)


@pytest.mark.tilelang
def test_the_static_part_is_rounded_only_where_there_is_one() -> None:
    # 6 barriers of 8 bytes beside a dynamic array that is aligned to 1024
    assert counted("gemm.epilogue", "sm_90a", "static-rounding") == 1024 - 6 * 8
    assert counted("gemm.epilogue", "sm_80", "static-rounding") == 0


@pytest.mark.tilelang
def test_a_gap_comes_with_the_alignment_of_what_follows() -> None:
    # g ends at 512 beyond a multiple of 1024, and a tensor core operand follows
    assert counted("linear_attention.state_passing", "sm_90a", "alignment-gap") == 1024 - 512
    # without descriptors 16 bytes are enough: 2 x 64 x 4 bytes of g leave no gap
    assert counted("linear_attention.state_passing", "sm_80", "alignment-gap") == 0


def test_every_code_of_a_buffer_has_a_pair() -> None:
    covered = {row.having.code for row in PAIRS}
    made_by_compiler = {
        *("barrier", "reduce-workspace", "tmem-address", "compiler-scratch"),
        *("static-rounding", "alignment-gap"),
        "device-memory",  # T.alloc_global: see the recorded scope_showcase
    }
    assert covered == set(REASONS) - made_by_compiler - OF_ASCEND
