"""The next cliff: what has to shrink, and to what, so that one more block is resident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefit._occupancy.core import CoreLimits
from tilefit._occupancy.rule import (
    Request,
    blocks_by,
    blocks_by_barriers,
    blocks_by_registers,
    blocks_by_shared,
    blocks_by_slots,
    blocks_by_warps,
    carveout_bytes,
    warps_of,
)

ROLE_STEP = 8
"""setmaxnreg takes multiples of 8 from 24 to 256 (PTX ISA)."""
ROLE_MIN = 24
ROLE_MAX = 256


@dataclass(frozen=True, slots=True)
class Role:
    """Threads of a warp-specialised block that set their own register count.

    Attributes:
        threads: How many threads.
        registers: Registers of each, as setmaxnreg sets them.
    """

    threads: int
    registers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """One value that has to change before one more block is resident.

    Attributes:
        resource: ``threads``, ``registers``, ``shared`` (``lds`` on AMD), ``barriers`` or
            ``carveout``.
        unit: Of the values: ``bytes``, ``registers per thread``, ``percent`` ...
        now: The value now; None if unknown.
        at_most: The largest value that does; None where the value has to grow.
        at_least: The smallest value that does, for a carveout.
        or_carveout: For shared memory: this carveout in percent would do in its place.
        roles: For registers: what the setmaxnreg roles have to come down to with it.
    """

    resource: str
    unit: str
    now: int | None
    at_most: int | None = None
    at_least: int | None = None
    or_carveout: int | None = None
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The way to more blocks.

    Attributes:
        blocks: The count that all changes together reach; None if there is no way.
        cliffs: The changes; each is needed.
        reason: Why there is no way, in words.
    """

    blocks: int | None
    cliffs: tuple[Cliff, ...] = ()
    reason: str = ""


def next_step(
    limits: CoreLimits,
    request: Request,
    blocks: int,
    *,
    carveout: int = -1,
    roles: Sequence[Role] = (),
) -> Step:
    """Return what more than ``blocks`` resident blocks need, all of it at once.

    Every ``at_most`` is the largest value that does: one unit more keeps the old count.

    Args:
        limits: The core.
        request: The block as it is.
        blocks: How many of it are resident.
        carveout: The carveout of the request in percent; -1 for the largest.
        roles: What setmaxnreg gives to whom; a smaller launch has a smaller pool for it.
    """
    target = blocks + 1
    slots = blocks_by_slots(limits, request.threads)
    if target > slots:
        return Step(None, reason=f"{slots} blocks are the most that one {limits.core} keeps")
    cliffs: list[Cliff] = []
    most: int
    if blocks_by_warps(limits, request.threads) < target:
        most = threads_for(limits, target)
        if most < 1 or roles:
            why = "its roles would be others" if roles else "there are no more warps"
            return Step(None, reason=f"{target} blocks need blocks of fewer threads, and {why}")
        cliffs.append(Cliff(resource="threads", unit="threads", now=request.threads, at_most=most))
        request = replace(request, threads=most)
    if not _enough_registers(limits, request, target):
        most = registers_for(limits, request.threads, target)
        lowered = fit_roles(roles, request.threads, most)
        if most < 1 or lowered is None:
            why = "the setmaxnreg roles leave no room" if most else "there are too few registers"
            return Step(None, reason=f"{target} blocks: {why}")
        cliffs.append(
            Cliff(
                resource="registers",
                unit="registers per thread",
                now=request.registers,
                at_most=most,
                roles=lowered if lowered != tuple(roles) else (),
            )
        )
        request = replace(request, registers=most)
    if blocks_by_shared(limits, request) < target:
        changes, request = _shared_cliffs(limits, request, target, carveout)
        if not changes:
            return Step(None, reason=f"{target} blocks: there is too little shared memory")
        cliffs += changes
    if blocks_by_barriers(limits, request.barriers) < target:
        most = (limits.barriers or 0) // target
        if most < 1:
            return Step(None, reason=f"{target} blocks: there are too few barriers")
        cliffs.append(
            Cliff(resource="barriers", unit="barriers", now=request.barriers, at_most=most)
        )
        request = replace(request, barriers=most)
    return Step(min(blocks_by(limits, request)), tuple(cliffs))


