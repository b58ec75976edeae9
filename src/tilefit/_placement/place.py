"""Placement: what a kernel needs of each on-chip memory, as the launch will count it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tilefit._devices.names import Device
from tilefit._kernel.kernel import Kernel, MemoryUse
from tilefit._kernel.memory import STAGING, Evidence, Memory, Owner, weakest
from tilefit._placement.open_buffers import readings

_ORDER = {memory: rank for rank, memory in enumerate(Memory)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What one owner needs of one memory when the kernel is launched.

    Attributes:
        memory: Which one.
        owner: Who shares it.
        dynamic_bytes: The part sized at launch; None if symbolic.
        static_bytes: The part fixed at compile time, rounded as the launch counts it.
        static_raw_bytes: The same before rounding.
        total_bytes: Their sum; None if symbolic.
        least_bytes: The fewest that it can come to where buffers may share bytes; None where the
            total is what it takes.
        columns: Where the memory is counted in columns: their number after rounding.
        evidence: The weakest of the parts.
    """

    memory: Memory
    owner: Owner
    dynamic_bytes: int | None
    static_bytes: int
    static_raw_bytes: int
    total_bytes: int | None
    least_bytes: int | None = None
    columns: int | None = None
    evidence: Evidence = Evidence.COMPILED


def place(kernel: Kernel) -> tuple[MemoryPlan, ...]:
    """Return what a kernel needs of each memory that it uses.

    Static bytes are rounded up to the alignment of the dynamic part as soon as there is one:
    ptxas lays the dynamic array behind them. A buffer that may be in either of two memories
    counts in both.
    """
    found = {use.memory: use for use in kernel.memories}
    for reading in readings(kernel):
        use = reading.kernel.use(reading.memory)
        if use is not None:
            found[use.memory] = use
    return tuple(_planned(found[m], kernel) for m in sorted(found, key=_ORDER.__getitem__))


def owned(plans: Iterable[MemoryPlan], device: Device) -> tuple[MemoryPlan, ...]:
    """Return the plans with the owner that a device has: older Ascends have one kind of core."""
    return tuple(
        replace(plan, owner=device.pool(plan.memory).owner) if device.has(plan.memory) else plan
        for plan in plans
    )


def _planned(use: MemoryUse, kernel: Kernel) -> MemoryPlan:
    static, evidence = use.padded_static_bytes, use.evidence
    if use.memory in STAGING and kernel.assembled is not None:
        static = kernel.assembled.static_bytes
    elif use.static_bytes:
        # the static layout is our rule over compiled items
        evidence = weakest([evidence, Evidence.MODELLED])
    return MemoryPlan(
        memory=use.memory,
        owner=use.owner,
        dynamic_bytes=use.dynamic_bytes,
        static_bytes=static,
        static_raw_bytes=use.static_bytes,
        total_bytes=None if use.dynamic_bytes is None else use.dynamic_bytes + static,
        least_bytes=use.least_bytes,
        columns=use.columns,
        evidence=evidence,
    )
