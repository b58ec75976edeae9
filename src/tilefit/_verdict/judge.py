"""The verdict: per memory and per launch limit, then for the kernel the worst of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilefit._devices.names import Device
from tilefit._kernel.kernel import CannotAssemble, Dim, Kernel
from tilefit._kernel.memory import STAGING, Memory
from tilefit._kernel.units import round_up
from tilefit._placement.place import MemoryPlan
from tilefit._verdict.ascend import arena_check, ascend_checks
from tilefit._verdict.check import (
    CLUSTER,
    GRID,
    UNREAD,
    Check,
    LaunchLimit,
    Policy,
    Status,
    fullest,
    no_blocks,
    why_open,
    worst,
)

__all__ = ["Check", "Policy", "Status", "Verdict", "fullest", "judge", "worst"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome for one kernel on one device.

    Attributes:
        status: The worst of all checks.
        reason: Why, in one line; None if it simply fits.
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
    launch = _LAUNCH_CHECKS.get(device.vendor, (_no_launch_checks,))
    limits = (
        *_unplaced(kernel, plans, device),
        *_unread(kernel, memories),
        *_build(kernel),
        *(found for check in launch for found in check(kernel, device, policy)),
    )
    if vanished:
        # the bytes are those of a kernel without its buffers: they prove nothing that fits
        memories = tuple(
            replace(c, status=Status.UNKNOWN, reason=vanished) if c.status is Status.FITS else c
            for c in memories
        )
        if not memories:
            limits = (_unknown(LaunchLimit.VANISHED, vanished), *limits)
    checks = [*memories, *limits]
    status = worst(c.status for c in checks)
    reason = next((c.reason for c in checks if c.status is status and c.reason), None)
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
        yield _unknown(
            memory, f"{names} in {memory}: {kernel.toolchain} gives no total of that memory"
        )


def _unread(kernel: Kernel, memories: Sequence[Check]) -> Iterable[Check]:
    """Yield a check if bytes are missing and no memory says so: all of them would fit."""
    if not kernel.complete and all(check.value is not None for check in memories):
        yield _unknown(LaunchLimit.UNREAD, next(iter(kernel.unread), UNREAD))


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


# ---- the launch ------------------------------------------------------------------------------


def _unknown(name: Memory | LaunchLimit, reason: str) -> Check:
    return Check(name=name, value=None, limit=None, status=Status.UNKNOWN, reason=reason)


def _no_launch_checks(_: Kernel, device: Device, __: Policy) -> Iterable[Check]:
    yield _unknown(LaunchLimit.LAUNCH, f"no launch limits are known for {device.vendor} chips")


def _undecided(kernel: Kernel, _: Device, __: Policy) -> Iterable[Check]:
    """A buffer of which the source does not say where it is may be in any memory."""
    names = ", ".join(b.name for b in kernel.buffers if b.memory is Memory.UNDECIDED)
    if names:
        reason = f"the source alone does not say which memory holds {names}"
        yield _unknown(LaunchLimit.UNDECIDED, reason)


def _threads(kernel: Kernel, device: Device, _: Policy) -> Iterable[Check]:
    if kernel.launch.threads is None and kernel.launch.grid is None:
        yield _not_asked(LaunchLimit.THREADS, device.max_threads_per_block)
        return
    most = _Limit.of(device, "max_threads_per_block")
    check = _at_most(LaunchLimit.THREADS, kernel.launch.threads, most)
    declared = kernel.launch.threads_declared
    if check.status is Status.DOES_NOT_FIT and declared and declared != kernel.launch.threads:
        added = (
            f" ({declared:,} written; the compiler added {kernel.launch.threads - declared:,})"
            if kernel.launch.threads
            else ""
        )
        check = replace(check, reason=f"{check.reason}{added}")
    yield check


def _not_asked(name: LaunchLimit, limit: int | None) -> Check:
    reason = f"{name} not asked: no launch was given"
    return Check(name=name, value=None, limit=limit, status=Status.NOT_ASKED, reason=reason)


def _grid(kernel: Kernel, device: Device, _: Policy) -> Iterable[Check]:
    if kernel.launch.grid is None:
        yield _not_asked(LaunchLimit.GRID, None)
        return
    limits = device.max_grid or (None, None, None)
    absent = "max_grid" in device.no_limit
    for axis, blocks, limit in zip(GRID, kernel.launch.grid, limits, strict=True):
        if isinstance(blocks, int) and blocks <= 0:
            yield no_blocks(axis, blocks, limit)
        else:
            yield _at_most(axis, blocks, _Limit(device, limit, absent))


def _cluster(kernel: Kernel, device: Device, _: Policy) -> Iterable[Check]:
    cluster = kernel.launch.cluster
    if cluster is None or all(d == 1 for d in cluster):
        return
    blocks = 1
    for extent in cluster:
        blocks *= extent
    portable = device.cluster_portable_max
    most = device.cluster_max if device.cluster_max is not None else portable
    if most is None and "cluster_portable_max" in device.no_limit:
        yield Check(
            name=LaunchLimit.CLUSTER,
            value=blocks,
            limit=1,
            status=Status.DOES_NOT_FIT,
            reason=f"cluster of {blocks} blocks: {device.name} ({device.arch}) has no clusters",
        )
        return
    if most is not None and blocks > most and device.cluster_max is None:
        reason = (
            f"cluster of {blocks} blocks: above the portable {most}; no larger size is published "
            f"for {device.name}"
        )
        yield Check(
            name=LaunchLimit.CLUSTER, value=blocks, limit=most, status=Status.UNKNOWN, reason=reason
        )
    elif most is not None and portable is not None and portable < blocks <= most:
        yield Check(
            name=LaunchLimit.CLUSTER,
            value=blocks,
            limit=most,
            status=Status.FITS,
            reason=f"above the portable {portable}: needs the non-portable attribute at launch",
        )
    else:
        yield _at_most(LaunchLimit.CLUSTER, blocks, _Limit(device, most))
    for axis, extent, grid in zip(CLUSTER, cluster, kernel.launch.grid or (), strict=False):
        if isinstance(grid, int) and grid % extent:
            yield Check(
                name=axis,
                value=grid,
                limit=extent,
                status=Status.DOES_NOT_FIT,
                reason=f"grid.{axis[-1]} {grid:,} is no multiple of the cluster's {extent}",
            )


def _static(kernel: Kernel, device: Device, _: Policy) -> Iterable[Check]:
    """Check the static part alone: only a dynamic one can opt in to more than the default.

    Where no limit of its own is published it is unknown: ptxas 13.0 accepts a larger one for
    sm_90a and later, and whether such a kernel launches was not tried by anyone we know of.
    """
    use = kernel.staged
    if use is None or not device.has(use.memory):
        return
    pool = device.pool(use.memory)
    most, static = pool.static_per_block_bytes, use.static_bytes
    safe = pool.default_per_block_bytes if most is None else most
    if safe is None or static <= safe or "static_per_block_bytes" in pool.no_limit:
        return
    over = f"static {static:,} B, more than {safe:,} B"
    yield Check(
        name=LaunchLimit.STATIC,
        value=static,
        limit=safe,
        status=Status.UNKNOWN if most is None else Status.DOES_NOT_FIT,
        reason=f"{over}: nobody published whether {device.name} launches that; make it dynamic"
        if most is None
        else f"{over}: ptxas refuses that for {kernel.target}; make it dynamic",
    )


def _registers(kernel: Kernel, device: Device, _: Policy) -> Iterable[Check]:
    """Check the registers of an assembled kernel: those of a block, and those of its roles."""
    threads, made = kernel.launch.threads, kernel.assembled
    if threads is None or made is None:
        return
    each = made.registers_per_thread
    if device.warp_size is None or device.register_granule is None:
        lacking = "warp_size" if device.warp_size is None else "register_granule"
        reason = f"no {lacking} is published for {device.name}"
        yield _unknown(LaunchLimit.REGISTERS, reason)
    else:
        warps = -(-threads // device.warp_size)
        needed = warps * round_up(each * device.warp_size, device.register_granule)
        limit = _Limit.of(device, "registers_per_block")
        if limit.absent:  # then a block may hold all that a core has
            limit = _Limit.of(device, "registers_per_core")
        yield _at_most(LaunchLimit.REGISTERS, needed, limit)
    wanted = sum(role.threads * (role.registers or 0) for role in kernel.roles)
    pool = each * threads
    if wanted > pool:
        yield Check(
            name=LaunchLimit.ROLES,
            value=wanted,
            limit=pool,
            status=Status.DOES_NOT_FIT,
            reason=f"the roles ask for {wanted:,} registers of {pool:,} at launch: "
            "setmaxnreg would wait for ever",
        )


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit of a device: a number, known not to be there (`absent`), or not published."""

    device: Device
    most: int | None
    absent: bool = False

    @classmethod
    def of(cls, device: Device, name: str) -> _Limit:
        return cls(device, getattr(device, name), name in device.no_limit)


