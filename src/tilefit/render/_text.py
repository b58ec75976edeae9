"""The answer of `plan` as text for a terminal or a pipe: at most 80 columns where it can be."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from rich.text import Text

from tilefit._kernel import Buffer, Dim
from tilefit._memory import Memory
from tilefit._plan import MemoryUse
from tilefit._report import Report, Result
from tilefit._verdict import Check, Status

_STYLE = {
    Status.FITS: "bold green",
    Status.DOES_NOT_FIT: "bold red",
    Status.CANNOT_LOWER: "bold red",
    Status.UNKNOWN: "bold yellow",
}
_WORD = {
    Status.FITS: "FITS",
    Status.DOES_NOT_FIT: "DOES NOT FIT",
    Status.CANNOT_LOWER: "CANNOT LOWER",
    Status.UNKNOWN: "UNKNOWN",
}
_BAR = 36
_WIDTH = 80


def render(report: Report) -> Text:
    """Return a map for one device, a table for several."""
    devices = {result.device for result in report.results}
    if len(devices) == 1:
        blocks = [_map(result) for result in report.results]
        return Text("\n\n").join(Text("\n").join(block) for block in blocks)
    return Text("\n").join(_table(report))


# ---- one device ----------------------------------------------------------------------------


def _map(result: Result) -> Iterable[Text]:
    name = f"{PurePath(result.file).name}::{result.kernel}"
    if result.lowered is not None and len(result.lowered.function) and _other_name(result):
        name += f" ({result.lowered.function})"
    toolchain = f"{result.toolchain} {result.toolchain_version}"
    parts = (name, f"{result.device_title} {result.target}", toolchain, str(result.evidence))
    title = Text(_spaced(parts, 2))
    title.stylize("bold", 0, len(name))
    yield title
    yield _headline(result)
    if result.lowered is None:
        return
    yield Text()
    for use, check in zip(result.uses, result.memories, strict=True):
        yield from _memory(result, use, check)
    yield from _registers(result)
    yield _launch(result)
    yield _stages(result)
    if result.try_next is not None:
        tried = "compiled here, fits" if result.try_next_tried else "what can be changed"
        yield Text()
        yield Text.assemble((f"Next ({tried}):\n  ", "bold"), result.try_next)


def _other_name(result: Result) -> bool:
    """Say whether the device function needs naming: it is not the only or the obvious one."""
    lowered = result.lowered
    return lowered is not None and not lowered.function.endswith("_kernel")


def _headline(result: Result) -> Text:
    word = (_WORD[result.status], _STYLE[result.status])
    main = next((c for c in result.memories if c.name == Memory.SHARED), None)
    if result.status is Status.FITS and main is not None and main.margin is not None:
        return Text.assemble(
            word,
            f"   shared {_number(main.value)} B   limit {_number(main.limit)} B   "
            f"{main.margin:,} B spare",
        )
    text = Text(_folded(f"{word[0]}   {result.reason or ''}".rstrip(), 4))
    text.stylize(word[1], 0, len(word[0]))
    return text


def _memory(result: Result, use: MemoryUse, check: Check) -> Iterable[Text]:
    if use.memory is Memory.TENSOR and use.columns is not None:
        yield _bar("tensor", use.columns, 512 if check.limit else 0, "columns")
    else:
        yield _bar(use.memory, check.value, check.limit, "B")
    rows = [
        _row(buffer)
        for buffer in (result.lowered.buffers if result.lowered else ())
        if buffer.memory is use.memory and not buffer.static
    ]
    if rows:
        header = ("bytes", "buffer", "shape", "dtype", "copies", "offset", "why")
        yield from _columns([header, *rows], right=(0, 5), header_style="dim")
    if use.memory is Memory.SHARED:
        yield from _static(result, use)
        if use.total_bytes is not None:
            yield Text(
                f"  {use.total_bytes:>9,}  launch total = {use.dynamic_bytes:,} dynamic + "
                f"{use.static_bytes:,} static   ({use.evidence})"
            )


def _row(buffer: Buffer) -> tuple[str, ...]:
    why = buffer.why or ("one copy" if buffer.copies == 1 else "")
    return (
        _number(buffer.bytes),
        buffer.name,
        _shape(buffer.shape),
        buffer.dtype,
        "?" if buffer.copies is None else f"x{buffer.copies}",
        "-" if buffer.offset is None else f"{buffer.offset:,}",
        f"{why}  :{buffer.line}" if buffer.line else why,
    )


def _static(result: Result, use: MemoryUse) -> Iterable[Text]:
    items = [b for b in (result.lowered.buffers if result.lowered else ()) if b.static]
    if not items:
        return
    lowered = result.lowered
    rounded = ""
    if use.static_bytes != use.static_raw_bytes and lowered is not None:
        rounded = (
            f": {use.static_raw_bytes:,} B rounded up to {lowered.dynamic_align_bytes:,}, "
            "the dynamic array's alignment"
        )
    yield Text(f"  {use.static_bytes:>9,}  static{rounded}")
    names = ", ".join(f"{b.name} {_number(b.bytes)} B" for b in items)
    for line in textwrap.wrap(names, 66):
        yield Text(f"{'':<13}{line}")


def _bar(name: str, value: Dim | None, limit: int | None, unit: str) -> Text:
    if not isinstance(value, int) or not limit:
        what = f"{_number(value)} of {_number(limit)} {unit}"
        return Text(f"{name:<7} {'none on this device' if limit == 0 else what}")
    filled = round(_BAR * value / limit)
    inside, over = min(filled, _BAR), min(max(filled - _BAR, 0), 14)
    style = "red" if value > limit else "green"
    return Text.assemble(
        f"{name:<7} ",
        ("#" * inside, style),
        ("." * (_BAR - inside), "dim"),
        "|",
        ("#" * over, "red"),
        f" {_percent(value, limit)} of {limit:,} {unit}",
    )


def _percent(value: int, limit: int) -> str:
    """Return the percentage, never rounded to 100 on the wrong side of the limit."""
    share = round(100 * value / limit)
    if value < limit:
        share = min(share, 99)
    if value > limit:
        share = max(share, 101)
    return f"{share} %"


def _registers(result: Result) -> Iterable[Text]:
    buffers = [
        b
        for b in (result.lowered.buffers if result.lowered else ())
        if b.memory is Memory.REGISTERS and b.origin == "source"
    ]
    label = "regs"
    for buffer in buffers:
        per_thread = buffer.bytes_per_thread
        size = "" if per_thread is None else f"   {per_thread:,} B per thread"
        line = f"  :{buffer.line}" if buffer.line else ""
        yield Text(
            f"{label:<7} {buffer.name} {_shape(buffer.shape)} {buffer.dtype} "
            f"({buffer.scope}){size}{line}"
        )
        label = ""
    yield Text(f"{label:<7} registers per thread unknown: nothing was assembled")


def _launch(result: Result) -> Text:
    lowered = result.lowered
    assert lowered is not None
    launch = lowered.launch
    threads = next(c for c in result.limits if c.name == "threads")
    written = ""
    if launch.threads_declared not in (None, launch.threads):
        written = f" ({launch.threads_declared:,} written)"
    grid = " x ".join(_number(g) for g in launch.grid)
    bad = [c for c in result.limits if c.status is not Status.FITS and c.name != "threads"]
    grid_word = "ok" if not any(c.name.startswith("grid") for c in bad) else ""
    cluster = "no cluster"
    if launch.cluster is not None:
        cluster = "cluster " + " x ".join(str(c) for c in launch.cluster)
    most = f"{'launch':<7} {_number(threads.value)} of {_number(threads.limit)} threads{written}"
    text = Text(_spaced((most, f"grid {grid} {grid_word}".rstrip(), cluster), 8))
    for check in result.limits:
        # the headline gives the reason of a verdict other than a plain fit
        if check.reason and (result.status is Status.FITS or check.reason != result.reason):
            style = "" if check.status is Status.FITS else _STYLE[check.status]
            text.append("\n" + _folded(f"{'':<8}{check.reason}", 10), style=style)
    return text


def _stages(result: Result) -> Text:
    stages = result.stages
    if stages.largest is None:
        return Text(_folded(f"{'stages':<7} largest count: none to give, {stages.reason}", 8))
    return Text(
        f"{'stages':<7} {stages.parameter} up to {stages.largest}: "
        f"{_number(stages.largest_bytes)} B; {stages.largest + 1} needs "
        f"{_number(stages.next_bytes)} B (both compiled)"
    )


# ---- several devices -------------------------------------------------------------------------


def _table(report: Report) -> Iterable[Text]:
    first = report.results[0]
    name = f"{PurePath(first.file).name}::{first.kernel}"
    yield Text.assemble(
        (name, "bold"), f"   {first.toolchain} {first.toolchain_version}   bytes of shared memory"
    )
    header = ("device", "target", "thr", "launch", "limit", "margin", "stages", "verdict")
    rows: list[tuple[str, ...]] = [header]
    notes: list[str] = []
    for result in report.results:
        check = next((c for c in result.memories if c.name == Memory.SHARED), None)
        mark = ""
        if result.status is not Status.FITS and result.reason:
            notes.append(f"({len(notes) + 1}) {result.device}: {result.reason}")
            mark = f" ({len(notes)})"
        rows.append(
            (
                result.device,
                result.target or "-",
                _number(result.lowered.launch.threads) if result.lowered else "-",
                _number(check.value) if check else "-",
                _number(check.limit) if check else "-",
                "-" if check is None or check.margin is None else f"{check.margin:,}",
                "-" if result.stages.largest is None else str(result.stages.largest),
                _WORD[result.status].replace("FITS", "fits") + mark,
            )
        )
    yield from _columns(rows, right=(2, 3, 4, 5, 6), header_style="dim", indent="")
    for note in notes:
        yield Text(_folded(note, 4))
    bad = sum(r.status is not Status.FITS for r in report.results)
    known = [r.stages.largest for r in report.results]
    everywhere = ""
    if all(k is not None for k in known):
        everywhere = f" Stages that fit everywhere: {min(k for k in known if k is not None)}"
    fits = f"{len(report.results) - bad} of {len(report.results)} fit."
    yield Text(fits + everywhere)
    evidence = sorted({str(r.evidence) for r in report.results})
    yield Text(f"launch = dynamic + static (rounded); evidence: {', '.join(evidence)}")
    for result in report.results:
        if result.try_next is not None:
            tried = "compiled here, fits" if result.try_next_tried else "what can be changed"
            yield Text.assemble(
                (f"Next for {result.device} ({tried}):\n  ", "bold"), result.try_next
            )


# ---- small change --------------------------------------------------------------------------


def _columns(
    rows: Sequence[tuple[str, ...]],
    *,
    right: tuple[int, ...] = (),
    header_style: str = "",
    indent: str = "  ",
) -> Iterable[Text]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    widths[0] = max(widths[0], 9) if 0 in right else widths[0]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield Text(indent + "  ".join(cells).rstrip(), style=header_style if number == 0 else "")


def _spaced(parts: Sequence[str], indent: int) -> str:
    """Join parts by three spaces, in as many lines as they need."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}   {part}"
        if len(longer) <= _WIDTH:
            lines[-1] = longer
        else:
            lines.append(" " * indent + part)
    return "\n".join(lines)


def _folded(text: str, indent: int) -> str:
    """Break a sentence into lines."""
    return "\n".join(
        textwrap.wrap(
            text,
            _WIDTH,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _shape(shape: tuple[Dim, ...]) -> str:
    return "x".join(str(d) for d in shape)


def _number(value: Dim | None) -> str:
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else value
