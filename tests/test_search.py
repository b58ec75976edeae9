"""Edits beyond the first set, conditions on them, compiler options, and refusals in plain words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.lowering import lower
from tests.made_gemm import judged
from tests.values import KIB, buffer, kernel
from tilefit._errors import InputError, TilefitError, UnknownNameError
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._frontends.tilelang.words import in_words
from tilefit._kernel.kernel import Assembled, Kernel, MatrixUse
from tilefit._planning.foresee import Foresight
from tilefit._planning.keep import Condition, conditions, refuse_unknown
from tilefit._planning.outcome import outcome_of
from tilefit._planning.question import Options
from tilefit._planning.report import Edit, Tried
from tilefit._planning.suggest import best_of, larger_edits, loss_of, tried_edits
from tilefit._verdict.judge import Status
from tilefit.cli import main as command

ON = (TILELANG, "nvidia")
OWN = {"block_M": 128, "block_K": 64, "num_stages": 4, "threads": 128}


def attention(block_M: int = 128, block_K: int = 64, num_stages: int = 4, **_: int) -> Kernel:
    """A tile that stays and one that is pipelined, live together; 256 columns of two bytes."""
    stays, moves = block_M * 256 * 2, block_K * 256 * 2 * num_stages
    return kernel(
        buffer("q", stays, shape=(block_M, 256), live=(0, 9), offset=0),
        buffer("k", moves, shape=(block_K, 256), live=(1, 8), offset=stays),
        dynamic_bytes=stays + moves,
    )


def read(params: Mapping[str, Any], _: Mapping[str, Any]) -> tuple[Kernel, ...]:
    return (attention(**{**OWN, **params}),)


# ---- bytes that nobody lowered -------------------------------------------------------------------


def test_bytes_are_foreseen_from_two_lowerings_of_each_parameter() -> None:
    foresight = Foresight([attention()], OWN, ["num_stages"])
    assert foresight.total_bytes({"block_M": 32}) is None  # how it changes is not known
    foresight.learn({"block_M": 64}, [attention(block_M=64)])
    foresight.learn({"num_stages": 3}, [attention(num_stages=3)])
    # 32 rows of 512 B, two stages of 64 rows of 512 B
    assert foresight.total_bytes({"block_M": 32, "num_stages": 2}) == 32 * 512 + 2 * 64 * 512
    assert foresight.total_bytes({"block_M": 32, "block_K": 32}) is None


def test_a_parameter_is_learned_beside_another_one() -> None:
    """What does not lower alone may lower with something else."""
    foresight = Foresight([attention()], OWN, ["num_stages"])
    foresight.learn({"block_M": 64}, [attention(block_M=64)])
    foresight.learn({"block_M": 64, "block_K": 32}, [attention(block_M=64, block_K=32)])
    assert foresight.total_bytes({"block_K": 16}) == 128 * 512 + 4 * 16 * 512


def test_a_kernel_of_other_buffers_tells_nothing() -> None:
    foresight = Foresight([attention()], OWN, ["num_stages"])
    other = attention(block_M=64)
    foresight.learn({"block_M": 64}, [replace(other, buffers=other.buffers[:1])])
    assert foresight.total_bytes({"block_M": 64}) is None


# ---- the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit_kib", [60, 40, 24, 16])
def test_the_larger_edit_that_is_found_is_the_cheapest_that_fits(limit_kib: int) -> None:
    limit = limit_kib * KIB
    tried = tried_edits(
        OWN,
        *ON,
        params={},
        read=read,
        judge=judged(limit),
        kernels=[attention()],
        limit_bytes=limit,
    )
    fitting = [t for t in tried if t.outcome.status is Status.FITS]
    # by brute force over all values: q and k side by side
    costs = [
        edit.cost
        for edit in larger_edits(OWN, *ON)
        if (attention(**{**OWN, **dict(edit.params)}).memories[0].dynamic_bytes or 0) <= limit
    ]
    assert bool(fitting) == bool(costs)
    if fitting:
        assert min(t.edit.cost for t in fitting) == min(costs)
    assert len(tried) <= 12 + 8


def test_two_edits_that_are_over_by_arithmetic_are_not_lowered() -> None:
    asked: list[dict[str, Any]] = []

    def noting(params: Mapping[str, Any], configs: Mapping[str, Any]) -> tuple[Kernel, ...]:
        asked.append({**params, **configs})
        return read(params, configs)

    own = {"block_M": 128, "block_K": 64}
    limit = 90 * KIB  # 64 + 128 KiB now; 32 + 64 with both halves, 32 + 32 with a quarter
    tried_edits(
        own,
        *ON,
        params={},
        read=noting,
        judge=judged(limit),
        kernels=[attention()],
        limit_bytes=limit,
    )
    assert {"block_M": 64, "block_K": 32} not in asked
    assert asked[-1] == {"block_M": 64, "block_K": 16}


def test_one_stage_is_dearer_than_a_smaller_tile() -> None:
    """Two stages of 32 KiB and 64 KiB; half a K tile and one stage both leave 96 KiB."""
    own = {"block_K": 64, "num_stages": 2}
    now = attention(num_stages=2)

    def small(params: Mapping[str, Any], _: Mapping[str, Any]) -> tuple[Kernel, ...]:
        return (attention(**{"num_stages": 2, **params}),)

    tried = tried_edits(
        own, *ON, params={}, read=small, judge=judged(96 * KIB), kernels=[now], limit_bytes=96 * KIB
    )
    best = best_of(tried)
    assert best is not None
    assert best.edit.params == (("block_K", 32),)


def test_what_changes_nothing_is_not_suggested() -> None:
    now = replace(attention(), code="same")

    def same(params: Mapping[str, Any], configs: Mapping[str, Any]) -> tuple[Kernel, ...]:
        return (now,) if configs or "block_K" in params else read(params, configs)

    tried = tried_edits(OWN, *ON, params={}, read=same, judge=judged(10**9), kernels=[now])
    idle = [t for t in tried if t.idle]
    assert {t.edit.params for t in idle} >= {(), (("block_K", 32),)}
    assert not any(t.helps for t in idle)
    # nor is anything that contains it lowered
    assert not any(len(t.edit.params) > 1 and ("block_K", 32) in t.edit.params for t in tried)


def made(spill_bytes: int) -> Assembled:
    return Assembled(
        registers_per_thread=255, spill_bytes=spill_bytes, stack_bytes=0, static_bytes=0
    )


def test_a_spill_is_not_suggested_and_a_slower_matrix_path_comes_last() -> None:
    use = {p: MatrixUse(path=p, shape=None, dtype="float16") for p in ("wgmma", "mma")}
    now = replace(attention(), gemms=1, matrix=(use["wgmma"],), assembly=made(0))

    def tried(cost: int, after: Kernel) -> Tried:
        outcome = outcome_of(lambda: (after,), judged(10**9))
        outcome = replace(outcome, status=Status.FITS)
        one = Tried(Edit(cost, (("block_M", cost),)), outcome)
        return replace(one, loss=loss_of(one, now, None))

    spills = tried(1, replace(now, assembly=made(64)))
    slower = tried(2, replace(now, matrix=(use["mma"],)))
    whole = tried(3, now)
    assert not spills.helps
    assert slower.loss.matrix_path == "wgmma to mma"
    assert best_of([spills, slower, whole]) is whole
    assert best_of([spills, slower]) is slower
    assert best_of([spills]) is None


# ---- conditions ------------------------------------------------------------------------------


def test_conditions_are_read() -> None:
    assert conditions(["num_stages>=2, BM == 64", "x<-1"]) == (
        Condition("num_stages", ">=", 2),
        Condition("BM", "==", 64),
        Condition("x", "<", -1),
    )
    (one,) = conditions(["a!=3"])
    assert [one.holds({"a": v}) for v in (2, 3, "3", None)] == [True, False, False, False]
    with pytest.raises(UnknownNameError, match="num_stage"):
        refuse_unknown(conditions(["num_stage>1"]), "k", ["num_stages"])


@pytest.mark.parametrize(
    "text", ["num_stages", "2<a", "a>", "a>b", "", "a>=2.5", "a>=" + "9" * 5000]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--keep"):
        Options(keep=(text,))


def test_edits_leave_conditions_true() -> None:
    allowed = conditions(["num_stages>=3", "block_M>=64"])
    tried = tried_edits(
        OWN,
        *ON,
        params={},
        read=read,
        judge=judged(24 * KIB),
        kernels=[attention()],
        limit_bytes=24 * KIB,
        allowed=lambda params: all(one.holds(params) for one in allowed),
    )
    for one in tried:
        params = {**OWN, **dict(one.edit.params)}
        assert (params["num_stages"] >= 3, params["block_M"] >= 64) == (True, True)


# ---- with the compiler -----------------------------------------------------------------------

CORPUS = Path(__file__).parent / "kernels" / "corpus"
ROOT = Path(__file__).parent.parent


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = command(["plan", *words, "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    return code, result


def next_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The command that an answer ends with, without its first two words."""
    command(["plan", *words])
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("  tilefit plan ")
    return shlex.split(last)[2:]


