"""Placement: what a kernel needs of each on-chip memory, as the launch will count it."""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._kernel import Kernel
from tilefit._memory import TMEM_COLUMN_BYTES, Evidence, Memory, Owner, weakest
from tilefit._units import round_up


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
    """Return what a kernel needs of each memory, shared memory first.

    Static shared memory is rounded up to the alignment of the module's dynamic array as soon
    as there is one: ptxas lays the dynamic array behind it.
    """
    uses = [_shared(kernel)]
    if any(b.memory is Memory.TENSOR for b in kernel.buffers):
        uses.append(_tensor(kernel))
    return tuple(uses)


def _shared(kernel: Kernel) -> MemoryUse:
    static = kernel.static_bytes
    if static and kernel.dynamic_align_bytes:
        static = round_up(static, kernel.dynamic_align_bytes)
    # the static layout is our rule over compiled items; without static items nothing is
    evidence = Evidence.MODELLED if kernel.static_bytes else Evidence.COMPILED
    if kernel.assembled_static_bytes is not None:
        static, evidence = kernel.assembled_static_bytes, Evidence.COMPILED
    dynamic = kernel.dynamic_bytes
    return MemoryUse(
        memory=kernel.staging,
        owner=Owner.BLOCK,
        dynamic_bytes=dynamic,
        static_bytes=static,
        static_raw_bytes=kernel.static_bytes,
        total_bytes=None if dynamic is None else dynamic + static,
        evidence=evidence,
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
