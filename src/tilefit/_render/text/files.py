"""The answer of `plan` for whole files as text: a row for each kernel, then what adds up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from rich.text import Text

from tilefit._planning.report import FileSeen, Report, Result
from tilefit._render.text.words import STYLE, WORD, columns, folded, number
from tilefit._verdict.judge import Status

_HOW_TO_GIVE = (
    "  Give them with --set, or in a file:",
    "  `--template -o kernels.toml` writes one to fill in, `--values kernels.toml` takes it.",
)
_HEADER = ("memory", "bytes", "limit", "margin", "thr", "verdict", "kernel")


def render(report: Report) -> Iterable[Text]:
    """Yield the table, the notes of its rows, the counts, and every failure with its reason."""
    if report.results:
        yield from _table(report)
    yield from _counts(report)
    many = len(report.files) > 1
    failures = [
        f"{_named(seen, one.kernel, many)}{f' on {one.device}' if one.device else ''}: {one.reason}"
        for seen in report.files
        for one in seen.failures
        if not one.needs_values
    ]
    yield from _list("Failed", failures)
    remarks = [
        f"{seen.file}: {line}" if many else line for seen in report.files for line in seen.remarks
    ]
    yield from _list("Worth knowing", remarks)
    needing = [
        f"  {_named(seen, one.kernel, many)}  {', '.join(one.needs)}"
        for seen in report.files
        for one in seen.failures
        if one.needs_values
    ]
    if needing:
        yield Text("Need values:", style="bold")
    for line in needing:
        yield Text(line)
    yield from (Text(line) for line in _HOW_TO_GIVE if needing)
    commands = [r.try_next for r in report.results if r.try_next is not None]
    if commands:
        yield Text.assemble(("Next:\n  ", "bold"), commands[0])


def _table(report: Report) -> Iterable[Text]:
    results = report.results
    first = results[0]
    devices = {r.device for r in results}
    evidence = ", ".join(sorted({str(r.evidence) for r in results if r.lowered is not None}))
    alone = f"{first.device} {first.target}" if len(devices) == 1 else f"{len(devices)} devices"
    toolchain = f"{first.toolchain} {first.toolchain_version}".strip()
    yield Text.assemble((alone, "bold"), f"   {toolchain}   {evidence}".rstrip())
    notes: dict[str, int] = {}
    rows = [_row(result, report, notes) for result in results]
    header = (*(("device",) if len(devices) > 1 else ()), *_HEADER)
    lead = len(header) - len(_HEADER)
    right = tuple(lead + i for i in (1, 2, 3, 4))
    lines = columns([header, *rows], right=right, header_style="dim", indent="", first_width=0)
    for line, result in zip(lines, (None, *results), strict=True):
        if result is not None and result.status is not Status.FITS:
            line.highlight_words([_word(result)], STYLE[result.status])
        yield line
    for note, mark in notes.items():
        yield Text(folded(f"({mark}) {note}", 4))


def _row(result: Result, report: Report, notes: dict[str, int]) -> tuple[str, ...]:
    check = result.tightest
    word = _word(result)
    if result.reason:
        word += f" ({notes.setdefault(result.reason, len(notes) + 1)})"
    name = result.kernel
    same = [r for r in report.results if (r.file, r.kernel, r.device) == _key(result)]
    if len({r.lowered.function for r in same if r.lowered}) > 1 and result.lowered is not None:
        name += f" ({result.lowered.function})"
    varying = {k for one in same for k, v in one.params if dict(result.params).get(k) != v}
    if varying:
        name += "".join(f" {k}={v}" for k, v in result.params if k in varying)
    if len(report.files) > 1:
        name = f"{result.file}::{name}"
    return (
        *((result.device,) if len({r.device for r in report.results}) > 1 else ()),
        check.name if check else "-",
        number(check.value) if check else "-",
        number(check.limit) if check else "-",
        "-" if check is None or check.margin is None else f"{check.margin:,}",
        number(result.lowered.launch.threads) if result.lowered and not result.by_core else "-",
        word,
        name,
    )


def _key(result: Result) -> tuple[str, str, str]:
    return result.file, result.kernel, result.device


def _word(result: Result) -> str:
    return "fits" if result.status is Status.FITS else WORD[result.status]


def _counts(report: Report) -> Iterable[Text]:
    files = report.files
    if len(files) > 1:
        silent = report.files_without_kernels
        yield Text(
            f"{len(files)} Python files: {len(files) - silent} with kernels or failures, "
            f"{silent} without TileLang kernels."
        )
    counts = report.counts
    failures = (one for seen in files for one in seen.failures)
    named = {r.device for r in report.results} | {one.device for one in failures if one.device}
    needing = f" + {counts['needing']} that need values" if counts["needing"] else ""
    each = f", counted once for each of {len(named)} devices" if len(named) > 1 else ""
    yield Text(
        f"{counts['seen']} seen = {counts['planned']} planned + {counts['refused']} refused + "
        f"{counts['failed']} failed{needing}{each}."
    )
    words = {Status.FITS: "fit", Status.DOES_NOT_FIT: "do not fit", Status.UNKNOWN: "unknown"}
    verdicts = report.kernel_verdicts
    shown = [f"{verdicts[status]} {word}" for status, word in words.items()]
    if verdicts[Status.CANNOT_BUILD]:
        shown.append(f"{verdicts[Status.CANNOT_BUILD]} cannot be built")
    if counts["planned"]:
        yield Text(f"Of the planned: {', '.join(shown)}.")


def _named(seen: FileSeen, kernel: str | None, many: bool) -> str:
    if kernel is None:
        return seen.file
    return f"{seen.file if many else PurePath(seen.file).name}::{kernel}"


def _list(title: str, lines: list[str]) -> Iterable[Text]:
    if lines:
        yield Text(f"{title}:", style="bold")
    for line in lines:
        yield Text(folded(f"  {line}", 4))
