"""Edits that fit: which are in the set, in what order they are tried, and when trying ends."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.edit_set import (
    K_TILES,
    MERGE,
    OTHER_TILES,
    STAGES,
    THREADS,
    Change,
    change,
    documented,
)
from tests.made_gemm import DEFAULTS, MadeSession, judged, lowered
from tests.stand_in import use
from tests.values import KIB, buffer, kernel
from tilefit._errors import RefusedError
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import Kernel
from tilefit._planning.report import Edit, Tried
from tilefit._planning.suggest import contains, describe, edits, is_tile, tried_edits
from tilefit._verdict.judge import Status
from tilefit.cli import main

STAGE_BYTES = (128 * 64 + 64 * 128) * 2

some_params = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.sampled_from([256, 4096]) for name in ("M", "N", "K")},
        **{name: st.integers(1, 5) for name in STAGES},
        **{name: st.sampled_from([64, 128, 192, 256, 384, 640]) for name in THREADS},
        **{
            name: st.sampled_from([1, 8, 16, 24, 31, 32, 33, 48, 64, 128])
            for name in (*K_TILES, *OTHER_TILES)
        },
        **{"blocks": st.just(64), "num_tiles": st.just(32), "heads": st.just(16)},
        **{"dtype": st.just("float16"), "block_ptr": st.just(True), "tile_shape": st.none()},
    },
)

ON = (TILELANG, "nvidia")


@given(some_params)
def test_the_set_and_its_order_are_those_of_the_page(params: dict[str, Any]) -> None:
    assert [(edit.cost, change(edit)) for edit in edits(params, *ON)] == documented(params)


@given(some_params)
def test_no_edit_is_there_twice_or_leaves_the_bounds(params: dict[str, Any]) -> None:
    found = edits(params, *ON)
    assert len({change(edit) for edit in found}) == len(found)
    for edit in found:
        assert 1 <= len(change(edit)) <= 2
        assert all(config == (MERGE, True) for config in edit.pass_configs)
        for name, value in edit.params:
            assert name in (*STAGES, *THREADS, *K_TILES, *OTHER_TILES)  # no size, no count
            assert 0 < value < params[name]
            if name in (*K_TILES, *OTHER_TILES):
                assert value >= 16
                assert value * 2 == params[name]
            if name in THREADS:
                assert value >= 128
                assert (params[name] - value) % 128 == 0


def test_the_edits_of_a_gemm_by_hand() -> None:
    """Merge 1, the last stage 2 + 6, K 3, M and N 4 each, and their pairs."""
    params = {"block_M": 128, "block_N": 32, "block_K": 64, "num_stages": 2, "M": 4096}
    assert [(edit.cost, describe(edit)) for edit in edits(params, *ON)] == [
        (1, "enable_aggressive_shared_memory_merge=True"),
        (3, "block_K=32"),
        (4, "block_M=64"),
        (4, "block_N=16"),
        (1 + 3, "block_K=32 enable_aggressive_shared_memory_merge=True"),
        (1 + 4, "block_M=64 enable_aggressive_shared_memory_merge=True"),
        (1 + 4, "block_N=16 enable_aggressive_shared_memory_merge=True"),
        (3 + 4, "block_M=64 block_K=32"),
        (3 + 4, "block_N=16 block_K=32"),
        (8, "num_stages=1"),
        (4 + 4, "block_M=64 block_N=16"),
        (1 + 8, "num_stages=1 enable_aggressive_shared_memory_merge=True"),
        (8 + 3, "num_stages=1 block_K=32"),
        (8 + 4, "num_stages=1 block_M=64"),
        (8 + 4, "num_stages=1 block_N=16"),
    ]


@pytest.mark.parametrize(
    ("params", "costs"),
    [
        ({}, [1]),
        ({"num_stages": 1}, [1]),
        ({"num_stages": 4}, [1, 2, 3, 4, 5, 12, 13]),  # 2, 4, 6 + 6, each with the merge
        ({"threads": 384}, [1, 3, 4, 6, 7]),
        ({"threads": 255}, [1]),
        ({"block_K": 16}, [1]),
        ({"block_K": 34}, [1, 3, 4]),
        ({"block_K": 33}, [1]),
        ({"M": 4096, "N": 4096, "K": 4096}, [1]),
    ],
)
def test_costs_of_one_parameter(params: dict[str, Any], costs: list[int]) -> None:
    assert [edit.cost for edit in edits(params, *ON)] == costs


@pytest.mark.parametrize(
    ("name", "tile", "cost"),
    [
        *(("block_K", True, 3), ("BLOCK_K", True, 3), ("bk", True, 3), ("tileK", True, 3)),
        *(("block_M", True, 4), ("BN", True, 4), ("tile_q", True, 4)),
        ("block", True, 4),  # ends in k and is not along K
        ("qk_block", True, 4),
        *(("blocks", False, 0), ("blocks_y", False, 0), ("num_tiles", False, 0)),
        *(("K", False, 0), ("k", False, 0), ("rank", False, 0), ("top_k", False, 0)),
    ],
)
def test_names_of_tiles(name: str, tile: bool, cost: int) -> None:
    assert is_tile(name) == tile
    alone = [edit.cost for edit in edits({name: 64}, *ON) if change(edit) == {(name, 32)}]
    assert alone == ([cost] if tile else [])


# ---- trying -------------------------------------------------------------------------------------


class Compiler:
    """A compiler by decree: what becomes of each change is drawn from a seed."""

    def __init__(self, own: Mapping[str, Any], seed: int, chance: float) -> None:
        self.own, self.seed, self.chance = own, seed, chance
        self.asked: list[Change] = []

    def fits(self, made: Change) -> bool:
        return random.Random(f"{self.seed} {sorted(made)}").random() < self.chance

    def __call__(
        self, params: Mapping[str, Any], pass_configs: Mapping[str, Any]
    ) -> tuple[Kernel, ...]:
        made = frozenset((n, v) for n, v in params.items() if self.own.get(n) != v)
        made |= frozenset(pass_configs.items())
        self.asked.append(made)
        if self.fits(made):
            return (kernel(dynamic_bytes=KIB),)
        if random.Random(f"{made}").random() < 0.3:
            raise RefusedError("by decree")
        return (kernel(dynamic_bytes=2 * KIB),)


def tried_by(compiler: Compiler) -> tuple[Tried, ...]:
    return tried_edits(compiler.own, *ON, params={}, read=compiler, judge=judged(KIB))


compilers = st.builds(
    Compiler, some_params, st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.0])
)


@given(compilers)
def test_the_first_that_fits_is_the_cheapest_of_the_first_twelve(compiler: Compiler) -> None:
    """By brute force over the documented set."""
    fitting = [made for _, made in documented(compiler.own)[:12] if compiler.fits(made)]
    tried = tried_by(compiler)
    suggested = [t for t in tried if t.outcome.status is Status.FITS]
    assert [change(t.edit) for t in suggested[:1]] == fitting[:1]
    costs = dict(reversed([(made, cost) for cost, made in documented(compiler.own)]))
    for one in suggested[:1]:
        assert one.edit.cost == min(costs[made] for made in fitting)
    # and where none of the first twelve fits, all twelve were lowered
    if not fitting:
        assert [change(t.edit) for t in tried] == [m for _, m in documented(compiler.own)[:12]]


@given(compilers)
def test_it_ends_with_the_third_that_fits_or_the_twelfth(compiler: Compiler) -> None:
    tried = tried_by(compiler)
    fitting = [t for t in tried if t.outcome.status is Status.FITS]
    assert compiler.asked == [change(t.edit) for t in tried]  # what is told was lowered, once
    assert len(tried) <= 12
    assert len(fitting) <= 3
    if len(fitting) == 3:
        assert tried[-1] is fitting[-1]
    elif len(tried) < 12:
        # neither limit: the whole set was tried but for what contains something that fits
        rest = [made for _, made in documented(compiler.own) if made not in compiler.asked]
        assert all(any(change(f.edit) < made for f in fitting) for made in rest)


@given(compilers)
def test_no_edit_contains_one_that_already_fits(compiler: Compiler) -> None:
    tried = tried_by(compiler)
    for number, one in enumerate(tried):
        before = [t for t in tried[:number] if t.outcome.status is Status.FITS]
        assert not any(change(f.edit) < change(one.edit) for f in before)
    # cheapest first
    costs = [t.edit.cost for t in tried]
    assert costs == sorted(costs)


def test_what_the_user_set_stays_set_and_defaults_are_left_to_the_kernel() -> None:
    asked: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def read(params: Mapping[str, Any], configs: Mapping[str, Any]) -> tuple[Kernel, ...]:
        asked.append((dict(params), dict(configs)))
        return (kernel(dynamic_bytes=2 * KIB),)

    own = {"num_stages": 2, "block_K": 32, "K": 512}
    tried_edits(own, *ON, params={"num_stages": 2, "K": 512}, read=read, judge=judged(KIB))
    assert asked == [
        ({"num_stages": 2, "K": 512}, {MERGE: True}),
        ({"num_stages": 2, "K": 512, "block_K": 16}, {}),
        ({"num_stages": 2, "K": 512, "block_K": 16}, {MERGE: True}),
        ({"num_stages": 1, "K": 512}, {}),
        ({"num_stages": 1, "K": 512}, {MERGE: True}),
        ({"num_stages": 1, "K": 512, "block_K": 16}, {}),
    ]


def test_a_misfit_of_one_stage_by_arithmetic() -> None:
    """99 KiB; four stages are 128. Three are 96; a K tile of 32 makes 64; two stages 64."""
    own = {**DEFAULTS, "num_stages": 4}
    tried = tried_edits(own, *ON, params={"num_stages": 4}, read=lowered, judge=judged(99 * KIB))
    assert [(t.edit.cost, describe(t.edit), t.outcome.total_bytes) for t in tried] == [
        (1, "enable_aggressive_shared_memory_merge=True", 4 * STAGE_BYTES),
        (2, "num_stages=3", 3 * STAGE_BYTES),
        (3, "block_K=32", 4 * STAGE_BYTES // 2),
        (4, "num_stages=2", 2 * STAGE_BYTES),
    ]
    assert [t.outcome.status is Status.FITS for t in tried] == [False, True, True, True]


def test_too_many_threads_are_brought_down() -> None:
    """1,280 threads: one group fewer is 1,152 and still too many, two are 1,024."""
    own = {"threads": 1280}
    tried = tried_edits(own, *ON, params=own, read=lowered, judge=judged(99 * KIB))
    # 3 a group, the merge is 1 more; with two groups it is passed over
    assert [(t.edit.cost, t.outcome.status is Status.FITS) for t in tried[:5]] == [
        *((1, False), (3, False), (4, False), (6, True), (9, True))
    ]
    assert tried[3].edit.params == (("threads", 1024),)


def test_nothing_fits_and_nothing_is_suggested() -> None:
    tried = tried_edits(DEFAULTS, *ON, params={}, read=lowered, judge=judged(1))
    assert len(tried) == 12
    assert {t.outcome.status for t in tried} == {Status.DOES_NOT_FIT}


def test_an_unknown_outcome_does_not_fit() -> None:
    """Its bytes depend on a size that is open."""

    def read(params: Mapping[str, Any], configs: Mapping[str, Any]) -> tuple[Kernel, ...]:
        return (kernel(buffer("tile", None), dynamic_bytes=None),)

    tried = tried_edits({"num_stages": 2}, *ON, params={}, read=read, judge=judged(KIB))
    assert [t.outcome.status for t in tried] == [Status.UNKNOWN] * 3


def test_progress_names_each_edit() -> None:
    said: list[str] = []
    tried_edits(
        {"num_stages": 2},
        TILELANG,
        "nvidia",
        params={},
        read=lowered,
        judge=judged(1),
        progress=said.append,
    )
    assert said == [
        "trying enable_aggressive_shared_memory_merge=True",
        "trying num_stages=1",
        "trying num_stages=1 enable_aggressive_shared_memory_merge=True",
    ]


@pytest.mark.parametrize(
    ("edit", "smaller", "expected"),
    [
        (Edit(5, (("a", 1), ("b", 2))), Edit(2, (("a", 1),)), True),
        (Edit(3, (("a", 1),), ((MERGE, True),)), Edit(1, (), ((MERGE, True),)), True),
        (Edit(2, (("a", 1),)), Edit(2, (("a", 1),)), False),  # the same, not more
        (Edit(5, (("a", 2), ("b", 2))), Edit(2, (("a", 1),)), False),  # another value
        (Edit(2, (("a", 1),)), Edit(5, (("a", 1), ("b", 2))), False),
    ],
)
def test_containing(edit: Edit, smaller: Edit, expected: bool) -> None:
    assert contains(edit, smaller) is expected


# ---- the command --------------------------------------------------------------------------------


def plan_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["plan", "gemm.py", "-d", "rtx-4090", "--json", *arguments])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    return code, result


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let every file be the made GEMM."""
    (tmp_path / "gemm.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, MadeSession)


@pytest.mark.usefixtures("made")
class TestTheCommand:
    def test_a_misfit_is_followed_by_what_fits(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, result = plan_json(capsys, "--set", "num_stages=4")
        assert (code, result["tried"]) == (1, 4)
        assert [(s["set"], s["pass_configs"], s["cost"]) for s in result["suggestions"]] == [
            ({"num_stages": 3}, {}, 2),
            ({"block_K": 32}, {}, 3),
            ({"num_stages": 2}, {}, 4),
        ]
        assert [s["total_bytes"] for s in result["suggestions"]] == [
            3 * STAGE_BYTES,
            4 * STAGE_BYTES // 2,
            2 * STAGE_BYTES,
        ]
        assert all(s["margin_bytes"] == 99 * KIB - s["total_bytes"] for s in result["suggestions"])

    def test_what_fits_is_left_alone_unless_asked(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, result = plan_json(capsys)
        assert (code, result["tried"], result["suggestions"]) == (0, 0, [])
        code, result = plan_json(capsys, "--suggest")
        # three stages fit already: the merge alone, then one stage, then a K tile fit too
        assert (code, result["tried"]) == (0, 3)
        assert [s["cost"] for s in result["suggestions"]] == [1, 2, 3]

    def test_a_misfit_is_left_alone_if_told_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, result = plan_json(capsys, "--set", "num_stages=4", "--no-suggest")
        assert (code, result["tried"], result["suggestions"]) == (1, 0, [])
