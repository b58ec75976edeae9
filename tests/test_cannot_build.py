"""A kernel that cannot be built is not a fit, though its memory fits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.values import buffer, kernel
from tilefit._devices.names import device
from tilefit._kernel.kernel import CannotAssemble, Loop
from tilefit._placement.place import place
from tilefit._planning.stages import largest_stages
from tilefit._verdict.check import LaunchLimit, Status
from tilefit._verdict.judge import judge
from tilefit.cli import main

FILE = Path(__file__).parent / "kernels" / "cannot_build.py"
WHY = "there is no code for this"
UNBUILT = replace(kernel(dynamic_bytes=1024), assembly=CannotAssemble(WHY))


def test_the_verdict_is_of_its_own_and_the_memory_still_fits() -> None:
    found = judge(UNBUILT, place(UNBUILT), device("h100"))
    assert (found.status, found.reason) == (Status.CANNOT_BUILD, WHY)
    assert [check.status for check in found.memories] == [Status.FITS]
    assert [c.name for c in found.limits if c.status is Status.CANNOT_BUILD] == [LaunchLimit.BUILD]


def test_what_does_not_fit_either_does_not_fit() -> None:
    large = replace(kernel(dynamic_bytes=2**30), assembly=CannotAssemble(WHY))
    assert judge(large, place(large), device("h100")).status is Status.DOES_NOT_FIT


def test_a_toolkit_that_lacks_the_target_says_nothing_of_the_kernel() -> None:
    """nvcc 13 has no sm_70: the bytes are right, and an older toolkit builds it."""
    missing = CannotAssemble("nvcc 13.0 has no sm_70", for_want_of_tools=True)
    one = replace(UNBUILT, assembly=missing)
    assert judge(one, place(one), device("v100")).status is Status.FITS


def test_stages_that_cannot_be_built_are_not_among_those_that_fit() -> None:
    def read(params: Any) -> Any:
        stages = params["num_stages"]
        tile = buffer("A", stages * 1024, copies=stages, why="pipeline")
        loop = Loop(variable="k", extent=8, num_stages=stages, buffers=("A",))
        made = kernel(tile, dynamic_bytes=stages * 1024, loops=(loop,))
        return (replace(made, assembly=CannotAssemble(WHY) if stages > 3 else None),)

    def search(current: int) -> Any:
        return largest_stages(
            read({"num_stages": current}),
            parameter="num_stages",
            current=current,
            params={},
            read=read,
            judge=lambda one: judge(one, place(one), device("h100")),
        )

    assert search(2).largest is None
    assert WHY in (search(2).reason or "")
    assert search(4).reason == "it cannot be built as it is"


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = main(["plan", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)["results"]


@pytest.mark.tilelang
def test_code_that_is_not_generated(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{FILE}::rows_of_open_length"
    code, (on_a100,) = answer(capsys, name, "-d", "a100")
    assert (code, on_a100["verdict"]) == (1, "cannot-build")
    assert "failed to generate code" in on_a100["reason"]
    # q, and k and v in two copies, of 64 x 64 halves each
    (memory,) = on_a100["memories"]
    assert (memory["total_bytes"], memory["verdict"]) == (5 * 64 * 64 * 2, "fits")
    # another target generates it: the kernel is refused where it cannot be built, and there alone
    code, both = answer(capsys, name, "-d", "a100,h100")
    assert (code, [one["verdict"] for one in both]) == (1, ["cannot-build", "fits"])
    assert main(["plan", name, "-d", "a100,h100"]) == 1
    assert "1 of 2 fit." in capsys.readouterr().out


@pytest.mark.tilelang
def test_no_edit_and_no_rung_is_called_a_fit_that_cannot_be_built(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (f"{FILE}::rows_of_open_length", "-d", "a100", "--suggest", "--ladder", "num_stages")
    code, (found,) = answer(capsys, *words)
    assert code == 1
    for one in found["suggestions"]:
        changed = [f"--set={name}={value}" for name, value in one["set"].items()]
        assert answer(capsys, words[0], "-d", "a100", *changed)[0] == 0
    verdicts = {rung["value"]: rung["verdict"] for rung in found["ladder"]}
    assert verdicts[2] == "cannot-build"


@pytest.mark.tilelang
@pytest.mark.cuda
def test_code_that_ptxas_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{FILE}::two_accumulators"
    code, (plain,) = answer(capsys, name, "-d", "b200")
    assert (code, plain["verdict"], plain["built"]) == (0, "fits", "not-tried")
    code, (found,) = answer(capsys, name, "-d", "b200", "--assemble")
    assert (code, found["verdict"]) == (1, "cannot-build")
    assert found["built"].startswith("cannot-assemble(")
    assert {one["verdict"] for one in found["memories"]} == {"fits"}
