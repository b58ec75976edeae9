"""What the numbers of an occupancy mean: why a block cannot run, and what to know beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilefit._devices.names import Device
from tilefit._kernel.memory import Memory
from tilefit._occupancy.cliffs import Role, fit_roles, pool_needed
from tilefit._occupancy.core import CoreLimits
from tilefit._occupancy.rule import Request, registers_of_warp, warps_of


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a block cannot run.

    Attributes:
        text: In words, with both numbers.
        argument: The argument of `occupancy` that has to change, where the next cliff does not
            say so already.
        value: What would do; None to leave it out.
    """

    text: str
    argument: str = ""
    value: int | tuple[Role, ...] | None = None


def why_none(limits: CoreLimits, request: Request, allowed: dict[str, int]) -> Iterable[Problem]:
    """Yield for each limit that allows no block at all, why."""
    warps = warps_of(limits, request.threads)
    if allowed["warps"] == 0:
        most = limits.max_threads_per_block
        over = request.threads - most
        if over > 0:
            yield Problem(f"threads {request.threads:,}, limit {most:,}: over by {over:,}")
        else:
            yield Problem(f"{warps} warps, and one {limits.core} keeps {limits.max_warps}")
    if allowed["registers"] == 0:
        yield Problem(_why_no_registers(limits, request, warps))
    if allowed["shared"] == 0:
        yield Problem(_why_no_shared(limits, request))
    if allowed["barriers"] == 0:
        yield Problem(f"barriers {request.barriers}, limit {limits.barriers}")


def _why_no_registers(limits: CoreLimits, request: Request, warps: int) -> str:
    registers = request.registers or 0
    if registers > limits.accepted_registers:
        return f"registers {registers} per thread, limit {limits.max_registers_per_thread}"
    per_warp = registers_of_warp(limits, registers)
    part = limits.registers_per_core // limits.subpartitions
    return (
        f"registers {registers} per thread: {warps} warps of {per_warp:,} do not go into "
        f"the {limits.subpartitions} x {part:,} of one {limits.core}"
    )


def _why_no_shared(limits: CoreLimits, request: Request) -> str:
    total, name = request.static + request.dynamic, limits.shared_name
    most = limits.shared_per_block_bytes if request.optin else limits.shared_default_bytes
    if total > most:
        text = f"{name} {total:,} B, limit {most:,} B: over by {total - most:,} B"
        if request.optin or most == limits.shared_per_block_bytes:
            return text
        return f"{text} (with the opt-in the limit is {limits.shared_per_block_bytes:,} B)"
    return (
        f"{name} {total:,} B, {request.dynamic:,} of it dynamic: the kernel opted in to "
        f"{request.max_dynamic or 0:,} dynamic bytes"
    )


def tensor(device: Device, columns: int | None) -> tuple[int | None, Problem | str]:
    """Return how many blocks hold their columns at once, and what to say about it."""
    if columns is None:
        return None, ""
    if not device.has(Memory.TENSOR):
        text = f"tensor {columns} columns: {device.name} ({device.arch}) has no tensor memory"
        return 0, Problem(text, "tmem_columns")
    total = device.pool(Memory.TENSOR).columns or 0
    blocks = total // columns
    if blocks == 0:
        text = f"tensor {columns} columns, limit {total}: over by {columns - total}"
        return 0, Problem(text, "tmem_columns", total)
    held = "1 block holds" if blocks == 1 else f"{blocks} blocks hold"
    return blocks, (
        f"tensor memory: {columns} of {total} columns, so {held} it at once; that is no limit of "
        "residency: further blocks wait for it in tcgen05.alloc"
    )


def cluster_words(device: Device, blocks: int | None) -> Problem | str:
    """Say why a cluster cannot be, or what to know about it; nothing without a cluster."""
    if blocks is None or blocks == 1:
        return ""
    portable, most = device.cluster_portable_max, device.largest_cluster
    if portable is None and "cluster_portable_max" in device.no_limit:
        text = f"cluster of {blocks} blocks: {device.name} ({device.arch}) has no clusters"
        return Problem(text, "cluster")
    if portable is None:
        return f"cluster of {blocks} blocks: no cluster limit is published for {device.name}"
    if most is not None and blocks > most:
        return Problem(f"cluster of {blocks} blocks, limit {most}", "cluster", most)
    if blocks <= portable:
        size = "a portable size"
    elif most is None:
        size = f"above the portable {portable}, and no larger size is known"
    else:
        size = f"above the portable {portable}: needs the non-portable attribute at launch"
    return (
        f"cluster of {blocks} blocks: {size}; how many clusters are active is unknown without "
        "the device"
    )


def pool_problem(roles: tuple[Role, ...], request: Request) -> Problem | str:
    """Say that the roles' registers are more than the launch brings; nothing if they are not."""
    if not roles or request.registers is None:
        return ""
    pool = request.registers * request.threads
    needed = pool_needed(roles, request.threads, request.registers)
    if needed <= pool:
        return ""
    text = (
        f"setmaxnreg: the roles hold {needed:,} registers and the launch brings {pool:,} "
        f"({request.registers} x {request.threads:,} threads), so the increase waits for ever"
    )
    return Problem(text, "roles", fit_roles(roles, request.threads, request.registers))


def notes(device: Device, limits: CoreLimits, request: Request) -> Iterable[str]:
    """Yield what one should know beside the numbers."""
    for name, taken in (
        ("barriers_per_core", "as no limit"),
        ("registers_per_block", "as all of the core"),
    ):
        if getattr(device, name) is None and name not in device.no_limit:
            yield f"no {name} is published for {device.name}: taken {taken}"
    most = limits.max_registers_per_thread
    registers: int | None = request.registers
    if registers is not None and most < registers <= limits.accepted_registers:
        yield f"{registers} registers take the room of {most}, the most a thread can have"
    if device.vendor == "amd":
        mode = ", in WGP mode" if limits.core == "WGP" else ""
        yield f"LLVM's model for waves of {limits.warp_size} lanes{mode}; not seen on a device"
        return
    most_static = device.main_pool.static_per_block_bytes
    if most_static is not None and request.static > most_static:
        yield f"ptxas refuses more than {most_static:,} B of static shared memory for {device.arch}"
    elif most_static is None and request.static > limits.shared_default_bytes:
        yield (
            f"static shared memory above {limits.shared_default_bytes:,} B cannot opt in, and "
            f"nobody published whether {device.name} launches it"
        )
    yield f"exact for a carveout of {request.carveout:,} B, which is a hint to the driver"