def _at_most(name: LaunchLimit, value: Dim | None, held: _Limit) -> Check:
    limit = held.most
    if limit is None:
        words = f"{held.device.name} has no such limit" if held.absent else None
        return Check(
            name=name,
            value=value,
            limit=None,
            status=Status.FITS if held.absent else Status.UNKNOWN,
            reason=None if held.absent else f"no {name} limit is published for {held.device.name}",
            limit_reason=words,
        )
    if not isinstance(value, int):
        written = value not in (None, "?")
        return Check(
            name=name,
            value=value,
            limit=limit,
            status=Status.UNKNOWN,
            reason=f"{name} is {value}: give the sizes in it with --set NAME=VALUE"
            if written
            else f"{name} is not known",
        )
    if value <= limit:
        return Check(name=name, value=value, limit=limit, status=Status.FITS)
    return Check(
        name=name,
        value=value,
        limit=limit,
        status=Status.DOES_NOT_FIT,
        reason=f"{name} {value:,}, limit {limit:,}: over by {value - limit:,}",
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

LaunchCheck = Callable[[Kernel, Device, Policy], Iterable[Check]]
_LAUNCH_CHECKS: Mapping[str, tuple[LaunchCheck, ...]] = {
    "nvidia": (_threads, _grid, _cluster, _registers, _static, _undecided),
    "amd": (_threads, _grid, _cluster, _registers, _undecided),
    "ascend": (ascend_checks,),
}
"""What is checked of a launch on a vendor's chips."""
