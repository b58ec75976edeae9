"""The answer of `plan` for several devices: a row each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from rich.text import Text

from tilefit._kernel.kernel import CannotAssemble
from tilefit._planning.report import Report, Result
from tilefit._render.text import memories as _text_memories
from tilefit._render.text.words import WORD, columns, folded, next_words, number
from tilefit._verdict.judge import Status

_HEADER = ("device", "target", "thr", "launch", "limit", "margin", "stages", "verdict")
_MOST_COMMANDS = 3


def render(report: Report) -> Iterable[Text]:
    """Yield the lines of the table, its notes and the commands to paste."""
    first = report.results[0]
    name = f"{PurePath(first.file).name}::{first.kernel}"
    yield Text.assemble(
        (name, "bold"), f"   {first.toolchain} {first.toolchain_version}   bytes of one block"
    )
    notes: dict[str, int] = {}
    varying = report.varying
    by_core = [result for result in report.results if result.by_core]
    rows = [_row(result, varying, notes) for result in report.results if not result.by_core]
    right = (*range(len(varying)), *(len(varying) + i for i in (2, 3, 4, 5, 6)))
    header = (*varying, *_HEADER)
    if rows:
        yield from columns(
            [header, *rows], right=right, header_style="dim", indent="", first_width=0
        )
    if rows and by_core:
        yield Text()
    if by_core:
        yield from _text_memories.render(by_core, varying, notes)
    for note, number_of_note in notes.items():
        yield Text(folded(f"({number_of_note}) {note}", 4))
    yield Text(_summary(report))
    evidence = sorted({str(r.evidence) for r in report.results if r.lowered is not None})
    if evidence:
        what = "launch = dynamic + static (rounded); " if rows else ""
        yield Text(f"{what}evidence: {', '.join(evidence)}")
    commands = [r for r in report.results if r.try_next is not None]
    for result in commands[:_MOST_COMMANDS]:
        tried = next_words(result)
        yield Text.assemble(
            (f"Next for {result.device} ({tried}):\n  ", "bold"), result.try_next or ""
        )
    if len(commands) > _MOST_COMMANDS:
        yield Text(f"... and {len(commands) - _MOST_COMMANDS} more: plan each with -d NAME")


def _summary(report: Report) -> str:
    everywhere = ""
    if report.stages_everywhere is not None:
        scope = "everywhere" if report.lowered_everywhere else "wherever it was lowered"
        everywhere = f" Stages that fit {scope}: {report.stages_everywhere}"
    return f"{report.verdicts[Status.FITS]} of {len(report.results)} fit.{everywhere}"


def _row(result: Result, varying: tuple[str, ...], notes: dict[str, int]) -> tuple[str, ...]:
    check = result.main
    params = dict(result.params)
    word = WORD[result.status].replace("FITS", "fits")
    held = result.residency
    if result.status is Status.FITS and held is not None and held.blocks is not None:
        most = "" if held.exact else "<= "
        by = f" ({held.limiters[0]})" if held.exact and held.limiters else ""
        word += f", {most}{held.blocks} block{'' if held.blocks == 1 else 's'}{by}"
    remarks = [result.reason] if result.reason else []
    remarks += list(result.lowered.notes) if result.lowered else []
    assembly = None if result.lowered is None else result.lowered.assembly
    if isinstance(assembly, CannotAssemble) and assembly.for_want_of_tools:
        remarks.append(f"not built: {assembly.reason}")
    marks = [notes.setdefault(remark, len(notes) + 1) for remark in remarks]
    if marks:
        word += " " + "".join(f"({mark})" for mark in marks)
    return (
        *(str(params.get(name, "-")) for name in varying),
        result.device,
        result.target or "-",
        number(result.lowered.launch.threads) if result.lowered else "-",
        number(check.value) if check else "-",
        number(check.limit) if check else "-",
        "-" if check is None or check.margin is None else f"{check.margin:,}",
        "-" if result.stages.largest is None else str(result.stages.largest),
        word,
    )
