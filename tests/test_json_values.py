"""What a screen shows is in the JSON: sums, counts, bytes in flight and what an edit costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stand_in import use
from tests.test_plan_text import GEMM, RecordedSession, result
from tests.values import KIB, kernel
from tilefit._planning.report import FileSeen, Report, Stages
from tilefit._render import json as _json
from tilefit._verdict.judge import Status
from tilefit.cli import main


def printed(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_json.render(report))
    return found


def test_the_ladder_has_the_bytes_in_flight_of_a_core(
    monkeypatch: pytest.MonkeyPatch, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An SM holds blocks of the launch total and 1 KiB of the driver each, as registers allow."""
    use(monkeypatch, RecordedSession)
    monkeypatch.chdir(root)
    main(["plan", GEMM, "-d", "h100", "--ladder", "num_stages=2:4", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert len(found["ladder"]) == 3
    for rung in found["ladder"]:
        flight = rung["value"] * (128 * 64 + 64 * 128) * 2
        total = flight + 1024  # the static part, rounded up
        assert rung["memories"] == {"shared": total}
        assert rung["margin_bytes"] == 227 * KIB - total
        assert rung["in_flight_bytes_per_block"] == flight
        by_shared = 228 * KIB // (total + 1024)
        by_registers = 65536 // (128 * 24 + 128 * 240)  # what setmaxnreg gives to the two roles
        assert rung["in_flight_bytes_per_core"] == min(by_shared, by_registers) * flight


@pytest.mark.parametrize(("largest", "everywhere"), [((7, 3), 3), ((7, None), None)])
def test_the_summary_counts_and_compares(
    largest: tuple[int | None, ...], everywhere: int | None
) -> None:
    results = [
        result(kernel(), stages=Stages(parameter="num_stages", current=2, largest=count))
        for count in largest
    ]
    results.append(replace(results[0], status=Status.DOES_NOT_FIT))
    summary = printed(Report(tuple(results)))["summary"]
    assert summary["results"] == 3
    assert summary["verdicts"] == {
        **{"does-not-fit": 1, "cannot-lower": 0, "cannot-build": 0, "unknown": 0, "fits": 2},
    }
    assert summary["max_stages_everywhere"] == everywhere


def test_a_kernel_counts_once_with_the_worst_of_its_functions() -> None:
    one = result(kernel())
    results = (one, replace(one, status=Status.UNKNOWN), replace(one, kernel="other"))
    files = (FileSeen(file="made.py", planned=2), FileSeen(file="empty.py"))
    seen = printed(Report(results, files))["seen"]
    assert (seen["seen"], seen["planned"], seen["refused"], seen["failed"]) == (2, 2, 0, 0)
    assert seen["verdicts"]["unknown"] == 1
    assert seen["verdicts"]["fits"] == 1
    assert seen["files_without_kernels"] == 1
