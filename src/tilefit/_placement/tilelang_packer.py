"""Lay the buffers of one block out in TileLang's merged shared-memory array.

Written from the rules that TileLang 0.1.15 follows, not by asking TileLang: live intervals go in,
byte offsets come out. Held against the compiler's own offsets, each checks the other.

The rules: buffers take their turn by first use, larger ones first, then by name. Before each turn
the bytes of those that are dead are free. A buffer goes into the smallest hole that holds it; else
it starts in the last hole, if that touches the top of the array, and the array grows; else it goes
on top, and the gap that its alignment leaves is a hole. Sizes that are open until run time follow
behind. The total is a multiple of 16. A single buffer is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tilefit._errors import InputError
from tilefit._kernel.units import round_up

ARRAY_ALIGN_BYTES = 16
"""Least alignment of a buffer in the array and of the array's size (TileLang's `align_bytes`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A buffer and the stretch of the program in which its content matters.

    Attributes:
        name: Its name; names may repeat.
        start: Index of the first program step that touches it.
        end: Index after the last one; equal to `start` if nothing touches it.
        bytes: Its size, None if a size is open until run time.
        align_bytes: Alignment that it needs; less than 16 counts as 16.
    """

    name: str
    start: int
    end: int
    bytes: int | None
    align_bytes: int = ARRAY_ALIGN_BYTES

    def __post_init__(self) -> None:
        """Refuse values that no buffer can have.

        Raises:
            InputError: A negative size, an alignment below 1 or an end before the start.
        """
        if self.bytes is not None and self.bytes < 0:
            raise InputError(f"buffer {self.name!r}: {self.bytes} bytes is negative")
        if self.align_bytes < 1:
            raise InputError(f"buffer {self.name!r}: alignment {self.align_bytes} is below 1")
        if self.end < self.start:
            raise InputError(f"buffer {self.name!r}: end {self.end} is before start {self.start}")

    @property
    def touched(self) -> bool:
        """True if any step of the program uses it."""
        return self.end > self.start


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each buffer went.

    Attributes:
        offsets: Byte offset per interval, in the order given. None for a buffer without a place
            (nothing touches it) and for one whose place depends on a size that is open.
        total_bytes: Size of the array, None if it depends on a size that is open.
    """

    offsets: tuple[int | None, ...]
    total_bytes: int | None


def pack(intervals: Sequence[Interval], *, reuse: bool = True) -> Packing:
    """Place every buffer of one device function.

    Args:
        intervals: All buffers of the dynamic array, also those that nothing touches.
        reuse: False for `tl.disable_shared_memory_reuse`: every buffer keeps its own bytes.
    """
    if len(intervals) < 2:  # nothing to merge: the buffer is the array, its size not rounded
        total = (
            None
            if any(i.bytes is None for i in intervals)
            else sum(i.bytes or 0 for i in intervals)
        )
        return Packing(tuple(0 for _ in intervals), total)
    return _share(intervals) if reuse else _side_by_side(intervals)


def agrees(
    intervals: Sequence[Interval],
    offsets: Sequence[int | None],
    total_bytes: int | None,
    *,
    reuse: bool = True,
) -> bool:
    """Tell whether the rules lead to the layout that a compiler chose.

    Buffers alike in all that the rules look at may change places: the compiler orders them by
    chance (by the address of an object). Two work areas called `workspace` often are alike.
    """
    # None last: what is open, or hangs on something open, stands behind the rest
    found = sorted((offset is None, offset or 0, n) for n, offset in enumerate(offsets))
    theirs = Counter(zip(intervals, offsets, strict=True))
    for order in (range(len(intervals)), [n for *_, n in found]):
        in_order = [intervals[n] for n in order]
        packing = pack(in_order, reuse=reuse)
        ours = Counter(zip(in_order, packing.offsets, strict=True))
        if packing.total_bytes == total_bytes and ours == theirs:
            return True
    return False


def live_peak(intervals: Sequence[Interval]) -> int:
    """Return the most bytes live at one step: no layout is smaller. Open sizes count as 0."""
    return max((_live_at(intervals, moment.start) for moment in intervals), default=0)


