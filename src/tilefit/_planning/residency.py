"""How many blocks of a kernel one core holds at once; on Ascend, in how many rounds they run."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilefit._devices.names import Device, products_of
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import STAGING, Evidence, Memory, Owner
from tilefit._occupancy.occupancy import occupancy
from tilefit._placement.open_buffers import open_buffers
from tilefit._placement.place import place
from tilefit._planning.report import Residency, Rounds

_CUBE = (Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C)
_ANY_CORE = "AI core"  # before 910B a core is a cube and a vector unit together


def by_core(device: Device) -> bool:
    """Say whether the memories of a device belong to cores that blocks take, not to blocks."""
    return device.main_pool.owner is not Owner.BLOCK


def residency(kernel: Kernel, device: Device) -> Residency | None:
    """Return the blocks of one core; an upper bound while registers are unknown.

    Returns:
        None where the device has no occupancy rule, or something that it needs is unknown; for
        an estimate too, as bytes that may be too many or too few bound nothing.
    """
    use = next((use for use in place(kernel) if use.memory in STAGING), None)
    threads = kernel.launch.threads
    if use is None or threads is None or not device.has(use.memory):
        return None
    if use.evidence is Evidence.DECLARED or use.dynamic_bytes is None:
        return None
    pool = device.pool(use.memory)
    limit, core = pool.per_block_bytes, pool.core or "core"
    most = device.max_threads_per_block
    if (use.total_bytes or 0) > limit or (most is not None and threads > most):
        return Residency(
            blocks=0, exact=True, limiters=(), by_shared=None, by_registers=None, core=core
        )
    exact = kernel.assembled is not None
    found = occupancy(
        device,
        threads=threads,
        registers=_registers(kernel, threads),
        static_smem=use.static_bytes,
        dynamic_smem=use.dynamic_bytes,
    )
    alone = dict(found.blocks_by)
    held = dict.fromkeys(found.limiters, found.blocks_per_core)
    tensor = _tensor_blocks(kernel, device)
    if tensor is not None and tensor <= found.blocks_per_core:
        held = {Memory.TENSOR: tensor, **(held if tensor == found.blocks_per_core else {})}
    return Residency(
        blocks=min(held.values(), default=found.blocks_per_core),
        exact=exact,
        limiters=tuple(held),
        by_shared=alone.get(use.memory),
        by_registers=alone.get("registers") if exact else None,
        core=core,
    )


def _registers(kernel: Kernel, threads: int) -> int | None:
    """Return the registers of a thread at launch, or the least that they can be; None if unknown.

    What the roles hold after setmaxnreg comes out of the block's own registers, so as many have to
    be there at launch (PTX ISA, setmaxnreg).
    """
    if kernel.assembled is not None:
        return kernel.assembled.registers_per_thread
    held = sum(role.threads * (role.registers or 0) for role in kernel.roles)
    return -(-held // threads) or None


def _tensor_blocks(kernel: Kernel, device: Device) -> int | None:
    """Return how many blocks hold their tensor memory at once; None if none of it is used.

    One more block may be resident, and waits in its allocation until another ends.
    """
    use = kernel.use(Memory.TENSOR)
    if use is None or not use.total_bytes or not device.has(Memory.TENSOR):
        return None
    return device.pool(Memory.TENSOR).per_core_bytes // use.total_bytes


def worst_residency(kernels: tuple[Kernel, ...], device: Device) -> Residency | None:
    """Return the residency of the device function that has the fewest blocks."""
    found = [r for r in (residency(kernel, device) for kernel in kernels) if r is not None]
    return min(found, key=lambda r: r.blocks or 0, default=None)


def rounds(kernel: Kernel, device: Device) -> Rounds | None:
    """Return in how many rounds the cores of an Ascend chip run a grid, each core a block a round.

    A block that uses the cube takes an AIC (with its two AIV), one that does not takes an AIV.
    Where the source leaves that open, both are counted.

    Returns:
        None on other devices.
    """
    if not by_core(device):
        return None
    cube = uses_cube(kernel)
    if cube is not None:
        return _rounds(kernel, device, cube=cube)
    vector, mixed = _rounds(kernel, device, cube=False), _rounds(kernel, device, cube=True)
    if vector.core == mixed.core:
        return vector
    if vector.rounds is None or mixed.rounds is None:
        return replace(vector, core=f"{vector.core} or {mixed.core}", cores=None)
    words = f"{vector.rounds:,} on {vector.cores} AIV, {mixed.rounds:,} on {mixed.cores} AIC"
    same = vector.rounds == mixed.rounds
    return Rounds(
        rounds=vector.rounds if same else None,
        blocks=vector.blocks,
        cores=None,
        core=f"{vector.core} or {mixed.core}",
        reason=None if same else f"{words}: the source does not say which cores a block takes",
    )


def _rounds(kernel: Kernel, device: Device, *, cube: bool) -> Rounds:
    counts = dict(device.cores)
    core = "AIC" if cube else "AIV"
    if core not in counts and _ANY_CORE in counts:
        core = _ANY_CORE
    cores = counts.get(core)
    grid = kernel.launch.grid or ()
    numbers = [extent for extent in grid if isinstance(extent, int)]
    blocks = prod(numbers) if len(numbers) == len(grid) else None
    reason = None
    if blocks is None:
        opened = ", ".join(str(extent) for extent in grid if not isinstance(extent, int))
        reason = f"the grid has {opened} in it: give the sizes with --set NAME=VALUE"
        if "?" in grid:
            reason = "the grid is not known"
    elif cores is None:
        names = ", ".join(products_of(device))
        reason = f"{device.name} is no product, so its cores are not known: name one of {names}"
        if not names:
            reason = f"the number of {core} of {device.name} is not known"
    return Rounds(
        rounds=None if blocks is None or cores is None else -(-blocks // cores),
        blocks=blocks,
        cores=cores,
        core=core,
        reason=reason,
    )


def uses_cube(kernel: Kernel) -> bool | None:
    """Say whether a block of a kernel occupies a cube core; None if its source does not say."""
    if kernel.cores is not None:
        return kernel.cores != "vector"
    if kernel.gemms > 0 or any(buffer.memory in _CUBE for buffer in kernel.buffers):
        return True
    ub = kernel.use(Memory.UB)
    placed = kernel.complete and (ub is None or ub.total_bytes is not None)
    placed = placed and not open_buffers(kernel)
    return False if placed and any(b.memory is Memory.UB for b in kernel.buffers) else None
