"""What Ascend's compiler refuses, in plain words; what it refuses for nothing; edits that help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.ascend_corpus import Case, accepted, read
from tests.lowering import KERNELS, source
from tests.opened import ask
from tests.test_ascend_plan import L1, UB, buffer, kernel
from tilefit._devices.names import device
from tilefit._errors import RefusedError
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import CannotAssemble, Kernel
from tilefit._kernel.request import Request
from tilefit._placement.account import account
from tilefit._placement.place import place
from tilefit._planning.planner import Planner
from tilefit._planning.question import Options
from tilefit._planning.reader import Reader
from tilefit._planning.report import Result
from tilefit._verdict.judge import Status, judge
from tilefit._verdict.refusals import SILENCED, cautious, plain_refusal, reuse_would_do

KIB = 1024
A950 = device("ascend-950pr_957b")
TOO_MUCH = (
    'Z3 loop scheduling failed: scope "{}" capacity {} is insufficient for minimum buffer usage {}.'
    ' Try using T.annotate_unlimit_memory("{}") or reduce buffer sizes.'
)


@pytest.mark.parametrize(
    ("scope", "limit", "needed", "words"),
    [
        ("shared", 216 * KIB, 294912, "ub: the buffers of one loop need 294,912 B"),
        ("shared", 248 * KIB, 262144, "ub: the buffers of one loop need 262,144 B"),
        ("shared.l1", 512 * KIB, 1048576, "l1: the buffers of one loop need 1,048,576 B"),
        ("shared.l0a", 64 * KIB, 131072, "l0a: the buffers of one loop need 131,072 B"),
        ("shared.l0b", 64 * KIB, 131072, "l0b: the buffers of one loop need 131,072 B"),
        ("shared.l0c", 256 * KIB, 524288, "l0c: the buffers of one loop need 524,288 B"),
    ],
)
def test_too_much_for_a_loop_is_said_with_its_numbers(
    scope: str, limit: int, needed: int, words: str
) -> None:
    said = plain_refusal(TOO_MUCH.format(scope, limit, needed, scope), A950) or ""
    assert said.startswith(words)
    assert f"{limit:,} B are left for them" in said
    assert f"{needed - limit:,} B too many" in said
    assert "smaller" in said.casefold()  # what to change
    assert SILENCED in said
    assert "\n" not in said


def test_the_limit_is_explained() -> None:
    simt = plain_refusal(TOO_MUCH.format("shared", 221184, 294912, "shared"), A950) or ""
    assert "the kernel has SIMT parts" in simt
    plain = plain_refusal(TOO_MUCH.format("shared", 253952, 294912, "shared"), A950) or ""
    assert "all that a kernel may use" in plain
    rest = plain_refusal(TOO_MUCH.format("shared", 200000, 294912, "shared"), A950) or ""
    assert "others take the rest" in rest


def test_fixed_versions_are_said_to_be_over() -> None:
    said = plain_refusal(
        'Z3 loop scheduling failed: scope "shared" capacity is negative (-24576). Non-eligible and '
        "fixed-version buffers already exceed the memory limit. Try using "
        'T.annotate_unlimit_memory("shared") or reduce buffer sizes.',
        A950,
    )
    assert said is not None
    assert said.startswith("ub: ")
    assert "24,576 B over" in said
    assert "annotate_buffer_versions" in said
    assert SILENCED in said


def test_a_product_that_l0_cannot_hold_is_said_with_its_rows() -> None:
    message = "Cannot fit any sub-K tile in L0: M=2048, N=16, dtype=bfloat16, L0 capacity=65536"
    said = plain_refusal(message, A950) or ""
    assert "2 x 2048 x 32 B = 131,072 B" in said  # two slots of one fractal's depth
    assert "65,536 B" in said
    assert "split M or N" in said
    message = "K (72) is not divisible by any valid TILE_K_SUB <= 72"
    said = plain_refusal(message, A950) or ""
    assert "72" in said
    assert "multiple of 64" in said


def test_other_messages_are_left_to_their_author() -> None:
    assert plain_refusal("the kernel is wrong", A950) is None
    assert cautious("the kernel is wrong") == "the kernel is wrong"


def test_the_advice_to_silence_the_check_never_stands_alone() -> None:
    assert cautious("x. Try using T.annotate_unlimit_memory()").endswith(f"({SILENCED})")


# ---- refused, though the bytes are there ---------------------------------------------------


def chain(n_bytes: int, live: bool) -> Kernel:
    """Four tiles, each live with its neighbours only."""
    tiles = [
        buffer(name, UB, n_bytes, n * n_bytes, live=(n, n + 2) if live else (0, 5))
        for n, name in enumerate("abcd")
    ]
    return kernel(*tiles, totals={UB: 4 * n_bytes}, conditions=("simt",))


def test_what_would_fit_with_shared_bytes_is_said() -> None:
    said = reuse_would_do([chain(65536, live=False)], [chain(1024, live=True)], A950) or ""
    assert f"they need {2 * 65536:,} B of ub" in said
    assert f"adds up {4 * 65536:,} B" in said


def test_what_would_not_fit_either_is_not_promised() -> None:
    # two slots of 128 KiB are more than 216 KiB
    assert reuse_would_do([chain(131072, live=False)], [chain(1024, live=True)], A950) is None


def test_what_fits_side_by_side_needs_no_sharing() -> None:
    assert reuse_would_do([chain(1024, live=False)], [chain(512, live=True)], A950) is None


def test_kernels_of_other_buffers_prove_nothing() -> None:
    small = chain(1024, live=True)
    assert reuse_would_do([chain(65536, live=False)], [], A950) is None
    fewer = replace(small, buffers=small.buffers[1:])
    assert reuse_would_do([chain(65536, live=False)], [fewer], A950) is None


# ---- by the compiler -------------------------------------------------------------------------

EDITS = KERNELS / "ascend_edits.py"
# an Ascend 950, bytes: UB with and without SIMT parts, and what a cube core has
UB_SIMD, UB_SIMT = 248 * KIB, 216 * KIB
CUBE = {"l1": 512 * KIB, "l0a": 64 * KIB, "l0b": 64 * KIB, "l0c": 256 * KIB}


def overflowing() -> list[Case]:
    return [case for case in accepted() if case.expected.get("over")]


def plan(path: Path, name: str, **params: Any) -> Result:
    loaded = source(path)
    listing = next(one for one in loaded.kernels() if one.name == name)
    options = Options(stages=False)

    def read(request: Request) -> tuple[Kernel, ...]:
        return loaded.read(request)

    reader = Reader(read, listing, TILELANG, "0.1.15", options)
    (result,) = Planner(reader, listing, params, f"{path}::{name}", options).on(A950)
    return result


@pytest.mark.tilelang
@pytest.mark.filterwarnings("ignore")
class TestByTheCompiler:
    def test_a_refusal_for_nothing_says_what_sharing_needs_and_what_fits(self) -> None:
        result = plan(EDITS, "chain")
        assert result.status is Status.CANNOT_LOWER
        reason = result.reason or ""
        assert f"{4 * 16384 * 4:,} B in one version each" in reason
        assert f"sharing bytes within an iteration they need {2 * 16384 * 4:,} B of ub" in reason
        assert SILENCED in reason
        (tried, *_) = [t for t in result.tried if t.outcome.status is Status.FITS]
        assert tried.edit.params == (("tile", 8192),)
        assert tried.outcome.total_bytes == 4 * 8192 * 4
        assert (result.try_next or "").endswith("--set tile=8192")

    def test_stages_of_an_inner_loop_overflow_silently_and_fewer_fit(self) -> None:
        result = plan(EDITS, "inner_product")
        assert (result.status, result.silent_overflow) == (Status.DOES_NOT_FIT, True)
        one = 256 * 192 * 2
        assert (result.main.name, result.main.value) == ("l1", 6 * one) if result.main else False
        (tried, *_) = [t for t in result.tried if t.outcome.status is Status.FITS]
        # half a tile costs 3 or 4, the last stage but one 2 + 6
        assert tried.edit.params == (("block_k", 96),)
        by_memory = {a.memory: a.total_bytes for a in tried.outcome.kernels[0].memories}
        assert by_memory[L1] == 6 * one // 2

    @pytest.mark.parametrize("case", overflowing(), ids=lambda case: case.kernel)
    def test_every_silent_overflow_has_an_edit_that_fits_and_was_lowered(self, case: Case) -> None:
        result = plan(case.path, case.kernel, **case.params)
        assert result.silent_overflow
        fitting = [t for t in result.tried if t.outcome.status is Status.FITS]
        assert fitting
        costs = [t.edit.cost for t in result.tried]
        assert costs == sorted(costs)  # nothing cheaper was left out
        for tried in fitting:
            for one in tried.outcome.kernels:
                limits = {**CUBE, "ub": UB_SIMT if one.conditions else UB_SIMD}
                assert all((a.total_bytes or 0) <= limits[a.memory] for a in one.memories)

    @pytest.mark.parametrize("case", accepted(), ids=lambda case: case.id)
    def test_what_the_chip_lacks_is_found_and_nothing_else(self, case: Case) -> None:
        for one, expected in zip(read(case).kernels, case.functions, strict=True):
            found = judge(one, place(one), A950)
            over = expected.get("over", [])
            assert [check.name for check in found.memories if check.silent] == over
            assert found.silent_overflow == bool(over)
            bad = over or expected.get("overlaps", [])
            empty = any(b.why == "empty-loop" for b in one.buffers)  # then no bytes prove a fit
            fits = Status.UNKNOWN if empty else Status.FITS
            if isinstance(one.assembly, CannotAssemble):  # int8x4 is no type that it can write
                fits = Status.CANNOT_BUILD
            assert found.status is (Status.DOES_NOT_FIT if bad else fits)
            assert all(name in (found.reason or "") for name in bad[:1])
            if over:
                assert "the compiler accepts this; the chip has no such bytes" in (
                    found.reason or ""
                )

    @pytest.mark.parametrize("case", accepted(), ids=lambda case: case.id)
    def test_rows_sum_to_what_each_memory_takes(self, case: Case) -> None:
        for one in read(case).kernels:
            rows = account(one)
            for arena in one.memories:
                mine = [row for row in rows if row.memory is arena.memory]
                assert mine
                assert sum(row.own_bytes for row in mine) == arena.total_bytes

    @pytest.mark.parametrize(
        ("name", "params", "words"),
        [
            (
                "two_vectors",
                {"extent": 65536},
                f"ub: the buffers of one loop need {2 * 65536 * 4:,} B",
            ),
            (
                "product",
                {"block_m": 256, "block_n": 512, "block_k": 64},
                f"ub: the buffers of one loop need {128 * 512 * 4:,} B",
            ),
        ],
    )
    def test_the_compilers_own_words_are_known(
        self, name: str, params: dict[str, int], words: str
    ) -> None:
        with pytest.raises(RefusedError) as refused:
            source(KERNELS / "refused_ascend.py").read(ask(name, params, "ascend"))
        assert (plain_refusal(str(refused.value), A950) or "").startswith(words)
