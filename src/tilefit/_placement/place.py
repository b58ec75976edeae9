"""Placement: what a kernel needs of each on-chip memory, as the launch will count it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tilefit._devices.names import Device
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import TMEM_COLUMN_BYTES, Evidence, Memory, Owner, weakest
from tilefit._kernel.units import round_up
from tilefit._placement.open_buffers import readings

ASCEND_OWNERS = {
    Memory.UB: Owner.AIV,
    Memory.L1: Owner.AIC,
    Memory.L0A: Owner.AIC,
    Memory.L0B: Owner.AIC,
    Memory.L0C: Owner.AIC,
}
"""The memories of Ascend's tiles, and the core that has one of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What one block needs of one memory.

    Attributes:
        memory: Which one.
        owner: Who shares it.
        dynamic_bytes: The part sized at launch; None if symbolic.
        static_bytes: The part fixed at compile time, rounded as the launch counts it.
        static_raw_bytes: The same before rounding.
        total_bytes: Their sum; None if symbolic.
        columns: For tensor memory: columns after rounding.
        evidence: The weakest of the parts.
    """

    memory: Memory
    owner: Owner
    dynamic_bytes: int | None
    static_bytes: int
    static_raw_bytes: int
    total_bytes: int | None
    columns: int | None = None
    evidence: Evidence = Evidence.COMPILED


def place(kernel: Kernel) -> tuple[MemoryUse, ...]:
    """Return what a kernel needs of each memory, shared memory first, or UB before L1 and L0.

    Static shared memory is rounded up to the alignment of the module's dynamic array as soon
    as there is one: ptxas lays the dynamic array behind it.
    """
    if on_ascend(kernel):
        return tuple(_arenas(kernel))
    uses = [_shared(kernel)]
    if any(b.memory is Memory.TENSOR for b in kernel.buffers):
        uses.append(_tensor(kernel))
    return tuple(uses)


def on_ascend(kernel: Kernel) -> bool:
    """Say whether a kernel was read for Ascend: it has no shared memory then."""
    return kernel.target.startswith("ascend") or bool(kernel.arenas)


def owned(uses: Iterable[MemoryUse], device: Device) -> tuple[MemoryUse, ...]:
    """Return the uses with the owner that a device has: older Ascends have one kind of core."""
    return tuple(
        replace(use, owner=device.pool(use.memory).owner)
        if use.memory in ASCEND_OWNERS and device.has(use.memory)
        else use
        for use in uses
    )


def _arenas(kernel: Kernel) -> Iterable[MemoryUse]:
    """Yield the memories that the compiler laid out; without it, the sums of what is declared."""
    if kernel.arenas:
        found = {a.memory: (a.owner, a.total_bytes, a.evidence) for a in kernel.arenas}
    else:
        found = {
            memory: (owner, *_declared(used))
            for memory, owner in ASCEND_OWNERS.items()
            if (used := [b for b in kernel.buffers if b.memory is memory])
        }
        if kernel.dynamic_bytes is None:  # an allocation was not read: every sum lacks something
            found = {memory: (owner, None, why) for memory, (owner, _, why) in found.items()}
    for reading in readings(kernel):  # a buffer that may be in either counts in both
        for arena in reading.kernel.arenas:
            if arena.memory is reading.memory:
                found[arena.memory] = (arena.owner, arena.total_bytes, arena.evidence)
    for memory in ASCEND_OWNERS:
        if memory in found:
            owner, total, evidence = found[memory]
            yield MemoryUse(
                memory=memory,
                owner=owner,
                dynamic_bytes=total,
                static_bytes=0,
                static_raw_bytes=0,
                total_bytes=total,
                evidence=evidence,
            )


def _declared(buffers: list[Buffer]) -> tuple[int | None, Evidence]:
    sizes = [b.bytes for b in buffers]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    return total, weakest(b.evidence for b in buffers)


def _shared(kernel: Kernel) -> MemoryUse:
    static = kernel.static_bytes
    if static and kernel.dynamic_align_bytes:
        static = round_up(static, kernel.dynamic_align_bytes)
    # the static layout is our rule over compiled items; without static items nothing is
    evidence = Evidence.MODELLED if kernel.static_bytes else Evidence.COMPILED
    if kernel.toolchain == "source":
        evidence = Evidence.DECLARED
    elif kernel.assembled_static_bytes is not None:
        static, evidence = kernel.assembled_static_bytes, Evidence.COMPILED
    parts = [b.evidence for b in kernel.buffers if b.memory is kernel.staging]
    dynamic = kernel.dynamic_bytes
    return MemoryUse(
        memory=kernel.staging,
        owner=Owner.BLOCK,
        dynamic_bytes=dynamic,
        static_bytes=static,
        static_raw_bytes=kernel.static_bytes,
        total_bytes=None if dynamic is None else dynamic + static,
        evidence=weakest([evidence, *parts]),
    )


def _tensor(kernel: Kernel) -> MemoryUse:
    buffers = [b for b in kernel.buffers if b.memory is Memory.TENSOR]
    sizes = [b.bytes for b in buffers if b.bytes is not None]
    total = sum(sizes) if len(sizes) == len(buffers) else None
    return MemoryUse(
        memory=Memory.TENSOR,
        owner=Owner.BLOCK,
        dynamic_bytes=total,
        static_bytes=0,
        static_raw_bytes=0,
        total_bytes=total,
        columns=None if total is None else total // TMEM_COLUMN_BYTES,
        evidence=weakest(b.evidence for b in buffers),
    )
