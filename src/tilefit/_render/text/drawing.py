"""Draw shared memory: address across, program order down, names inside, a legend below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from string import ascii_letters

from tilefit._kernel.kernel import Buffer

WIDTH = 60
_MOST_STEPS = 14


def draw(buffers: Sequence[Buffer], total_bytes: int) -> list[str]:
    """Return the lines of a map of the dynamic part, at most 74 columns wide.

    Each row is a stretch of the program in which the same buffers live. A buffer is drawn over
    its addresses with its letter; its name stands inside where there is room.

    Args:
        buffers: Those with an offset, a size and a live interval; others are left out.
        total_bytes: Size of the arena.
    """
    placed = [
        b for b in buffers if b.offset is not None and b.bytes and b.live and b.live[0] < b.live[1]
    ]
    if not placed or total_bytes <= 0:
        return []
    names = ascii_letters[26:] + ascii_letters[:26]
    letters = {id(b): names[i % len(names)] for i, b in enumerate(placed)}
    steps = _steps(placed)
    shown = steps
    if len(steps) > _MOST_STEPS:
        shown = [steps[i * len(steps) // _MOST_STEPS] for i in range(_MOST_STEPS)]
    first = f"{'step':>7} 0{f'{total_bytes:,} B':>{WIDTH - 1}}"
    lines = [first]
    for start, end in shown:
        cells = ["."] * WIDTH
        # the small ones last: they may have no more than a part of one cell
        for buffer in sorted(placed, key=lambda b: -(b.bytes or 0)):
            if _lives(buffer, start, end):
                _fill(cells, buffer, total_bytes, letters[id(buffer)])
        lines.append(f"{start:>7} {''.join(cells)}")
    if len(steps) > len(shown):
        lines.append(f"{'':8}{len(shown)} of {len(steps)} stretches of the program are drawn")
    legend = [f"{letters[id(b)]} {b.name} {b.bytes:,} B" for b in placed]
    lines += _wrapped(legend, indent=8)
    return lines


def _steps(placed: Sequence[Buffer]) -> list[tuple[int, int]]:
    """Return the stretches between births and deaths in which something lives."""
    marks = sorted({mark for b in placed if b.live for mark in b.live})
    return [span for span in pairwise(marks) if any(_lives(b, *span) for b in placed)]


def _lives(buffer: Buffer, start: int, end: int) -> bool:
    return buffer.live is not None and buffer.live[0] < end and start < buffer.live[1]


def _fill(cells: list[str], buffer: Buffer, total_bytes: int, letter: str) -> None:
    offset, size = buffer.offset or 0, buffer.bytes or 0
    left = offset * WIDTH // total_bytes
    width = -(-(offset + size) * WIDTH // total_bytes) - left  # a part of a cell is drawn whole
    text = letter * width
    label = f" {buffer.name} "
    if width >= len(label) + 4:
        at = (width - len(label)) // 2
        text = text[:at] + label + text[at + len(label) :]
    cells[left : left + width] = text


def _wrapped(items: Sequence[str], indent: int) -> list[str]:
    lines, current = [], ""
    for item in items:
        if current and len(current) + len(item) + 3 > WIDTH:
            lines.append(current)
            current = ""
        current = f"{current}   {item}" if current else item
    return [f"{'':{indent}}{line}" for line in [*lines, current] if line]
