"""The ladder, the edits that were tried, and the command to paste."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from tilefit._report import Edit, Residency, Result, Rung, Tried
from tilefit._verdict import Status
from tilefit.render._words import columns, number, percent


def render(result: Result) -> Iterable[Text]:
    """Yield the lines that follow the map of one device; none if there is nothing to say."""
    if result.ladder:
        yield from _ladder(result)
    if result.tried:
        if result.ladder:
            yield Text()
        yield from _tried(result)
    if result.try_next is not None:
        tried = "compiled here, fits" if result.try_next_tried else "what can be changed"
        yield Text.assemble((f"Next ({tried}):\n  ", "bold"), result.try_next)


def _ladder(result: Result) -> Iterable[Text]:
    name = result.ladder_parameter or ""
    header = (name, "launch", "%", "by shared", "by regs", "blocks/SM", "in flight/SM", "")
    current = dict(result.params).get(name)
    rows = [_rung(rung, current) for rung in result.ladder]
    yield from columns(
        [header, *rows], right=(0, 1, 2, 3, 4, 5, 6), header_style="dim", first_width=len(name)
    )
    yield Text("  blocks/SM: by shared memory alone, by registers alone, and what holds of both")


def _rung(rung: Rung, current: object) -> tuple[str, ...]:
    outcome, held = rung.outcome, rung.residency
    here = "<- here" if rung.value == current else ""
    if outcome.status is Status.CANNOT_LOWER:
        return (str(rung.value), "-", "-", "-", "-", "-", "-", f"refused: {outcome.reason}"[:40])
    total, limit = outcome.total_bytes, outcome.limit_bytes
    share = percent(total, limit).removesuffix(" %") if total is not None and limit else "?"
    if outcome.status is not Status.FITS:
        over = ""
        if total is not None and limit is not None and total > limit:
            over = f"over by {total - limit:,} B"
        word = over or str(outcome.status)
        return (str(rung.value), number(total), share, "-", "-", "-", "-", f"{word} {here}".strip())
    flight = "?"
    if held is not None and held.blocks is not None:
        flight = f"{'' if held.exact else '<= '}{held.blocks * rung.in_flight_bytes // 1024:,} KiB"
    return (
        str(rung.value),
        number(total),
        share,
        *_counts(held),
        flight,
        here,
    )


def _counts(held: Residency | None) -> tuple[str, str, str]:
    if held is None:
        return ("?", "?", "?")
    most = "" if held.exact else "<= "
    return (number(held.by_shared), number(held.by_registers), f"{most}{number(held.blocks)}")


def _tried(result: Result) -> Iterable[Text]:
    target = result.target or ""
    fitting = [t for t in result.tried if t.outcome.status is Status.FITS]
    missed = len(result.tried) - len(fitting)
    yield Text(f"Tried, each lowered again for {target} ({len(result.tried)} lowerings):")
    own = dict(result.params)
    rows = [_edit(one, own, result) for one in fitting]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    for change, total, rest in rows:
        yield Text(f"  {change:<{widths[0]}}  {total:>{widths[1]}}  {rest}")
    if missed:
        yield Text(f"  {missed} other edit{'s' if missed > 1 else ''} did not fit or not lower")


def _edit(one: Tried, own: dict[str, object], result: Result) -> tuple[str, str, str]:
    outcome = one.outcome
    spare = ""
    if outcome.total_bytes is not None and outcome.limit_bytes is not None:
        spare = f"fits   {outcome.limit_bytes - outcome.total_bytes:,} B spare"
    words = [spare]
    if one.residency is not None and one.residency.blocks is not None:
        most = "" if one.residency.exact else "<= "
        plural = "" if one.residency.blocks == 1 else "s"
        words.append(f"{most}{one.residency.blocks} block{plural}/SM")
    words += _costs(one, result)
    return _change(one.edit, own), f"{number(outcome.total_bytes)} B", "   ".join(words)


def _costs(one: Tried, result: Result) -> list[str]:
    """Return what an edit loses: registers to spills, tensor cores, a resident block."""
    words = []
    before, after = result.residency, one.residency
    if before and after and before.blocks and after.blocks is not None:
        lost = before.blocks - after.blocks
        if lost > 0:
            words.append(f"loses {lost} block{'s' if lost > 1 else ''}/SM")
    spills = max((k.spill_bytes or 0 for k in one.outcome.kernels), default=0)
    now = result.lowered.spill_bytes or 0 if result.lowered else 0
    if spills > now:
        words.append(f"spills {spills:,} B per thread")
    matrix = [k.matrix_instructions for k in one.outcome.kernels]
    if result.lowered and result.lowered.matrix_instructions and 0 in matrix:
        words.append("loses the tensor cores")
    return words


def _change(edit: Edit, own: dict[str, object]) -> str:
    words = [f"{name} {own.get(name)} -> {value}" for name, value in edit.params]
    words += [f"{name.removeprefix('tl.')} -> {value}" for name, value in edit.pass_configs]
    return ", ".join(words)