@pytest.mark.tilelang
def test_a_kernel_far_over_the_limit_gets_the_cheapest_edit_that_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = CORPUS.parent / "latent.py"
    code, result = answer(capsys, f"{path}::decode", "-d", "rtx-5090")
    assert (code, result["verdict"]) == (1, "does-not-fit")
    first = result["suggestions"][0]
    # every tile and stage count below it, each lowered, held against the 99 KiB of 12.0
    costs: dict[int, set[int | None]] = {}
    steps = {64: 0, 32: 1, 16: 2}
    for rows, columns, stages in product(steps, steps, (2, 1)):
        try:
            params = {"tile_h": rows, "tile_n": columns, "num_stages": stages}
            (one,) = lower(path, "decode", "sm_120a", **params)
        except TilefitError:
            continue  # the layouts of its tiles contradict each other
        assert one.staged is not None
        if (one.staged.total_bytes or 0) <= 99 * KIB:
            # a tile that is not along K costs 4 a half, the last stage 2 + 6
            cost = 4 * (steps[rows] + steps[columns]) + (8 if stages == 1 else 0)
            costs.setdefault(cost, set()).add(one.staged.total_bytes)
    assert first["cost"] == min(costs)
    assert first["total_bytes"] in costs[min(costs)]


@pytest.mark.tilelang
def test_a_pass_config_is_set_and_carried_on(capsys: pytest.CaptureFixture[str]) -> None:
    gemm = str(ROOT / "examples" / "gemm.py") + "::matmul"
    off = ("--pass-config", "tl.disable_warp_specialized=true")
    _, plain = answer(capsys, gemm, "-d", "h100")
    _, without = answer(capsys, gemm, "-d", "h100", *off)
    # the producer of a specialised kernel is a warp group of its own
    assert (plain["threads"], without["threads"]) == (256, 128)
    over = next_of(capsys, gemm, "-d", "h100", *off, "--set", "num_stages=8")
    assert "--pass-config tl.disable_warp_specialized=True" in " ".join(over)
    assert command(["plan", gemm, "-d", "h100", "--pass-config", "tl.disable_tma_lowe=1"]) == 2
    assert "did you mean tl.disable_tma_lower" in capsys.readouterr().err
    assert command(["plan", gemm, "-d", "h100", "--pass-config", "tl.disable_tma_lower"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


@pytest.mark.tilelang
def test_a_merge_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    source = f"{CORPUS / 'linear_attention.py'}::chunked"
    given = ("--set", "length=1024", "--set", "num_stages=9")
    words = next_of(capsys, source, "-d", "h100", *given)
    assert "tl.enable_aggressive_shared_memory_merge=True" in words
    code, merged = answer(capsys, *words)
    assert (code, merged["verdict"]) == (0, "fits")


@pytest.mark.tilelang
def test_blocks_that_only_registers_settle_name_the_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gemm = str(ROOT / "examples" / "gemm.py") + "::matmul"
    assert command(["plan", gemm, "-d", "a100", "--blocks", "2", "--keep", "block_K>=64"]) == 1
    out = capsys.readouterr().out
    assert "not settled without registers (--assemble): num_stages 3 -> 2" in out
    assert "--set num_stages=2 --blocks 2 --keep 'block_K>=64' --assemble" in out


@pytest.mark.tilelang
def test_a_loop_without_constant_bounds_builds_with_one_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "causal.py"
    path.write_text(CAUSAL, encoding="utf-8")
    code, result = answer(capsys, f"{path}::causal", "-d", "a100")
    assert (code, result["verdict"]) == (1, "cannot-build")
    assert "bounds that are known only at run time" in result["reason"]
    words = next_of(capsys, f"{path}::causal", "-d", "a100")
    assert "num_stages=1" in words
    code, result = answer(capsys, *words)
    assert (code, result["verdict"]) == (0, "fits")


CAUSAL = """
import tilelang
import tilelang.language as T


@tilelang.jit
def causal(rows=64, columns=64, num_stages=2):
    n = T.dynamic("n")

    @T.prim_func
    def main(
        A: T.Tensor((n, columns), "float16"),
        B: T.Tensor((n, columns), "float16"),
        C: T.Tensor((n, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, rows), threads=128) as bx:
            q = T.alloc_shared((rows, columns), "float16")
            k = T.alloc_shared((rows, columns), "float16")
            v = T.alloc_shared((rows, columns), "float16")
            scores = T.alloc_fragment((rows, rows), "float32")
            weights = T.alloc_fragment((rows, rows), "float16")
            out = T.alloc_fragment((rows, columns), "float32")
            T.clear(out)
            T.copy(A[bx * rows, 0], q)
            for i in T.Pipelined(0, T.min(bx + 1, T.ceildiv(n, rows)), num_stages=num_stages):
                T.copy(A[i * rows : i * rows + rows, :], k)
                T.copy(B[i * rows : i * rows + rows, :], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(scores, weights)
                T.gemm(weights, v, out, policy=T.GemmWarpPolicy.FullRow)
            T.copy(out, C[bx * rows, 0])

    return main
"""


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("kernel_name", "device", "params", "words"),
    [
        ("across_k", "h100", ("dtype=float64", "acc=float64"), "has no form that TMA can copy"),
        ("along_k", "gfx1100", ("dtype=int8", "acc=int32"), "no matrix instruction of gfx1100"),
        ("along_k", "mi300x", ("dtype=float8_e4m3",), "no form of float8_e4m3 for gfx942"),
        ("along_k", "a100", ("bm=24",), "takes rows in steps of 16, and its tile has 24"),
    ],
)
def test_a_refusal_is_said_in_plain_words(
    kernel_name: str,
    device: str,
    params: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = f"{CORPUS.parent / 'matrix.py'}::{kernel_name}"
    given = [word for one in params for word in ("--set", one)]
    code, result = answer(capsys, source, "-d", device, *given)
    assert (code, result["verdict"]) == (1, "cannot-lower")
    assert words in result["reason"]
    assert "(TileLang: " in result["reason"]


@pytest.mark.tilelang
def test_a_tile_of_nothing_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    source = f"{CORPUS.parent / 'matrix.py'}::along_k"
    assert command(["plan", source, "-d", "h100", "--set", "bm=0"]) == 2
    assert "with bm=0: a size that the kernel divides by is 0" in capsys.readouterr().err


def test_other_refusals_stay_as_they_are() -> None:
    assert in_words("Layout infer conflict between m and sc", "sm_90a") == (
        "Layout infer conflict between m and sc"
    )
