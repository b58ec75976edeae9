"""The answer of ``explain``: plain text of at most 80 columns, or the document for JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from tilefit._explain import Cause, Change, Explanation, Finding, Room, Sum, Whose
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import human, percent

_WIDTH = 80
_LABEL = 10
_SHOWN = 10
_NAMED = 8
_MEMORIES = {
    Memory.SHARED: "shared memory",
    Memory.LDS: "LDS (AMD's shared memory)",
    Memory.TENSOR: "tensor memory (TMEM)",
    Memory.REGISTERS: "registers",
    Memory.UB: "UB (Unified Buffer)",
    Memory.L1: "L1",
    Memory.L0A: "L0A",
    Memory.L0B: "L0B",
    Memory.L0C: "L0C",
    Memory.BIAS: "bias table",
    Memory.THREADGROUP: "threadgroup memory",
    Memory.VMEM: "VMEM",
}
NOTHING = """\
nothing known here

tilefit knows messages about on-chip memory, registers and threads: of Triton,
torch inductor, TileLang, ptxas, CUDA, CUTLASS, Ascend, AMD, Metal and XLA
(docs/messages.md). Paste the line with the numbers, or the whole log:
  python train.py 2>&1 | tilefit explain -
"""


def explanation_text(answer: Explanation) -> str:
    """Return the answer as text."""
    if not answer.findings:
        return NOTHING
    blocks = []
    for number, finding in enumerate(answer.findings[:_SHOWN], 1):
        mark = f"[{number}/{len(answer.findings)}] " if len(answer.findings) > 1 else ""
        blocks.append("\n".join(_block(finding, mark)))
    left = len(answer.findings) - _SHOWN + answer.more
    if left > 0:
        blocks.append(f"and {left} other messages (--json has up to {len(answer.findings)})")
    return "\n\n".join(blocks) + "\n"


def _block(finding: Finding, mark: str) -> Iterable[str]:
    yield from _folded(f"{mark}{_headline(finding)}", "", 2)
    yield from _row("message", finding.message)
    if finding.name and finding.name not in finding.message:
        yield from _row("in", finding.name)
    yield from _numbers(finding)
    if finding.count > 1:
        yield from _row("times", f"{finding.count} in this text")
    if finding.fatal is False:
        yield from _row("fatal", f"no: {finding.fatal_why}")
    elif finding.fatal is None:
        yield from _row("fatal", f"often not: {finding.fatal_why}")
    else:
        yield from _row("fatal", f"yes: {finding.fatal_why}")
    for note in finding.notes:
        yield from _row("note", note)
    for number, total in enumerate(finding.sums):
        yield from _sum(total, "or" if number else "sum")
    if finding.changes:
        yield from _row("fits", "by that formula (declared, not compiled):")
    for change in finding.changes:
        yield from _row("", _change(change, finding.unit), 2)
    for number, sentence in enumerate(finding.advice):
        yield from _row("" if number else "change", f"- {sentence}", 2)
    yield from _causes(finding.causes)
    if finding.command:
        yield f"{'next':{_LABEL}}{finding.command}"


def _headline(finding: Finding) -> str:
    if finding.says:
        return f"{finding.title}: {finding.says}"
    if finding.unit == "threads":
        return f"{finding.title}: too many threads in a block"
    what = _MEMORIES[finding.memory] if finding.memory else "memory"
    if finding.over is None and finding.required is not None and finding.limit is not None:
        return f"{finding.title}: {what}, within the limit that is named"
    verb = "do not suffice" if finding.memory is Memory.REGISTERS else "does not fit"
    lacking = "" if finding.required or finding.over or finding.limit else " (no numbers here)"
    return f"{finding.title}: {what} {verb}{lacking}"


def _numbers(finding: Finding) -> Iterable[str]:
    if finding.required is not None:
        yield from _row("needs", _amount(finding.required, finding.required_bytes, finding.unit))
    if finding.limit is not None:
        amount = _amount(finding.limit, finding.limit_bytes, finding.unit)
        place = "" if finding.limit_from == "message" else f", the limit of {finding.limit_from}"
        yield from _row("limit", f"{amount}{place}")
        if finding.limit_from == "message":
            for whose in finding.whose:
                yield from _row("", _whose(whose))
    elif finding.rooms:
        yield from _row("limit", "not in the message; by the tables")
        yield from _rooms(finding.rooms)
    if finding.over is not None:
        share = ""
        if finding.limit:
            share = f" ({percent(finding.over, finding.limit)} %)"
        unit = "bytes" if finding.unit == "bits" else finding.unit
        yield from _row("over by", _amount(finding.over, finding.over_bytes, unit) + share)


def _amount(value: int, n_bytes: int | None, unit: str) -> str:
    if n_bytes is None:
        return f"{value:,} {unit}"
    text = f"{n_bytes:,} B" if n_bytes < 1024 else f"{n_bytes:,} B = {human(n_bytes)}"
    return text if unit == "bytes" else f"{text}, from {value:,} {unit}"


def _whose(whose: Whose) -> str:
    return f"{whose.words}: {_device_list(whose.devices)}"


def _rooms(rooms: Sequence[Room]) -> Iterable[str]:
    for room in rooms:
        verdict = "fits" if room.fits else "does not fit"
        line = f"{verdict} {room.limit_bytes:,} B: {_device_list(room.devices)}"
        yield from _row("", line, 2)


def _device_list(names: Sequence[str]) -> str:
    """Return names with the architectures run together: ``sm_86, 89, 120: rtx-3090, ...``."""
    archs = [name for name in names if name.startswith("sm_")]
    others = [name for name in names if not name.startswith("sm_")]
    short = ", ".join(
        [archs[0], *(arch.removeprefix("sm_") for arch in archs[1:])] if archs else []
    )
    left = len(others) - _NAMED
    more = f" and {left} more" if left > 0 else ""
    return "; ".join(part for part in (short, ", ".join(others[:_NAMED]) + more) if part)


def _sum(total: Sum, label: str) -> Iterable[str]:
    unit = {"bytes": " B"}.get(total.unit, f" {total.unit}")
    yield from _row(label, f"{total.written} = {total.value:,}{unit}")
    yield from _row("", f"= {total.formula}", 2)
    if total.assumed:
        yield from _row("", f"with {total.assumed}", 2)
    yield from _row("", f"({total.why})", 1)


def _change(change: Change, unit: str) -> str:
    short = " B" if unit == "bytes" else f" {unit}"
    steps = ", ".join(f"{name} {old} -> {new}" for name, old, new in change.steps)
    return f"{steps}: {change.value:,}{short}, {change.margin:,} spare"


def _causes(causes: Sequence[Cause]) -> Iterable[str]:
    """Number the causes; a command that decides several in a row stands once, after them."""
    for number, cause in enumerate(causes):
        yield from _row("" if number else "likely", f"{number + 1}. {cause.words}", 3)
        following = causes[number + 1].command if number + 1 < len(causes) else ""
        if cause.command and cause.command != following:
            yield f"{'':{_LABEL + 3}}{cause.command}"


def _row(label: str, text: str, hang: int = 0) -> Iterable[str]:
    return _folded(text, f"{label:{_LABEL}}", _LABEL + hang)


def _folded(text: str, first: str, hang: int) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * hang,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def explanation_dict(answer: Explanation) -> dict[str, Any]:
    """Return the document of ``explain --json`` but for its version; sizes are bytes."""
    return {
        "findings": [_finding_dict(finding) for finding in answer.findings],
        "more": answer.more,
    }


def _finding_dict(finding: Finding) -> dict[str, Any]:
    return {
        "message": finding.message,
        "form": finding.form,
        "toolchain": finding.toolchain,
        "says": finding.says,
        "memory": finding.memory,
        "name": finding.name,
        "required_bytes": finding.required_bytes,
        "limit_bytes": finding.limit_bytes,
        "over_bytes": finding.over_bytes,
        "unit": finding.unit,
        "required": finding.required,
        "limit": finding.limit,
        "over": finding.over,
        "limit_from": finding.limit_from,
        "devices": list(finding.devices),
        "limits_of": [
            {"kind": w.kind, "words": w.words, "devices": list(w.devices)} for w in finding.whose
        ],
        "fits_on": [
            {"limit_bytes": r.limit_bytes, "fits": r.fits, "devices": list(r.devices)}
            for r in finding.rooms
        ],
        "fatal": finding.fatal,
        "fatal_why": finding.fatal_why,
        "notes": list(finding.notes),
        "params": {name: _plain(value) for name, value in finding.params},
        "arithmetic": [
            {
                "rule": s.rule,
                "formula": s.formula,
                "written": s.written,
                "value": s.value,
                "unit": s.unit,
                "why": s.why,
                "assumed": s.assumed,
            }
            for s in finding.sums
        ],
        "changes": [
            {
                "set": {name: new for name, _, new in c.steps},
                "value": c.value,
                "margin": c.margin,
            }
            for c in finding.changes
        ],
        "causes": [{"cause": c.words, "command": c.command} for c in finding.causes],
        "advice": list(finding.advice),
        "command": finding.command,
        "count": finding.count,
    }


def _plain(value: object) -> object:
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
