"""Whole screens: their layout, compared as a person would see it.

The numbers in them have tests of their own, by arithmetic or by the compiler; what is compared here
is where they stand.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import GOLDEN, Golden
from tests.made_gemm import MadeSession
from tests.stand_in import use
from tests.test_ascend_plan import planned
from tests.test_plan_text import GEMM, LIMITS, Plan, plan
from tilefit._render.text import map as text_map
from tilefit.cli import main

__all__ = ["plan"]  # the fixture


def made(arguments: tuple[str, ...], patch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "gemm.py").write_text("", encoding="utf-8")
    patch.chdir(folder)
    use(patch, MadeSession)
    main(["plan", "gemm.py::gemm", *arguments])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plan-fits", (GEMM, "-d", "h100")),
        ("plan-does-not-fit", (GEMM, "-d", "rtx-5090", "--set", "num_stages=4")),
        ("plan-launch-fails", (f"{LIMITS}::many_threads", "-d", "h100")),
        ("plan-open-size", (f"{LIMITS}::dynamic_rows", "-d", "h100")),
        ("plan-tensor-memory", ("examples/alloc_scopes/tmem.py", "-d", "b200")),
        ("plan-devices", (GEMM, "-d", "rtx-5090,rtx-5080,gh200,a100")),
        ("plan-markdown", (GEMM, "-d", "rtx-5090,a100", "--format", "md")),
    ],
)
def test_plan(plan: Plan, golden: Golden, name: str, arguments: tuple[str, ...]) -> None:
    golden(name, plan(*arguments)[1])


def test_edits_and_the_command_to_paste(
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    made(("-d", "rtx-4090", "--set", "num_stages=4"), monkeypatch, tmp_path)
    golden("plan-edits", capsys.readouterr().out)


def test_the_ladder(
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    made(("-d", "rtx-4090", "--ladder", "num_stages"), monkeypatch, tmp_path)
    golden("plan-ladder", capsys.readouterr().out)


def test_memories_of_cores(golden: Golden) -> None:
    golden("plan-ascend", text_map.render(planned("ascend-950pr_957b")).plain)
    both = planned("ascend-950pr_957b", "ascend-910b1")
    golden("plan-ascend-migration", text_map.render(both).plain)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("budget", "budget --bm 128 --bn 128 --bk 64 --stages 2 3 4 -d rtx-4090"),
        ("footprint", "footprint --tile 128 256 --dtype float32 --copies 2 -d h100"),
        ("occupancy", "occupancy -d h100 --threads 256 --regs 128 --smem 99328"),
        (
            "explain",
            "explain 'out of resource: shared memory, Required: 131072, Hardware limit: 101376'",
        ),
        ("devices-one", "devices h100"),
    ],
)
def test_the_other_commands(
    golden: Golden, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    import shlex

    main(shlex.split(words))
    golden(name, capsys.readouterr().out)


def test_every_golden_file_is_compared() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    named = set(re.findall(r'"([a-z][a-z-]*)"', source))
    assert {path.stem for path in GOLDEN.glob("*.txt")} <= named
    assert len(list(GOLDEN.glob("*.txt"))) > 10


def test_no_screen_is_wider_than_80_columns() -> None:
    """Commands to paste and tables of Markdown are as long as they are."""
    for path in GOLDEN.glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert len(line) <= 80 or line.startswith(("  tilefit ", "|")), f"{path.name}: {line}"
