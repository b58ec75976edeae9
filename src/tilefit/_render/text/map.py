"""The answer of `plan` for one device as text: at most 80 columns where names allow it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import PurePath

from rich.text import Text

from tilefit._kernel.kernel import Assembled, Buffer, Kernel
from tilefit._kernel.memory import Memory
from tilefit._placement.place import MemoryPlan
from tilefit._planning.report import Report, Residency, Result
from tilefit._render.text import ascend as _text_ascend
from tilefit._render.text import files as _text_files
from tilefit._render.text import ladder as _text_ladder
from tilefit._render.text import table as _text_table
from tilefit._render.text.drawing import draw
from tilefit._render.text.words import (
    STYLE,
    WORD,
    bar,
    blocks,
    columns,
    folded,
    number,
    shape,
    spaced,
)
from tilefit._verdict.check import GRID, LaunchLimit
from tilefit._verdict.judge import Check, Status


def render(report: Report) -> Text:
    """Return a map for one device, a table for several."""
    if report.several_kernels:
        return Text("\n").join(_text_files.render(report))
    cases = {(result.device, repr(result.params)) for result in report.results}
    if len(cases) > 1:
        return Text("\n").join(_text_table.render(report))
    several = len(report.results) > 1
    maps = [Text("\n").join(_map(result, several)) for result in report.results]
    tail = Text("\n").join(_text_ladder.render(report.results[0]))
    return Text("\n\n").join([*maps, tail] if tail.plain else maps)


def _map(result: Result, several: bool) -> Iterable[Text]:
    name = f"{PurePath(result.file).name}::{result.kernel}"
    if several and result.lowered is not None:
        name += f" ({result.lowered.function})"
    toolchain = f"{result.toolchain} {result.toolchain_version}"
    parts = (name, f"{result.device} {result.target}", toolchain, str(result.evidence))
    title = Text(spaced(parts, 2))
    title.stylize("bold", 0, len(name))
    yield title
    yield _headline(result)
    if result.lowered is None:
        return
    yield Text()
    for use, check in zip(result.uses, result.memories, strict=True):
        show = _text_ascend.memory if result.by_core else _memory
        yield from show(result, use, check)
    yield from _registers(result)
    if result.by_core:
        yield from _text_ascend.launch(result)
        yield from _text_ascend.stages(result)
    else:
        yield _launch(result)
        yield from _residency(result.residency)
        yield _stages(result)
    for note in (*result.lowered.notes, *([result.packing_note] if result.packing_note else [])):
        yield from _labelled("note", note, STYLE[Status.UNKNOWN])


def _headline(result: Result) -> Text:
    word = (WORD[result.status], STYLE[result.status])
    main = result.main
    if result.status is Status.FITS and main is not None and main.margin is not None:
        return Text.assemble(
            word,
            f"   {main.name} {number(main.value)} B   limit {number(main.limit)} B   "
            f"{main.margin:,} B spare",
            f"\n{folded(f'    {result.reason}', 4)}" if result.reason else "",
        )
    text = Text(folded(f"{word[0]}   {result.reason or ''}".rstrip(), 4))
    text.stylize(word[1], 0, len(word[0]))
    return text


# ---- memories --------------------------------------------------------------------------------


def _memory(result: Result, use: MemoryPlan, check: Check) -> Iterable[Text]:
    if use.columns is not None and check.limit_columns is not None:
        yield bar(use.memory, use.columns, check.limit_columns, "columns")
    else:
        yield bar(use.memory, check.value, check.limit, "B")
    lowered = result.lowered
    buffers = [
        b for b in (lowered.buffers if lowered else ()) if b.memory is use.memory and not b.static
    ]
    if buffers:
        header = ("bytes", "buffer", "shape", "dtype", "copies", "offset", "why")
        rows = [_row(result, buffer) for buffer in buffers]
        yield from columns([header, *rows], right=(0, 5), header_style="dim")
    if use.memory is Memory.TENSOR:
        return
    gaps = [row for row in result.rows if row.kind == "gap" and not row.static]
    for gap in gaps:
        yield Text(f"  {gap.bytes:>9,}  gap at {gap.offset:,}: {gap.why}")
    yield from _static(result, use)
    if use.total_bytes is not None:
        yield Text(
            f"  {use.total_bytes:>9,}  launch total = {use.dynamic_bytes:,} dynamic + "
            f"{use.static_bytes:,} static   ({use.evidence})"
        )
    if len([b for b in buffers if b.copies != 0]) > 2 and use.dynamic_bytes:
        yield Text()
        for line in draw(buffers, use.dynamic_bytes):
            yield Text(line)
        yield Text()


def _row(result: Result, buffer: Buffer) -> tuple[str, ...]:
    why = buffer.detail or buffer.why or ""
    if buffer.line:
        why += f"  :{buffer.line}"
    account = next(
        (r for r in result.rows if r.name == buffer.name and r.offset == buffer.offset), None
    )
    if account is not None and account.own_bytes < account.bytes:
        reused = ", ".join(account.shares_with[:2]) + (", ..." if account.shares_with[2:] else "")
        why += f"\nreuses {reused}"
    return (
        number(buffer.bytes),
        buffer.name,
        shape(buffer.shape),
        buffer.dtype,
        "?" if buffer.copies is None else f"x{buffer.copies}",
        "-" if buffer.offset is None else f"{buffer.offset:,}",
        why,
    )


def _static(result: Result, use: MemoryPlan) -> Iterable[Text]:
    lowered = result.lowered
    items = [b for b in (lowered.buffers if lowered else ()) if b.static]
    if not items or lowered is None:
        return
    rounded = ""
    told = lowered.use(use.memory)
    if use.static_bytes != use.static_raw_bytes and told is not None:
        rounded = (
            f": {use.static_raw_bytes:,} B rounded up to {number(told.align_bytes)}, "
            "the dynamic array's alignment"
        )
    yield Text(f"  {use.static_bytes:>9,}  static{rounded}")
    names = ", ".join(f"{b.name} {number(b.bytes)} B ({b.why})" for b in items)
    for line in textwrap.wrap(names, 66):
        yield Text(f"{'':<13}{line}")


# ---- registers, launch, stages ---------------------------------------------------------------


def _registers(result: Result) -> Iterable[Text]:
    lowered = result.lowered
    assert lowered is not None
    label = "regs"
    for buffer in lowered.buffers:
        if buffer.memory is not Memory.REGISTERS or buffer.origin != "source":
            continue
        each = buffer.bytes_per_thread
        size = "" if each is None else f"   {each:,} B per thread"
        line = f"  :{buffer.line}" if buffer.line else ""
        yield Text(
            f"{label:<7} {buffer.name} {shape(buffer.shape)} {buffer.dtype} "
            f"({buffer.scope}){size}{line}"
        )
        label = ""
    if result.by_core:
        return
    made = lowered.assembly
    if made is None:
        what = "registers per thread unknown: not assembled (--assemble)"
        if result.estimated:
            what = "registers per thread unknown: the source does not say"
    elif isinstance(made, Assembled):
        spills = f"spills {made.spill_bytes:,} B" if made.spill_bytes else "no spills"
        matrix = ""
        if made.matrix_instructions is not None:
            kinds = f" ({', '.join(made.matrix_kinds)})" if made.matrix_kinds else ""
            matrix = f"   {made.matrix_instructions:,} matrix instructions{kinds}"
        what = f"{made.registers_per_thread} per thread at launch, {spills}{matrix}"
    elif made.for_want_of_tools:
        what = f"not built: {made.reason}"
    else:
        what = "registers per thread unknown: there is no machine code"
    yield from _labelled(label, what)
    roles = ", ".join(
        f"{role.name} {role.threads:,} threads" + (f" x {role.registers}" if role.registers else "")
        for role in lowered.roles
    )
    if lowered.gemms and lowered.matrix is not None:
        yield from _labelled("matrix", _matrix(lowered))
    if roles:
        limited = any(role.registers for role in lowered.roles)
        yield from _labelled("roles", roles + (" (registers by setmaxnreg)" if limited else ""))


def _matrix(kernel: Kernel) -> str:
    """Return the matrix instructions that a T.gemm came to."""
    used = [" ".join(w for w in (m.path, m.shape, m.dtype) if w) for m in kernel.matrix or ()]
    return ", ".join(used) or "none: the tensor cores stay idle"


def _launch(result: Result) -> Text:
    lowered = result.lowered
    assert lowered is not None
    launch = lowered.launch
    threads = next((c for c in result.limits if c.name is LaunchLimit.THREADS), None)
    written = ""
    if launch.threads_declared not in (None, launch.threads):
        written = f" ({launch.threads_declared:,} written)"
    grid = "not asked"
    if launch.grid is not None:
        bad = (
            (c.status is not Status.FITS or c.holds is not None) and c.name in GRID
            for c in result.limits
        )
        grid = " x ".join(number(g) for g in launch.grid) + ("" if any(bad) else " ok")
    cluster = "no cluster"
    if launch.cluster is not None:
        cluster = "cluster " + " x ".join(str(c) for c in launch.cluster)
    most = "threads not known"
    if threads is not None and threads.status is Status.NOT_ASKED:
        most = f"threads not asked, of {number(threads.limit)}"
    elif threads is not None and threads.limit is None and threads.status is Status.FITS:
        most = f"{number(threads.value)} threads{written}, no limit"
    elif threads is not None:
        most = f"{number(threads.value)} of {number(threads.limit)} threads{written}"
    text = Text(spaced((f"{'launch':<7} {most}", f"grid {grid}", cluster), 8))
    for check in result.limits:
        # the headline gives the reason of a verdict other than a plain fit
        if check.status is Status.NOT_ASKED or check.holds is not None:
            continue  # the headline says how far open sizes may go
        if check.reason and (result.status is Status.FITS or check.reason != result.reason):
            style = "" if check.status is Status.FITS else STYLE[check.status]
            text.append("\n" + folded(f"{'':<8}{check.reason}", 10), style=style)
    return text


def _residency(found: Residency | None) -> Iterable[Text]:
    if found is not None and found.blocks:
        yield Text(f"{'blocks':<7} {blocks(found)}")


def _stages(result: Result) -> Text:
    stages = result.stages
    if stages.largest is None:
        return Text(folded(f"{'stages':<7} largest count: none to give, {stages.reason}", 8))
    how = "both estimated" if result.estimated else "both compiled"
    return Text(
        f"{'stages':<7} {stages.parameter} up to {stages.largest}: "
        f"{number(stages.largest_bytes)} B; {stages.largest + 1} needs "
        f"{number(stages.next_bytes)} B ({how})"
    )


def _labelled(label: str, text: str, style: str = "") -> Iterable[Text]:
    for line in textwrap.wrap(text, 71):
        yield Text(f"{label:<7} {line}", style=style)
        label = ""
