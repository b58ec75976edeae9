"""How many blocks of a kernel one core holds at once."""

from __future__ import annotations

from tilefit._device import Device
from tilefit._kernel import Kernel
from tilefit._memory import STAGING
from tilefit._occupancy import occupancy
from tilefit._plan import place
from tilefit._report import Residency


def residency(kernel: Kernel, device: Device) -> Residency | None:
    """Return the blocks of one core; an upper bound while registers are unknown.

    Returns:
        None where the device has no occupancy rule, or something that it needs is unknown.
    """
    use = next(use for use in place(kernel) if use.memory in STAGING)
    threads = kernel.launch.threads
    if device.vendor not in ("nvidia", "amd") or threads is None or use.dynamic_bytes is None:
        return None
    pool = device.pool(use.memory)
    limit, core = pool.per_block_bytes, pool.core or "core"
    most = device.max_threads_per_block
    if (use.total_bytes or 0) > limit or (most is not None and threads > most):
        return Residency(
            blocks=0, exact=True, limiters=(), by_shared=None, by_registers=None, core=core
        )
    found = occupancy(
        device,
        threads=threads,
        registers=kernel.registers_per_thread,
        static_smem=use.static_bytes,
        dynamic_smem=use.dynamic_bytes,
    )
    alone = dict(found.blocks_by)
    return Residency(
        blocks=found.blocks_per_core,
        exact=kernel.registers_per_thread is not None,
        limiters=found.limiters,
        by_shared=alone.get(use.memory),
        by_registers=alone.get("registers"),
        core=core,
    )


def worst_residency(kernels: tuple[Kernel, ...], device: Device) -> Residency | None:
    """Return the residency of the device function that has the fewest blocks."""
    found = [r for r in (residency(kernel, device) for kernel in kernels) if r is not None]
    return min(found, key=lambda r: r.blocks or 0, default=None)
