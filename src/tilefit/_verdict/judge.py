"""The verdict: per memory and per launch limit, then for the kernel the worst of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilefit._devices.names import Device
from tilefit._kernel.kernel import CannotAssemble, Kernel
from tilefit._kernel.memory import STAGING, Memory
from tilefit._placement.place import MemoryPlan
from tilefit._verdict.ascend import arena_check
from tilefit._verdict.check import (
    UNREAD,
    Check,
    LaunchLimit,
    Policy,
    Status,
    fullest,
    unknown,
    why_open,
    worst,
)
from tilefit._verdict.launch import LAUNCH_CHECKS, no_launch_checks
from tilefit._verdict.matrix import matrix_checks

__all__ = ["Check", "Policy", "Status", "Verdict", "fullest", "judge", "worst"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome for one kernel on one device.

    Attributes:
        status: The worst of all checks.
        reason: Why, in one line; None if it simply fits. Where sizes are open until run time: how
            far they may go.
        memories: One check per memory, in the order of the plan.
        limits: One check per launch limit.
    """

    status: Status
    reason: str | None
    memories: tuple[Check, ...]
    limits: tuple[Check, ...]

    @property
    def silent_overflow(self) -> bool:
        """Whether the compiler accepted more bytes of a memory than the chip has."""
        return any(check.silent for check in self.memories)


def judge(
    kernel: Kernel, plans: Sequence[MemoryPlan], device: Device, policy: Policy | None = None
) -> Verdict:
    """Hold a placed kernel against a device.

    What no check covers is never a fit: a memory that the device lacks or that has no check, a
    buffer without a total of its memory, a vendor without launch limits, bytes that nobody read.
    """
    policy = policy or Policy()
    memories = tuple(_memory(kernel, plan, device, policy) for plan in plans)
    vanished = _vanished(kernel)
    launch = LAUNCH_CHECKS.get(device.vendor, (no_launch_checks,))
    limits = (
        *_unplaced(kernel, plans, device),
        *_unread(kernel, memories),
        *_build(kernel),
        *matrix_checks(kernel),
        *(found for check in launch for found in check(kernel, device, policy)),
    )
    if vanished:
        # the bytes are those of a kernel without its buffers: they prove nothing that fits
        memories = tuple(
            replace(c, status=Status.UNKNOWN, reason=vanished) if c.status is Status.FITS else c
            for c in memories
        )
        if not memories:
            limits = (unknown(LaunchLimit.VANISHED, vanished), *limits)
    checks = [*memories, *limits]
    status = worst(c.status for c in checks)
    reason = next((c.reason for c in checks if c.status is status and c.reason), None)
    if status is Status.FITS:
        holding = [c.reason for c in limits if c.holds is not None and c.reason]
        reason = "; ".join(["memory fits", *holding]) if holding else reason
    return Verdict(status=status, reason=reason, memories=memories, limits=limits)


# ---- memories --------------------------------------------------------------------------------


def _memory(kernel: Kernel, plan: MemoryPlan, device: Device, policy: Policy) -> Check:
    if not device.has(plan.memory):
        return _lacking(plan.memory, plan.total_bytes, device)
    check = _MEMORY_CHECKS.get(plan.memory)
    if check is None:
        return Check(
            name=plan.memory,
            value=plan.total_bytes,
            limit=None,
            status=Status.UNKNOWN,
            reason=f"no check is known for {plan.memory} memory",
        )
    return check(kernel, plan, device, policy)


def _lacking(memory: Memory, value: int | None, device: Device) -> Check:
    return Check(
        name=memory,
        value=value,
        limit=0,
        status=Status.DOES_NOT_FIT,
        reason=f"{device.name} has no {memory} memory",
    )


def _block_check(kernel: Kernel, plan: MemoryPlan, device: Device, policy: Policy) -> Check:
    """Hold the bytes of one block against what a block may have."""
    pool = device.pool(plan.memory)
    limit = pool.per_block_bytes
    limit -= policy.headroom_bytes if plan.memory in STAGING else 0
    total = plan.total_bytes
    if total is None:
        mine = [b for b in kernel.buffers if b.memory in (plan.memory, Memory.UNDECIDED)]
        reason = why_open(kernel, plan.memory, mine)
        reason = reason or f"{plan.memory} bytes depend on a size that is not set: --set NAME=VALUE"
        return Check(
            name=plan.memory, value=None, limit=limit, status=Status.UNKNOWN, reason=reason
        )
    over = f"{plan.memory} {total:,} B, limit {limit:,} B: over by {total - limit:,} B"
    return Check(
        name=plan.memory,
        value=total,
        limit=limit,
        status=Status.FITS if total <= limit else Status.DOES_NOT_FIT,
        reason=None if total <= limit else over,
        limit_columns=pool.columns,
    )


def _unplaced(kernel: Kernel, plans: Sequence[MemoryPlan], device: Device) -> Iterable[Check]:
    """Yield a check for each memory that holds a buffer and of which no total is known."""
    placed = {plan.memory for plan in plans}
    used = dict.fromkeys(b.memory for b in kernel.buffers if b.copies != 0)
    for memory in used:
        if memory in placed or memory in _NO_TOTAL:
            continue
        if not device.has(memory):
            yield _lacking(memory, None, device)
            continue
        names = ", ".join(b.name for b in kernel.buffers if b.memory is memory)
        yield unknown(
            memory, f"{names} in {memory}: {kernel.toolchain} gives no total of that memory"
        )


def _unread(kernel: Kernel, memories: Sequence[Check]) -> Iterable[Check]:
    """Yield a check if bytes are missing and no memory says so: all of them would fit."""
    if not kernel.complete and all(check.value is not None for check in memories):
        yield unknown(LaunchLimit.UNREAD, next(iter(kernel.unread), UNREAD))


def _build(kernel: Kernel) -> Iterable[Check]:
    """Yield a check if there is no machine code: what cannot be built does not run."""
    made = kernel.assembly
    if isinstance(made, CannotAssemble) and not made.for_want_of_tools:
        yield Check(
            name=LaunchLimit.BUILD,
            value=None,
            limit=None,
            status=Status.CANNOT_BUILD,
            reason=made.reason,
        )


def _vanished(kernel: Kernel) -> str | None:
    """Name the loop without iterations whose buffers lowering removed.

    An empty loop alone proves nothing: a loop over the rest of an even division is empty too.
    """
    removed = {buffer.name for buffer in kernel.buffers if buffer.copies == 0 or buffer.bytes == 0}
    for loop in kernel.loops:
        gone = [name for name in loop.buffers if name in removed]
        if isinstance(loop.extent, int) and loop.extent <= 0 and gone:
            verb = "vanishes" if len(gone) == 1 else "vanish"
            return (
                f"the loop over {loop.variable} has no iterations at these sizes, so "
                f"{', '.join(gone)} {verb}; give sizes that run it with --set"
            )
    return None


# ---- what is checked -------------------------------------------------------------------------

_NO_TOTAL = (Memory.REGISTERS, Memory.GLOBAL, Memory.NONE, Memory.UNDECIDED)
"""Not on the chip, or counted otherwise: registers by the thread, what is undecided by name."""

MemoryCheck = Callable[[Kernel, MemoryPlan, Device, Policy], Check]
_MEMORY_CHECKS: Mapping[Memory, MemoryCheck] = {
    **dict.fromkeys((Memory.SHARED, Memory.LDS, Memory.TENSOR), _block_check),
    **dict.fromkeys((Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C), arena_check),
}
"""How the bytes of a memory are held against its limit."""
