"""What a kernel may use of an Ascend memory, by the device's conditions, and what overruns it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilefit._devices.names import Condition, Device
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import Evidence, Memory
from tilefit._placement.open_buffers import (
    READ_AS,
    Outlook,
    asked_bytes,
    open_buffers,
    outlook,
    scheduled_as_one,
    with_versions_that_fit,
    words,
)
from tilefit._placement.place import MemoryPlan
from tilefit._verdict.check import (
    GRID,
    UNREAD,
    Check,
    LaunchLimit,
    Policy,
    Status,
    no_blocks,
    why_open,
)

_NAMED = 3  # buffers that a sentence names
_NEVER_SEEN = ("api-scratch",)  # conditions that no toolchain here reports

_NAME_IT = "allocate with a function that names it"
_OUTLOOKS = {Outlook.FITS: Status.FITS, Outlook.NEVER: Status.DOES_NOT_FIT}

ACCEPTED = "the compiler accepts this; the chip has no such bytes"
"""What is said of a memory that the compiler filled beyond its end."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What one memory offers a kernel.

    Attributes:
        bytes: The limit that is known to apply.
        why: The condition that makes it so, in words; None for the plain limit.
        physical_bytes: What the chip has of the memory, with what is kept from kernels.
        perhaps: A condition that would make it less, where nothing says whether it holds.
    """

    bytes: int
    physical_bytes: int
    why: str | None = None
    perhaps: Condition | None = None


def limit_of(kernel: Kernel, memory: Memory, device: Device) -> Limit:
    """Return the limit of a memory that the device has, for this kernel."""
    pool = device.pool(memory)
    plain = pool.per_block_bytes
    mine = [c for c in device.conditions if c.memory == memory]
    holding = [c for c in mine if c.code in kernel.conditions]
    strictest = min(holding, key=lambda c: c.per_block_bytes, default=None)
    least = plain if strictest is None else strictest.per_block_bytes
    perhaps = next(
        (
            c
            for c in mine
            if c.code in _NEVER_SEEN and c not in holding and c.per_block_bytes < least
        ),
        None,
    )
    why = None if strictest is None else strictest.when
    return Limit(least, pool.physical_bytes, why, perhaps)


def as_scheduled(kernel: Kernel, device: Device) -> Kernel:
    """Return a kernel with the versions that an estimate may count on a device."""
    here = [use.memory for use in kernel.memories if device.has(use.memory)]
    limits = {memory: limit_of(kernel, memory, device).bytes for memory in here}
    return with_versions_that_fit(kernel, limits)


def arena_check(kernel: Kernel, use: MemoryPlan, device: Device, policy: Policy) -> Check:
    """Hold one memory of Ascend against the limit that applies, and say why it does."""
    limit = limit_of(kernel, use.memory, device)
    allowed = limit.bytes - (policy.headroom_bytes if use.memory is Memory.UB else 0)
    perhaps = limit.perhaps
    why = [limit.why] if limit.why else []
    if not why and limit.physical_bytes > limit.bytes:
        why.append(f"{limit.bytes:,} B usable of {limit.physical_bytes:,} B on the chip")
    if perhaps is not None:
        why.append(f"{perhaps.per_block_bytes:,} B if {perhaps.when}")
    check = Check(
        name=use.memory,
        value=use.total_bytes,
        limit=allowed,
        status=Status.FITS,
        limit_reason="; ".join(why) or None,
        silent=accepted(use, limit.bytes),
    )
    if use.total_bytes is None:
        return replace(check, status=Status.UNKNOWN, reason=_why_open(kernel, use.memory))
    asked = asked_bytes(kernel, use.memory)
    needed = f"{use.memory} {use.total_bytes:,} B"
    needed += " with one version of each tile" if asked is not None else ""
    if use.total_bytes > allowed and use.memory in READ_AS and open_buffers(kernel):
        found = next(c for c in _open(kernel, device, policy) if c.name is LaunchLimit.UB_OR_L1)
        status = Status.UNKNOWN if found.status is Status.FITS else found.status
        return replace(check, status=status, reason=found.reason)
    least = use.total_bytes if use.least_bytes is None else use.least_bytes
    if least <= allowed < use.total_bytes:
        reason = (
            f"{use.memory} takes {least:,} to {use.total_bytes:,} B, limit {allowed:,} B: tiles "
            "that are not needed at once may share bytes, and only the compiler says which do; "
            "T.annotate_address fixes them"
        )
        return replace(check, status=Status.UNKNOWN, reason=reason)
    if use.total_bytes > allowed:
        words = f" ({limit.why})" if limit.why else ""
        over = f"{needed}, limit {allowed:,} B{words}: over by {use.total_bytes - allowed:,} B"
        blame = blamed(kernel, use.memory, allowed)
        parts = [over, ACCEPTED if check.silent else "", blame or ""]
        return replace(
            check, status=Status.DOES_NOT_FIT, reason="; ".join(part for part in parts if part)
        )
    if perhaps is not None and use.total_bytes > allowed - limit.bytes + perhaps.per_block_bytes:
        reason = (
            f"{needed} fits {allowed:,} B, but only {perhaps.per_block_bytes:,} B are there if "
            f"{perhaps.when}: the source does not say"
        )
        return replace(check, status=Status.UNKNOWN, reason=reason)
    if asked is not None and (allowed < limit.bytes or not scheduled_as_one(kernel, use.memory)):
        reason = (
            f"{needed} fits {allowed:,} B, {asked:,} B with all that num_stages asks for does "
            "not: the source alone does not say how many of them the compiler keeps"
        )
        return replace(check, status=Status.UNKNOWN, reason=reason)
    return check


def _why_open(kernel: Kernel, memory: Memory) -> str:
    """Say why the bytes of a memory are not known."""
    shared = open_buffers(kernel) if memory in READ_AS else ()
    others = [b for b in kernel.buffers if b.memory is Memory.UNDECIDED and b not in shared]
    mine = [b for b in kernel.buffers if b.memory is memory]
    reason = why_open(kernel, memory, (*mine, *shared))
    if reason is not None:
        return reason
    compiled = any(use.evidence is Evidence.COMPILED for use in kernel.memories)
    if compiled or any(b.bytes is None for b in (*mine, *shared)):
        return f"{memory} bytes depend on a size that is not set: --set NAME=VALUE"
    if others:
        verb = "is" if len(others) == 1 else "are"
        names = ", ".join(b.name for b in others)
        return f"{memory} bytes depend on where {names} {verb}: {_NAME_IT}"
    return f"{memory} bytes are not known: {UNREAD}"


def ascend_checks(kernel: Kernel, device: Device, policy: Policy) -> Iterable[Check]:
    """Yield what can be wrong with a kernel on Ascend beside the bytes of one memory.

    Blocks run in rounds, and threads exist in SIMT parts only: neither has a known limit.
    """
    for axis, blocks in zip(GRID, kernel.launch.grid or (), strict=False):
        if isinstance(blocks, int) and blocks <= 0:
            yield no_blocks(axis, blocks, None)
    yield from _overlaps(kernel)
    yield from _open(kernel, device, policy)


def _overlaps(kernel: Kernel) -> Iterable[Check]:
    """Two live things at one address: there are bytes enough, and one overwrites the other."""
    for line in kernel.overlaps:
        yield Check(
            name=LaunchLimit.OVERLAP,
            value=None,
            limit=None,
            status=Status.DOES_NOT_FIT,
            reason=f"two live things share bytes, and the compiler accepts this: {line}",
        )


def _open(kernel: Kernel, device: Device, policy: Policy) -> Iterable[Check]:
    """Check what the source alone does not place: it may be in any of several memories."""
    shared = open_buffers(kernel)
    others = [b.name for b in kernel.buffers if b.memory is Memory.UNDECIDED and b not in shared]
    if others:
        yield Check(
            name=LaunchLimit.UNDECIDED,
            value=None,
            limit=None,
            status=Status.UNKNOWN,
            reason=f"the source alone does not say which memory holds {', '.join(others)}: "
            f"{_NAME_IT}",
        )
    if shared:
        limits = {m: limit_of(kernel, m, device).bytes for m in READ_AS if device.has(m)}
        if Memory.UB in limits:
            limits[Memory.UB] -= policy.headroom_bytes
        yield Check(
            name=LaunchLimit.UB_OR_L1,
            value=None,
            limit=None,
            status=_OUTLOOKS.get(outlook(kernel, limits), Status.UNKNOWN),
            reason=words(kernel, limits),
        )


def accepted(use: MemoryPlan, limit_bytes: int) -> bool:
    """Say whether the compiler took more of a memory than there is, without a word."""
    return (
        use.evidence is Evidence.COMPILED
        and use.total_bytes is not None
        and use.total_bytes > limit_bytes
    )


def blamed(kernel: Kernel, memory: Memory, limit_bytes: int) -> str | None:
    """Say which buffers of a memory lie past its end, and which is the largest."""
    mine = [b for b in kernel.buffers if b.memory is memory and b.bytes]
    if not mine:
        return None
    largest = max(mine, key=lambda b: b.bytes or 0)
    if (largest.bytes or 0) > limit_bytes:
        return f"{largest.name} alone takes {_size(largest)}"
    past = [b for b in mine if b.offset is not None and b.offset + (b.bytes or 0) > limit_bytes]
    past.sort(key=lambda b: b.offset or 0)
    words = [] if not past else [f"past the end: {_names(past)}"]
    if all((b.bytes or 0) < (largest.bytes or 0) for b in past):
        words.append(f"the largest: {largest.name}, {_size(largest)}")
    return "; ".join(words)


def _names(buffers: Sequence[Buffer]) -> str:
    named = [
        f"{b.name} ({'added by the compiler, ' if b.origin == 'compiler' else ''}{_size(b)} "
        f"at {b.offset:,})"
        for b in buffers[:_NAMED]
    ]
    more = len(buffers) - _NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _size(buffer: Buffer) -> str:
    versions = f" in {buffer.copies} versions" if (buffer.copies or 1) > 1 else ""
    return f"{buffer.bytes:,} B{versions}"
