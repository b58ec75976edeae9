"""The answer of `plan` for several devices: a row each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from rich.text import Text

from tilefit._memory import Memory
from tilefit._report import Report, Result
from tilefit._verdict import Status
from tilefit.render._words import WORD, columns, folded, number

_HEADER = ("device", "target", "thr", "launch", "limit", "margin", "stages", "verdict")


def render(report: Report) -> Iterable[Text]:
    """Yield the lines of the table, its notes and the commands to paste."""
    first = report.results[0]
    name = f"{PurePath(first.file).name}::{first.kernel}"
    yield Text.assemble(
        (name, "bold"), f"   {first.toolchain} {first.toolchain_version}   bytes of shared memory"
    )
    notes: list[str] = []
    rows = [_row(result, notes) for result in report.results]
    yield from columns(
        [_HEADER, *rows], right=(2, 3, 4, 5, 6), header_style="dim", indent="", first_width=0
    )
    for note in notes:
        yield Text(folded(note, 4))
    bad = sum(r.status is not Status.FITS for r in report.results)
    counts = [r.stages.largest for r in report.results if r.stages.largest is not None]
    everywhere = ""
    if len(counts) == len(report.results):
        everywhere = f" Stages that fit everywhere: {min(counts)}"
    yield Text(f"{len(report.results) - bad} of {len(report.results)} fit.{everywhere}")
    evidence = sorted({str(r.evidence) for r in report.results})
    yield Text(f"launch = dynamic + static (rounded); evidence: {', '.join(evidence)}")
    for result in report.results:
        if result.try_next is not None:
            tried = "compiled here, fits" if result.try_next_tried else "what can be changed"
            yield Text.assemble(
                (f"Next for {result.device} ({tried}):\n  ", "bold"), result.try_next
            )


def _row(result: Result, notes: list[str]) -> tuple[str, ...]:
    check = next((c for c in result.memories if c.name == Memory.SHARED), None)
    word = WORD[result.status].replace("FITS", "fits")
    if result.status is Status.FITS and result.residency is not None:
        most = "" if result.residency.exact else "<= "
        plural = "" if result.residency.blocks == 1 else "s"
        word += f", {most}{number(result.residency.blocks)} block{plural}/SM"
    if result.status is not Status.FITS and result.reason:
        notes.append(f"({len(notes) + 1}) {result.device}: {result.reason}")
        word += f" ({len(notes)})"
    return (
        result.device,
        result.target or "-",
        number(result.lowered.launch.threads) if result.lowered else "-",
        number(check.value) if check else "-",
        number(check.limit) if check else "-",
        "-" if check is None or check.margin is None else f"{check.margin:,}",
        "-" if result.stages.largest is None else str(result.stages.largest),
        word,
    )
