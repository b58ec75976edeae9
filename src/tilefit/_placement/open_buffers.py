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

from tilefit._frontends.ascend import OWNERS, declared_bytes
from tilefit._kernel.kernel import Buffer, Kernel, MemoryUse, StageRule
from tilefit._kernel.memory import Evidence, Memory
from tilefit._kernel.reasons import Why

READ_AS = {memory: OWNERS[memory] for memory in (Memory.UB, Memory.L1)}
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
        kernel: The kernel so read; its memories have the sums.
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
    uses = tuple(_uses(kernel.memories, buffers))
    cores = kernel.cores or ("vector" if memory is Memory.UB else "cube")
    return replace(kernel, buffers=buffers, memories=uses, cores=cores)


def _uses(before: Sequence[MemoryUse], buffers: Sequence[Buffer]) -> Iterable[MemoryUse]:
    """Yield the uses, those of UB and L1 summed again."""
    may_share = _may_share(before)
    for memory, owner in READ_AS.items():
        mine = [b for b in buffers if b.memory is memory]
        if mine:
            most, least = declared_bytes(mine, may_share=may_share)
            yield MemoryUse(
                memory=memory,
                owner=owner,
                dynamic_bytes=most,
                least_bytes=least,
                evidence=Evidence.DECLARED,
            )
    yield from (use for use in before if use.memory not in READ_AS)


def _may_share(uses: Iterable[MemoryUse]) -> bool:
    return any(use.memory in READ_AS and use.least_bytes is not None for use in uses)


def _sum(buffers: Iterable[Buffer]) -> int | None:
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
    if _may_share(kernel.memories):  # each one alone has to fit somewhere, more is not known
        least = {use.memory: use.least_bytes or 0 for use in kernel.memories}
        over = any(least.get(m, 0) > limits.get(m, 0) for m in READ_AS)
        over = over or max(known) > max(limits.get(m, 0) for m in READ_AS)
        return Outlook.NEVER if over else Outlook.DEPENDS
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
        for a in kernel.memories
        if a.memory in READ_AS
    )


def _part(reading: Reading, limits: Mapping[Memory, int]) -> str:
    mine = [a for a in reading.kernel.memories if a.memory in READ_AS]
    over = [a for a in mine if (a.total_bytes or 0) > limits.get(a.memory, 0)]
    shown = over or [a for a in mine if a.memory is reading.memory]
    sizes = ", ".join(
        f"{_title(a.memory)} {'?' if a.total_bytes is None else f'{a.total_bytes:,}'} of "
        f"{limits.get(a.memory, 0):,} B"
        for a in shown
    )
    fits = "does not fit" if over else "fits" if _fits(reading.kernel, limits) else "is not known"
    shared = [a.least_bytes is not None and a.least_bytes <= limits.get(a.memory, 0) for a in over]
    if over and all(shared):
        fits = "fits only if tiles share bytes"
    return f"as {_title(reading.memory)} {fits} ({sizes})"


def _title(memory: Memory) -> str:
    return memory.upper()


# ---- versions --------------------------------------------------------------------------------


def with_versions_that_fit(kernel: Kernel, limits: Mapping[Memory, int]) -> Kernel:
    """Return an estimated kernel with one version of each tile where all asked for do not fit.

    TileLang's Ascend scheduler treats ``num_stages`` as the most versions that it may keep of a
    tile and takes as many as fit, so that the declared sum is an upper end, and one version of
    each tile the lower. Other compilers are not known to do that.

    Args:
        kernel: A kernel; one that a compiler made, or that another would make, is returned as
            it is.
        limits: What each memory offers it, in bytes.
    """
    if kernel.stage_rule is not StageRule.AT_MOST:
        return kernel
    over = [
        a.memory
        for a in kernel.memories
        if a.total_bytes is not None and a.total_bytes > limits.get(a.memory, a.total_bytes)
    ]
    if not any(_may_have_fewer(b) for b in kernel.buffers if b.memory in over):
        return kernel
    buffers = tuple(
        _in_one_version(b) if b.memory in over and _may_have_fewer(b) else b for b in kernel.buffers
    )
    uses = tuple(
        replace(a, dynamic_bytes=_sum([b for b in buffers if b.memory is a.memory]))
        if a.memory in over
        else a
        for a in kernel.memories
    )
    fewer = replace(kernel, buffers=buffers, memories=uses)
    lines = (_fewer_line(fewer, memory, limits[memory]) for memory in over)
    return replace(fewer, notes=(*kernel.notes, *filter(None, lines)))


def _may_have_fewer(buffer: Buffer) -> bool:
    return (
        buffer.stages is not None
        and buffer.why is Why.PIPELINE
        and (buffer.copies or 0) > 1
        and buffer.bytes is not None
    )


def _in_one_version(buffer: Buffer) -> Buffer:
    assert buffer.bytes is not None
    assert buffer.copies
    return replace(
        buffer,
        copies=1,
        bytes=buffer.bytes // buffer.copies,
        why=Why.FEWEST_VERSIONS,
        detail="one version",
    )


def asked_bytes(kernel: Kernel, memory: Memory) -> int | None:
    """Return the bytes of a memory with every version that ``num_stages`` asks for.

    Returns:
        None if `with_versions_that_fit` took none away.
    """
    mine = [b for b in kernel.buffers if b.memory is memory]
    if not any(b.why is Why.FEWEST_VERSIONS for b in mine):
        return None
    fewest = Why.FEWEST_VERSIONS
    return sum((b.bytes or 0) * ((b.stages or 1) if b.why is fewest else 1) for b in mine)


def _fewer_line(kernel: Kernel, memory: Memory, limit: int) -> str | None:
    asked, least = (
        asked_bytes(kernel, memory),
        _sum(b for b in kernel.buffers if b.memory is memory),
    )
    if asked is None or least is None:
        return None
    return (
        f"{memory}: counted with one version of each tile, {least:,} B; all that num_stages asks "
        f"for are {asked:,} B, limit {limit:,} B, and the scheduler takes as many as fit"
    )


def scheduled_as_one(kernel: Kernel, memory: Memory) -> bool:
    """Say whether one pipelined loop has every buffer of a memory, so that none is overlooked.

    The scheduler adds up the tiles of one loop at a time: what lies outside of it, or what an
    inner loop multiplies, is not in its sum.
    """
    names = {b.name for b in kernel.buffers if b.memory is memory}
    touching = [loop for loop in kernel.loops if loop.num_stages and names & {*loop.buffers}]
    return len(touching) == 1 and names <= {*touching[0].buffers}
