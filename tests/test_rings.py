"""Stages that are no T.Pipelined's: a ring written by hand, and stages that change nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tilefit.cli import main

RING = "tests/kernels/ring.py::ring"
# a slot of the ring is 128 x 128 float16; an rtx-4090 has 99 KiB for a block
SLOT_BYTES = 128 * 128 * 2
assert 99 * 1024 // SLOT_BYTES == 3


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["plan", *words, "--json", "--no-cache"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert isinstance(result, dict)
    return result


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, root: Any) -> None:
    monkeypatch.chdir(root)


@pytest.mark.parametrize("current", [2, 3, 4, 6])
def test_an_estimate_finds_the_depth_of_a_ring(
    capsys: pytest.CaptureFixture[str], current: int
) -> None:
    words = ("-d", "rtx-4090", "--estimate", "--set", f"num_stages={current}", "--no-suggest")
    found = planned(capsys, RING, *words)
    assert (found["max_stages"], found["max_stages_bytes"]) == (3, 3 * SLOT_BYTES)
    assert found["next_stage_bytes"] == 4 * SLOT_BYTES


def test_by_another_name_it_is_found_by_what_it_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, root: Any
) -> None:
    text = (root / "tests/kernels/ring.py").read_text(encoding="utf-8")
    (tmp_path / "deep.py").write_text(text.replace("num_stages", "deep"), encoding="utf-8")
    words = ("-d", "rtx-4090", "--estimate", "--ladder", "deep", "--no-suggest")
    found = planned(capsys, f"{tmp_path}/deep.py::ring", *words)
    assert found["max_stages"] == 3
    # a slot at a time, as stages are, not by doubling
    assert [rung["value"] for rung in found["ladder"]] == [1, 2, 3, 4]
    assert {rung["in_flight_bytes_per_block"] for rung in found["ladder"]} == {None}


@pytest.mark.tilelang
def test_the_compiler_finds_the_same_depth(capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, RING, "-d", "rtx-4090", "--set", "num_stages=4", "--no-suggest")
    assert (found["max_stages"], found["max_stages_bytes"]) == (3, 3 * SLOT_BYTES)
    assert found["next_stage_bytes"] == 4 * SLOT_BYTES


@pytest.mark.tilelang
def test_on_amd_the_stages_change_nothing_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """TileLang does not pipeline there: one code at every count."""
    words = ("examples/gemm.py::matmul", "-d", "mi300x", "--ladder", "num_stages")
    found = planned(capsys, *words)
    assert found["max_stages"] is None
    assert "num_stages does nothing here" in found["max_stages_reason"]
    assert [(r["value"], r["same_code_as"]) for r in found["ladder"]] == [(1, None), (2, 1)]
    assert {rung["in_flight_bytes_per_block"] for rung in found["ladder"]} == {None}
