"""The ladder, the edits that were tried, and the command to paste."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from tilefit._kernel.units import KIB
from tilefit._planning.report import Edit, Residency, Result, Rung, Tried
from tilefit._render.text import ascend as _text_ascend
from tilefit._render.text.words import WIDTH, folded, next_words, number, percent, spaced
from tilefit._verdict.judge import Status


def render(result: Result) -> Iterable[Text]:
    """Yield the lines that follow the map of one device; none if there is nothing to say."""
    if result.ladder:
        yield from _text_ascend.ladder(result) if result.by_core else _ladder(result)
    if result.tried:
        if result.ladder:
            yield Text()
        yield from _tried(result)
    for line in result.advice:
        yield Text(folded(f"Advice, untried: {line}", 2))
    if result.try_next is not None:
        tried = next_words(result)
        yield Text.assemble((f"Next ({tried}):\n  ", "bold"), result.try_next)


_CHANGE = 30  # an edit of more columns has a line of its own
_ALWAYS = 3  # the value, its bytes and their share are there whatever came of it


def _ladder(result: Result) -> Iterable[Text]:
    name = result.ladder_parameter or ""
    current = dict(result.params).get(name)
    core = next((rung.residency.core for rung in result.ladder if rung.residency), "SM")
    per_core = (f"blocks/{core}", f"in flight/{core}")
    header = (name, "launch", "%", "by shared", "by regs", *per_core, "")
    rows = [header, *(_rung(rung, current) for rung in result.ladder)]
    full = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[i]) for row in rows) for i in range(_ALWAYS)]
    widths += [max(len(row[i]) for row in full) for i in range(_ALWAYS, len(rows[0]) - 1)]
    for row in rows:
        *cells, words = row
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths, strict=False)]
        line = f"  {'  '.join(numbers)}  {words}".rstrip()
        if len(line) > WIDTH:
            line = line[: WIDTH - 4] + " ..."
        yield Text(line, style="dim" if row is rows[0] else "")
    yield Text(f"  blocks/{core}: by shared memory alone, by registers alone, and by both")
    for rung in result.ladder:
        if rung.same_as is not None:
            yield Text(
                f"  {name} {rung.value}: the compiler makes the same code as at {rung.same_as}"
            )


def _rung(rung: Rung, current: object) -> tuple[str, ...]:
    """Return the cells of a value; a value that does not fit has words behind the first three."""
    outcome, held = rung.outcome, rung.residency
    here = "<- here" if rung.value == current else ""
    if outcome.status is Status.CANNOT_LOWER:
        return (str(rung.value), "-", "-", f"{here}  refused: {outcome.reason}".lstrip())
    total, limit, margin = outcome.total_bytes, outcome.limit_bytes, outcome.margin_bytes
    share = percent(total, limit).removesuffix(" %") if total is not None and limit else "?"
    always = (str(rung.value), number(total), share)
    if outcome.status is not Status.FITS:
        word = outcome.reason or str(outcome.status)
        if margin is not None and margin < 0:
            word = f"over by {-margin:,} B"
        return (*always, f"{word}  {here}".rstrip())
    flight = "?"
    if held is not None and rung.in_flight_bytes_per_core is not None:
        flight = f"{'' if held.exact else '<= '}{rung.in_flight_bytes_per_core // KIB:,} KiB"
    return (*always, *_counts(held), flight, here)


def _counts(held: Residency | None) -> tuple[str, str, str]:
    if held is None:
        return ("?", "?", "?")
    most = "" if held.exact else "<= "
    return (number(held.by_shared), number(held.by_registers), f"{most}{number(held.blocks)}")


def _tried(result: Result) -> Iterable[Text]:
    target = result.target or ""
    fitting = result.fitting
    unsettled = [one for one in result.tried if one.unsettled]
    idle = sum(one.idle for one in result.tried)
    spilling = sum(bool(one.loss.spill_bytes) and not one.idle for one in result.tried)
    missed = len(result.tried) - len(fitting) - len(unsettled) - idle - spilling
    count = f"{len(result.tried)} {'lowering' if len(result.tried) == 1 else 'lowerings'}"
    how = f"lowered again for {target} ({count})"
    if result.estimated:
        how = f"estimated again from the source ({len(result.tried)})"
    yield Text(f"Tried, each {how}:")
    own = dict(result.params)
    rows = [_edit(one, own, result) for one in fitting]
    short = [change for change, *_ in rows if len(change) <= _CHANGE]
    widths = [max(map(len, found), default=0) for found in (short, [row[1] for row in rows])]
    for change, total, words in rows:
        if len(change) > widths[0]:
            yield Text(folded(f"  {change}", 4))
            change = ""
        line = [f"  {change:<{widths[0]}}  {total:>{widths[1]}}  {words[0]}", *words[1:]]
        yield Text(spaced(line, widths[0] + 4))
    if unsettled:
        change = _change(unsettled[0].edit, own)
        yield Text(folded(f"  not settled without registers (--assemble): {change}", 4))
    if missed and not (fitting or unsettled or spilling):
        yield Text("  none of them fits")
    elif missed:
        others = f"{missed} other edit{'s' if missed > 1 else ''}"
        yield Text(f"  {others} did not fit or did not lower")
    if idle:
        yield Text(f"  {idle} changed nothing: the same code came out")
    if spilling:
        yield Text(f"  {spilling} fit{'s' if spilling == 1 else ''} and would spill more than now")


def _edit(one: Tried, own: dict[str, object], result: Result) -> tuple[str, str, list[str]]:
    outcome = one.outcome
    spare = ""
    if outcome.margin_bytes is not None:
        spare = f"fits   {outcome.margin_bytes:,} B spare"
    words = [spare]
    if one.residency is not None and one.residency.blocks is not None:
        most = "" if one.residency.exact else "<= "
        plural = "" if one.residency.blocks == 1 else "s"
        words.append(f"{most}{one.residency.blocks} block{plural}/{one.residency.core}")
    words += _losses(one)
    total = f"{number(outcome.total_bytes)} B"
    if result.by_core and outcome.memory is not None:
        total += f" of {outcome.memory}"
    return _change(one.edit, own), total, words


def _losses(one: Tried) -> list[str]:
    """Return what an edit loses: a resident block, registers to spills, tensor cores."""
    loss, words = one.loss, []
    if loss.blocks_per_core and one.residency is not None:
        plural = "s" if loss.blocks_per_core > 1 else ""
        words.append(f"loses {loss.blocks_per_core} block{plural}/{one.residency.core}")
    if loss.spill_bytes:
        words.append(f"spills {loss.spill_bytes:,} B per thread")
    if loss.tensor_cores:
        words.append("loses the tensor cores")
    elif loss.matrix_path:
        words.append(loss.matrix_path)
    return words


def _change(edit: Edit, own: dict[str, object]) -> str:
    words = [f"{name} {own.get(name)} -> {value}" for name, value in edit.params]
    words += [f"{name.removeprefix('tl.')} -> {value}" for name, value in edit.pass_configs]
    return ", ".join(words)
