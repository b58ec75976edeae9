"""Buffers that the source leaves in UB or in L1: every reading of them, never a guess.

The adapter tilelang-ascend decides by use, while it compiles, where a ``T.alloc_shared`` goes. Its
source alone says that each such buffer is in UB or in L1. A kernel fits either way if it fits with
all of them in UB and with all of them in L1: any mixture takes less of both. It fits no way if no
mixture fits. Otherwise the answer depends on the compiler, and both readings are said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tilefit._kernel import Arena, Buffer, Kernel
from tilefit._memory import Evidence, Memory, Owner

READ_AS = {Memory.UB: Owner.AIV, Memory.L1: Owner.AIC}
"""Where such a buffer can be, and which core has it."""


class Outlook(StrEnum):
    """What all readings together say of UB and L1."""

    FITS = "fits either way"
    NEVER = "does not fit either way"
    DEPENDS = "depends"
    UNKNOWN = "unknown"  # a size is open


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A kernel with every open buffer in one memory.

    Attributes:
        memory: That memory.
        kernel: The kernel so read; its arenas have the sums.
    """

    memory: Memory
    kernel: Kernel


def open_buffers(kernel: Kernel) -> tuple[Buffer, ...]:
    """Return the buffers of a kernel that are in UB or in L1, the source does not say which."""
    return tuple(
        b for b in kernel.buffers if b.memory is Memory.UNDECIDED and b.scope.startswith("shared")
    )


def readings(kernel: Kernel) -> tuple[Reading, ...]:
    """Return a kernel read with all its open buffers in UB, then with all of them in L1.

    Returns:
        Nothing if it has no open buffer.
    """
    if not open_buffers(kernel):
        return ()
    return tuple(Reading(memory=memory, kernel=_read_as(kernel, memory)) for memory in READ_AS)


def _read_as(kernel: Kernel, memory: Memory) -> Kernel:
    mine = open_buffers(kernel)
    buffers = tuple(
        replace(b, memory=memory, owner=READ_AS[memory]) if b in mine else b for b in kernel.buffers
    )
    arenas = tuple(_arenas(kernel.arenas, buffers))
    ub = next((a.total_bytes for a in arenas if a.memory is Memory.UB), 0)
    cores = kernel.cores or ("vector" if memory is Memory.UB else "cube")
    return replace(kernel, buffers=buffers, arenas=arenas, dynamic_bytes=ub, cores=cores)


def _arenas(before: Sequence[Arena], buffers: Sequence[Buffer]) -> Iterable[Arena]:
    """Yield the arenas, those of UB and L1 summed again."""
    for memory, owner in READ_AS.items():
        mine = [b for b in buffers if b.memory is memory]
        if mine:
            yield Arena(
                memory=memory,
                owner=owner,
                total_bytes=_sum(mine),
                evidence=Evidence.DECLARED,
            )
    yield from (arena for arena in before if arena.memory not in READ_AS)


def _sum(buffers: Sequence[Buffer]) -> int | None:
    sizes = [b.bytes for b in buffers]
    return None if None in sizes else sum(size or 0 for size in sizes)


def outlook(kernel: Kernel, limits: Mapping[Memory, int]) -> Outlook:
    """Say what holds for UB and L1 however the open buffers are read.

    Args:
        kernel: A kernel with open buffers.
        limits: Bytes that UB and L1 offer it; a memory that the chip lacks offers none.

    Returns:
        `Outlook.UNKNOWN` if the size of a buffer in either is not known.
    """
    mine = open_buffers(kernel)
    firm = {m: _sum([b for b in kernel.buffers if b.memory is m]) for m in READ_AS}
    sizes = [b.bytes for b in mine]
    room = [limits.get(m, 0) - (firm[m] or 0) for m in READ_AS]
    if None in sizes or None in firm.values():
        return Outlook.UNKNOWN
    known = [size for size in sizes if size is not None]
    if min(room) >= sum(known):
        return Outlook.FITS
    return Outlook.DEPENDS if _some_mixture_fits(known, *room) else Outlook.NEVER


def _some_mixture_fits(sizes: Sequence[int], ub_room: int, l1_room: int) -> bool:
    """Return whether the sizes can be split over two rooms.

    Bit n of `reachable` says whether some of them add up to n bytes.
    """
    if min(ub_room, l1_room) < 0 or sum(sizes) > ub_room + l1_room:
        return False
    within = (1 << (ub_room + 1)) - 1
    reachable = 1
    for size in sizes:
        if size <= ub_room:
            reachable |= (reachable << size) & within
    least = max(0, sum(sizes) - l1_room)
    return reachable >> least != 0


def words(kernel: Kernel, limits: Mapping[Memory, int]) -> str:
    """Say in one line what is open and what each reading comes to.

    Args:
        kernel: A kernel with open buffers.
        limits: As for `outlook`.
    """
    names = ", ".join(b.name for b in open_buffers(kernel))
    parts = [_part(one, limits) for one in readings(kernel)]
    over = [one for one in readings(kernel) if not _fits(one.kernel, limits)]
    if len(over) == len(READ_AS) and outlook(kernel, limits) is Outlook.DEPENDS:
        parts.append("with some in each it can fit")
    return f"{names}: in UB or in L1, the source does not say: {'; '.join(parts)}"


def _fits(kernel: Kernel, limits: Mapping[Memory, int]) -> bool:
    return all(
        a.total_bytes is not None and a.total_bytes <= limits.get(a.memory, 0)
        for a in kernel.arenas
        if a.memory in READ_AS
    )


def _part(reading: Reading, limits: Mapping[Memory, int]) -> str:
    mine = [a for a in reading.kernel.arenas if a.memory in READ_AS]
    over = [a for a in mine if (a.total_bytes or 0) > limits.get(a.memory, 0)]
    shown = over or [a for a in mine if a.memory is reading.memory]
    sizes = ", ".join(
        f"{_title(a.memory)} {'?' if a.total_bytes is None else f'{a.total_bytes:,}'} of "
        f"{limits.get(a.memory, 0):,} B"
        for a in shown
    )
    fits = "does not fit" if over else "fits" if _fits(reading.kernel, limits) else "is not known"
    return f"as {_title(reading.memory)} {fits} ({sizes})"


def _title(memory: Memory) -> str:
    return memory.upper()