def _live_at(intervals: Sequence[Interval], step: int) -> int:
    return sum(i.bytes or 0 for i in intervals if i.start <= step < i.end)


def _share(intervals: Sequence[Interval]) -> Packing:
    """Place with reuse; buffers of open size follow behind the rest, one behind the other."""
    placed: dict[int, int] = {}
    active: list[int] = []
    arena = _Arena()
    known = [n for n, i in enumerate(intervals) if i.touched and i.bytes is not None]
    for number in sorted(known, key=lambda n: _turn(intervals[n])):
        interval = intervals[number]
        for other in [n for n in active if intervals[n].end <= interval.start]:
            active.remove(other)
            arena.free(placed[other], intervals[other].bytes or 0)
        placed[number] = arena.place(interval.bytes or 0, _align(interval))
        active.append(number)
    total: int | None = round_up(arena.top, ARRAY_ALIGN_BYTES)
    behind = [n for n, i in enumerate(intervals) if i.touched and i.bytes is None]
    if behind:
        first = min(behind, key=lambda n: _turn_of_open(intervals[n]))
        placed[first] = round_up(total or 0, _align(intervals[first]))
        total = None
    return Packing(tuple(placed.get(n) for n in range(len(intervals))), total)


def _turn(interval: Interval) -> tuple[int, int, str, int]:
    """Return the sort key: first touched first, then larger first, then by name."""
    return interval.start, -(interval.bytes or 0), interval.name, interval.end


def _turn_of_open(interval: Interval) -> tuple[int, int, str]:
    return interval.start, interval.end, interval.name


def _side_by_side(intervals: Sequence[Interval]) -> Packing:
    """Place without reuse: by name, one behind the other, touched or not."""
    offsets: list[int | None] = [None] * len(intervals)
    top = 0
    for number in sorted(range(len(intervals)), key=lambda n: intervals[n].name):
        interval = intervals[number]
        offsets[number] = round_up(top, _align(interval))
        if interval.bytes is None:  # whatever follows, and the total, depends on this size
            return Packing(tuple(offsets), None)
        top = round_up(top, _align(interval)) + interval.bytes
    return Packing(tuple(offsets), round_up(top, ARRAY_ALIGN_BYTES))


def _align(interval: Interval) -> int:
    return max(interval.align_bytes, ARRAY_ALIGN_BYTES)


Hole = tuple[int, int]
"""A free stretch of the array: its start and its size in bytes."""


class _Arena:
    """The array while it fills: its top and the holes below it, sorted, none touching another."""

    def __init__(self) -> None:
        self.top = 0
        self.holes: list[Hole] = []

    def place(self, need: int, align: int) -> int:
        """Return the offset for a buffer: in a hole, from the last hole upward, or on top."""
        chosen = choose_hole(self.holes, need, align)
        if chosen is not None:
            start, size = self.holes.pop(chosen)
            offset = round_up(start, align)
            self.free(offset + need, start + size - offset - need)
            self.free(start, offset - start)
            return offset
        base = self.top
        if self.holes and sum(self.holes[-1]) == self.top:
            start = self.holes[-1][0]
            if round_up(start, align) < self.top:
                self.holes.pop()
                base = start
        offset = round_up(base, align)
        self.free(base, offset - base)
        self.top = offset + need
        return offset

    def free(self, start: int, size: int) -> None:
        """Give bytes back, joined with the holes that they touch."""
        if not size:
            return
        end = start + size
        apart = [h for h in self.holes if h[0] + h[1] < start or h[0] > end]
        touching = [h for h in self.holes if not (h[0] + h[1] < start or h[0] > end)]
        start = min([start, *(h[0] for h in touching)])
        end = max([end, *(h[0] + h[1] for h in touching)])
        self.holes = sorted([*apart, (start, end - start)])


def choose_hole(holes: Sequence[Hole], need: int, align: int) -> int | None:
    """Return the index of the smallest hole that holds an aligned request, None if none does."""
    fits = [
        (size, number)
        for number, (start, size) in enumerate(holes)
        if round_up(start, align) + need <= start + size
    ]
    return min(fits)[1] if fits else None
