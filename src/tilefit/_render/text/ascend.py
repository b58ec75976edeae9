"""What `plan` shows of a kernel on Ascend: a block for each memory, rounds, versions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.text import Text

from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import Memory
from tilefit._placement.open_buffers import READ_AS
from tilefit._placement.place import MemoryPlan
from tilefit._planning.report import Result, Rounds
from tilefit._render.text.drawing import draw
from tilefit._render.text.words import STYLE, bar, columns, folded, number, shape, spaced
from tilefit._verdict.judge import Check, Status

_CORES = {"cube": "cube cores", "vector": "vector cores", "mixed": "cube and vector cores"}
_SOURCE = "source"
_ESTIMATE = (
    "an estimate: what the source declares, without padding to fractals, slots that T.gemm takes "
    "of L0A and L0B, or anything else that a compiler adds"
)
_NAMED = 2  # buffers that a row names
_DRAWN = 3  # buffers from which a drawing tells more than the table


def memory(result: Result, use: MemoryPlan, check: Check) -> Iterable[Text]:
    """Yield the block of one memory: how full it is, and every byte of it."""
    yield bar(use.memory, check.value, check.limit, "B")
    if check.limit_reason:
        yield Text(folded(f"{'':<8}limit: {check.limit_reason}", 15))
    if check.silent:
        line = "silent overflow: the compiler accepts this; the chip has no such bytes"
        yield Text(f"{'':<8}{line}", style=STYLE[Status.DOES_NOT_FIT])
    buffers = result.lowered.buffers if result.lowered else ()
    mine = [b for b in buffers if b.memory is use.memory or _perhaps(b, use.memory)]
    if mine:
        header = ("bytes", "buffer", "shape", "dtype", "versions", "offset", "why")
        rows = columns([header, *map(_row, mine)], right=(0, 5), header_style="dim")
        for row, buffer in zip(rows, (None, *mine), strict=True):
            yield row
            for remark in _remarks(result, buffer) if buffer is not None else ():
                yield Text(folded(f"{'':<13}{remark}", 15), style="dim")
    for part in result.rows:
        if part.memory is use.memory and part.kind != "buffer":
            where = f" at {part.offset:,}" if part.offset is not None else ""
            yield Text(f"  {part.own_bytes:>9,}  {part.name}{where}: {part.why}")
    if use.total_bytes is not None:
        shared = "" if use.least_bytes is None else ", if no tiles share bytes"
        yield Text(f"  {use.total_bytes:>9,}  of one {use.owner}{shared}   ({use.evidence})")
        if use.least_bytes is not None:
            yield Text(f"  {use.least_bytes:>9,}  at least")
    placed = [b for b in mine if b.copies != 0 and b.offset is not None]
    if len(placed) >= _DRAWN and use.total_bytes and all(b.live is not None for b in placed):
        yield Text()
        yield from (Text(line) for line in draw(mine, use.total_bytes))
        yield Text()


def _perhaps(buffer: Buffer, memory: Memory) -> bool:
    """Say whether a buffer that the source does not place may be in a memory."""
    return (
        buffer.memory is Memory.UNDECIDED
        and memory in READ_AS
        and buffer.scope.startswith("shared")
    )


def _row(buffer: Buffer) -> tuple[str, ...]:
    line = f"  :{buffer.line}" if buffer.line else ""
    return (
        number(buffer.bytes),
        buffer.name,
        shape(buffer.shape),
        buffer.dtype,
        _versions(buffer),
        "-" if buffer.offset is None else f"{buffer.offset:,}",
        f"{buffer.why or ''}{line}",
    )


def _remarks(result: Result, buffer: Buffer) -> Iterable[str]:
    """Yield what else there is to say of a buffer."""
    if buffer.memory is Memory.UNDECIDED:
        yield f"in {' or '.join(m.upper() for m in READ_AS)}: the compiler decides by use"
    if buffer.origin == "compiler":
        yield f"added by the compiler{f': {buffer.detail}' if buffer.detail else ''}"
    if buffer.padded_shape is not None:
        yield f"in fractals {shape(buffer.padded_shape)}"
    row = next(
        (
            r
            for r in result.rows
            if r.kind == "buffer"
            and (r.memory, r.name, r.offset) == (buffer.memory, buffer.name, buffer.offset)
        ),
        None,
    )
    if row is not None and row.shares_with:
        more = ", ..." if row.shares_with[_NAMED:] else ""
        yield f"shares bytes with {', '.join(row.shares_with[:_NAMED])}{more}"


def _versions(buffer: Buffer) -> str:
    chosen = "?" if buffer.copies is None else f"x{buffer.copies}"
    return chosen if buffer.stages is None else f"{chosen} of {buffer.stages}"


def launch(result: Result) -> Iterable[Text]:
    """Yield the grid, the cores that a block takes, and in how many rounds the blocks run."""
    lowered = result.lowered
    assert lowered is not None
    grid = " x ".join(number(extent) for extent in lowered.launch.grid or ())
    parts = [f"{'launch':<7} grid {grid}"]
    if lowered.cores is not None:
        parts.append(_CORES.get(lowered.cores, lowered.cores))
    text = Text(spaced(parts, 8))
    for check in result.limits:
        # the headline gives the reason of a verdict other than a plain fit
        if check.reason and (result.status is Status.FITS or check.reason != result.reason):
            text.append("\n" + folded(f"{'':<8}{check.reason}", 10), style=STYLE[check.status])
    yield text
    if result.estimated:
        yield Text(folded(f"{'note':<7} {_ESTIMATE}", 8))
    if result.rounds is not None:
        yield Text(folded(f"{'rounds':<7} {rounds(result.rounds)}", 8))


def rounds(found: Rounds) -> str:
    """Return the rounds of blocks in words."""
    if found.rounds is None:
        return f"unknown: {found.reason}"
    plural = "" if found.rounds == 1 else "s"
    blocks = "block" if found.blocks == 1 else "blocks"
    cores = found.core if found.cores is None else f"{found.cores} {found.core}"
    return f"{found.rounds:,} round{plural}: {found.blocks:,} {blocks} on {cores}"


def stages(result: Result) -> Iterable[Text]:
    """Yield why no stage count is the largest, and what was made of the stages."""
    yield Text(folded(f"{'stages':<7} no largest count: {result.stages.reason}", 8))
    chosen = ", ".join(
        f"{v.buffer} {'?' if v.chosen is None else v.chosen} of {v.asked}"
        for v in result.stages.versions
    )
    for number_of_line, line in enumerate(textwrap.wrap(chosen, 71)):
        label = "" if number_of_line else "chosen"
        yield Text(f"{label:<7} {line}")


def ladder(result: Result) -> Iterable[Text]:
    """Yield a line for each value of the ladder: the bytes of each memory, and what is wrong."""
    name = result.ladder_parameter or ""
    current = dict(result.params).get(name)
    totals = [dict(rung.outcome.totals) for rung in result.ladder]
    memories = [m for m in Memory if any(m in found for found in totals)]
    rows = [(name, *memories, "")]
    for rung, found in zip(result.ladder, totals, strict=True):
        outcome = rung.outcome
        here = "<- here" if rung.value == current else ""
        words = "" if outcome.status is Status.FITS else outcome.reason or str(outcome.status)
        cells = (number(found[m]) if m in found else "-" for m in memories)
        rows.append((str(rung.value), *cells, "  ".join(w for w in (here, words) if w)))
    right = tuple(range(len(memories) + 1))
    yield from columns(rows, right=right, header_style="dim", first_width=0)
