"""What a launch needs of a chip beside memory: threads, grid, cluster, registers, static bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tilefit._devices.names import Device
from tilefit._kernel.extent import Holds, bounds, holds_while, names_in
from tilefit._kernel.kernel import Dim, Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import round_up
from tilefit._verdict.ascend import ascend_checks
from tilefit._verdict.check import (
    CLUSTER,
    GRID,
    Check,
    LaunchLimit,
    Policy,
    Status,
    no_blocks,
    unknown,
)


def no_launch_checks(_: Kernel, device: Device, __: Policy) -> Iterable[Check]:
    yield unknown(LaunchLimit.LAUNCH, f"no launch limits are known for {device.vendor} chips")


def _undecided(kernel: Kernel, _: Device, __: Policy) -> Iterable[Check]:
    """A buffer of which the source does not say where it is may be in any memory."""
    names = ", ".join(b.name for b in kernel.buffers if b.memory is Memory.UNDECIDED)
    if names:
        reason = f"the source alone does not say which memory holds {names}"
        yield unknown(LaunchLimit.UNDECIDED, reason)


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
            continue
        held = _Limit(device, limit, absent)
        yield _over_open_sizes(axis, blocks, held, kernel) or _at_most(axis, blocks, held)


def _over_open_sizes(axis: LaunchLimit, blocks: Dim, held: _Limit, kernel: Kernel) -> Check | None:
    """Check an extent that hangs on sizes open until run time; None if it does not."""
    sizes = {size.name: size for size in kernel.launch.sizes}
    found = bounds(blocks, sizes) if isinstance(blocks, str) else None
    if found is None or held.most is None:
        return None
    least, most = found
    check = Check(name=axis, value=blocks, limit=held.most, status=Status.FITS)
    if least > held.most:
        reason = f"{axis} is {blocks}, {least:,} at least, limit {held.most:,}"
        return replace(check, status=Status.DOES_NOT_FIT, reason=reason)
    if most <= held.most:
        return check
    holds = holds_while(str(blocks), held.most, sizes)
    reason = f"{axis} holds while {holds.expression} <= {holds.most:,}"
    return replace(check, reason=reason, holds=holds)


def _cluster(kernel: Kernel, device: Device, _: Policy) -> Iterable[Check]:
    cluster = kernel.launch.cluster
    if cluster is None or all(d == 1 for d in cluster):
        return
    blocks = 1
    for extent in cluster:
        blocks *= extent
    portable = device.cluster_portable_max
    largest = device.largest_cluster
    most = portable if largest is None else largest
    if most is None and "cluster_portable_max" in device.no_limit:
        yield Check(
            name=LaunchLimit.CLUSTER,
            value=blocks,
            limit=1,
            status=Status.DOES_NOT_FIT,
            reason=f"cluster of {blocks} blocks: {device.name} ({device.arch}) has no clusters",
        )
        return
    if most is not None and blocks > most and largest is None:
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
        elif extent > 1 and isinstance(grid, str) and names_in(grid):
            yield Check(
                name=axis,
                value=grid,
                limit=extent,
                status=Status.FITS,
                reason=f"grid.{axis[-1]} has to be a multiple of the cluster's {extent}",
                holds=Holds(f"({grid}) % {extent}", 0),
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
    if device.warp_size is None or device.register_step is None:
        lacking = "warp_size" if device.warp_size is None else "register_granule"
        reason = f"no {lacking} is published for {device.name}"
        yield unknown(LaunchLimit.REGISTERS, reason)
    else:
        warps = -(-threads // device.warp_size)
        needed = warps * round_up(each * device.warp_size, device.register_step)
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


LaunchCheck = Callable[[Kernel, Device, Policy], Iterable[Check]]
LAUNCH_CHECKS: Mapping[str, tuple[LaunchCheck, ...]] = {
    "nvidia": (_threads, _grid, _cluster, _registers, _static, _undecided),
    "amd": (_threads, _grid, _cluster, _registers, _undecided),
    "ascend": (ascend_checks,),
}
"""What is checked of a launch on a vendor's chips."""
