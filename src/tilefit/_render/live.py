"""The answer of ``devices --live``: each attached device beside our table, text or JSON.

Plain text without colour, at most 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tilefit._devices.comparison import Answer, Comparison, Line
from tilefit._render.devices import columns, wrap


def render_live(answer: Answer) -> str:
    """Return the comparison in text; one line if nothing is attached."""
    if not answer.devices:
        return answer.nothing_attached
    lines: list[str] = []
    for found, indexes in _alike(answer.devices):
        lines += [*_one(found, indexes), ""]
    return "\n".join(lines[:-1])


def _alike(devices: Sequence[Comparison]) -> Iterable[tuple[Comparison, list[int]]]:
    """Yield each kind of device once, with the numbers of those that say just the same."""
    groups: dict[Comparison, list[int]] = {}
    for found in devices:
        kind = replace(found, attached=replace(found.attached, index=0))
        groups.setdefault(kind, []).append(found.attached.index)
    return groups.items()


def _one(found: Comparison, indexes: Sequence[int]) -> Iterable[str]:
    one, ours = found.attached, found.device
    yield from wrap(f"{', '.join(map(str, indexes))}  ", f"{one.name}, {one.arch or '?'}")
    yield from wrap("   ", f"asked through {one.through}")
    if one.note:
        yield from wrap("   ", one.note)
    if ours is None:
        yield from wrap("   ", f"not in our table, and neither is its architecture {one.arch}")
    elif ours.product:
        yield f"   our table: {ours.name}"
    else:
        yield from wrap("   ", f"our table: {ours.name}, its architecture (not this product)")
    header = ("limit", "live", "ours", "")
    rows = [header, *((line.limit, *_cells(line)) for line in found.lines)]
    yield from (f"   {row}" for row in columns(rows, right=(1, 2)))
    for line in found.lines:
        if line.differs:
            yield from wrap("   warning: ", _warning(line))


def _cells(line: Line) -> tuple[str, str, str]:
    if line.ours is None:
        return _amount(line.live, line), "-", "ours has none"
    word = "differs" if line.differs else "same"
    return _amount(line.live, line), _amount(line.ours, line), word


def _warning(line: Line) -> str:
    return (
        f"{line.limit}: the device says {_amount(line.live, line)} and our table "
        f"{_amount(line.ours or 0, line)}; verdicts use the table's"
    )


def _amount(value: int, line: Line) -> str:
    return f"{value:,} B" if line.unit else f"{value:,}"


def live_dict(answer: Answer) -> dict[str, Any]:
    """Return the document of ``devices --live --json`` but for its version; sizes are bytes."""
    return {
        "attached": [_attached_dict(found) for found in answer.devices],
        "asked": [{"through": through, "answer": said} for through, said in answer.asked],
        "warnings": [
            f"device {found.attached.index}: {_warning(line)}"
            for found in answer.devices
            for line in found.lines
            if line.differs
        ],
    }


def _attached_dict(found: Comparison) -> dict[str, Any]:
    one = found.attached
    return {
        "index": one.index,
        "name": one.name,
        "vendor": one.vendor,
        "arch": one.arch,
        "through": one.through,
        "note": one.note,
        "device": None if found.device is None else found.device.name,
        "limits": [
            {
                "limit": line.limit,
                "unit": line.unit,
                "live": line.live,
                "ours": line.ours,
                "same": None if line.ours is None else not line.differs,
            }
            for line in found.lines
        ],
    }