def threads_for(limits: CoreLimits, blocks: int) -> int:
    """Return the most threads that each of ``blocks`` resident blocks can have."""
    return min(limits.max_warps // blocks * limits.warp_size, limits.max_threads_per_block)


def registers_for(limits: CoreLimits, threads: int, blocks: int) -> int:
    """Return the most registers per thread with which ``blocks`` blocks are resident.

    A sub-partition holds its part of the warps, each with the same whole number of granules.
    """
    parts, granule = limits.subpartitions, limits.register_granule
    warps: int = warps_of(limits, threads)
    per_warp = limits.registers_per_core // parts // -(-blocks * warps // parts)
    alone = limits.registers_per_block // parts // -(-warps // parts)
    per_warp = min(per_warp, alone) // granule * granule
    return min(per_warp // limits.warp_size, limits.max_registers_per_thread)


def shared_for(limits: CoreLimits, request: Request, blocks: int) -> int | None:
    """Return the most static + dynamic bytes with which ``blocks`` blocks are resident.

    None if not even a block without any would do, because of the carveout.
    """
    most = limits.shared_per_block_bytes if request.optin else limits.shared_default_bytes
    if request.optin and request.max_dynamic is not None:
        most = min(most, request.static + request.max_dynamic)
    granule = limits.shared_granule_bytes
    rooms = [
        size // blocks // granule * granule - limits.shared_reserved_bytes
        for size in limits.carveouts_bytes
    ]
    # with fewer static bytes, what the kernel opted in to may be no more than the default
    rooms.append(limits.shared_default_bytes)
    for total in sorted({min(room, most) for room in rooms if room >= 0}, reverse=True):
        static = min(request.static, total)
        smaller = replace(request, static=static, dynamic=total - static)
        if blocks_by_shared(limits, smaller) >= blocks:
            return total
    return None


def fit_roles(roles: Sequence[Role], threads: int, registers: int) -> tuple[Role, ...] | None:
    """Return the roles as they fit a launch with ``registers`` per thread; None if they cannot.

    setmaxnreg moves registers inside the block's own pool, registers x threads at launch; an
    increase that the pool cannot give waits for ever. The largest role comes down first.
    """
    lowered = list(roles)
    while pool_needed(lowered, threads, registers) > registers * threads:
        largest = max(range(len(lowered)), key=lambda i: lowered[i].registers)
        role = lowered[largest]
        if role.registers - ROLE_STEP < ROLE_MIN:
            return None
        lowered[largest] = replace(role, registers=role.registers - ROLE_STEP)
    return tuple(lowered)


def pool_needed(roles: Sequence[Role], threads: int, registers: int) -> int:
    """Return the registers that a block's roles hold; other threads keep what they started with."""
    others = threads - sum(role.threads for role in roles)
    return sum(role.threads * role.registers for role in roles) + others * registers


def _enough_registers(limits: CoreLimits, request: Request, target: int) -> bool:
    if request.registers is None:
        # unknown is named as a condition wherever it could fail
        most = registers_for(limits, request.threads, target)
        return most >= limits.max_registers_per_thread
    return bool(blocks_by_registers(limits, request.threads, request.registers) >= target)


def _shared_cliffs(
    limits: CoreLimits, request: Request, target: int, percent: int
) -> tuple[list[Cliff], Request]:
    """Return what shared memory needs, and the request with that done; nothing if no way."""
    changes: list[Cliff] = []
    percents = range(percent + 1, 101) if percent >= 0 else range(0)
    room = shared_for(limits, request, target)
    if room is None:
        for larger in percents:
            moved = replace(request, carveout=carveout_bytes(limits, larger))
            room = shared_for(limits, moved, target)
            if room is not None:
                request = moved
                changes.append(
                    Cliff(resource="carveout", unit="percent", now=percent, at_least=larger)
                )
                break
        else:
            return [], request
    assert room is not None
    if blocks_by_shared(limits, request) >= target:
        return changes, request
    instead = None
    if not changes:
        instead = next(
            (
                larger
                for larger in percents
                if blocks_by_shared(
                    limits, replace(request, carveout=carveout_bytes(limits, larger))
                )
                >= target
            ),
            None,
        )
    total = request.static + request.dynamic
    cliff = Cliff(
        resource=limits.shared_name, unit="bytes", now=total, at_most=room, or_carveout=instead
    )
    static = min(request.static, room)
    return [*changes, cliff], replace(request, static=static, dynamic=room - static)
