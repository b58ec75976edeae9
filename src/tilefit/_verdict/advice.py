"""What an edit of the source could do where no parameter helps: advice, tried by nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilefit._devices.names import Device
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import STAGING, Memory
from tilefit._kernel.reasons import Why
from tilefit._verdict.check import CLUSTER, LaunchLimit
from tilefit._verdict.judge import Check, Status

_CORE_MEMORIES = (Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C)


def advice(kernel: Kernel, checks: Sequence[Check], device: Device) -> tuple[str, ...]:
    """Return a line for each check that fails, where the source could be changed for it.

    Args:
        kernel: The device function.
        checks: Its memory and launch checks.
        device: What they are checks of.
    """
    failing = [c for c in checks if c.status is Status.DOES_NOT_FIT]
    return tuple(dict.fromkeys(line for check in failing for line in _for(kernel, check, device)))


def _for(kernel: Kernel, check: Check, device: Device) -> Iterable[str]:
    if check.name is LaunchLimit.THREADS and check.limit is not None:
        declared, lowered = kernel.launch.threads_declared, kernel.launch.threads
        if declared and lowered and lowered > declared:
            most = check.limit - (lowered - declared)
            most -= most % (device.warp_group_threads or device.warp_size or 1)
            yield (
                f"write at most {most:,} threads, or turn warp specialisation off with the pass "
                "config tl.disable_warp_specialized"
            )
        else:
            yield f"write at most {check.limit:,} threads"
    elif check.name in (LaunchLimit.GRID_Y, LaunchLimit.GRID_Z):
        most = device.max_grid[0] if device.max_grid else 0
        yield f"put the long axis into x, which takes {most:,} blocks ({check.name} does not)"
    elif check.name is LaunchLimit.CLUSTER:
        yield f"write cluster_dims of at most {check.limit} blocks"
    elif check.name in CLUSTER:
        yield f"choose cluster_dims that divide the grid: {check.limit} is no part of {check.value}"
    elif check.name is LaunchLimit.STATIC:
        yield 'allocate with scope="shared.dyn": only dynamic shared memory can opt in to more'
    elif check.name in STAGING:
        yield from _shared(kernel)
    elif check.name is Memory.TENSOR and check.limit == 0:
        yield "accumulate in a fragment (T.alloc_fragment): this chip has no tensor memory"
    elif check.name in _CORE_MEMORIES:
        yield from _tiles(kernel, check)
    elif check.name is LaunchLimit.OVERLAP:
        yield (
            "move what the explicit L0 buffer holds out of it before the GEMM, or let T.gemm read "
            "its operands from L0A and L0B: on L1 operands it writes both from address 0"
        )


def _tiles(kernel: Kernel, check: Check) -> Iterable[str]:
    """Name what fills a memory of Ascend: scratch, versions or the largest tile."""
    mine = [b for b in kernel.buffers if b.memory == check.name and b.bytes]
    if not mine:
        return
    for buffer in mine:
        if buffer.why is Why.REDUCE_WORKSPACE:
            yield (
                f"{buffer.name} ({buffer.bytes:,} B) is scratch that a reduction across threads "
                "adds after the scheduler has counted: leave room for it, or reduce over at most "
                "32 threads, a power of two"
            )
    largest = max(mine, key=lambda b: b.bytes or 0)
    one = (largest.bytes or 0) // max(largest.copies or 1, 1)
    copies = f", {largest.copies} versions of {one:,} B" if (largest.copies or 1) > 1 else ""
    yield (
        f"{largest.name} is the largest buffer of {check.name} ({largest.bytes:,} B{copies}): a "
        "smaller tile of it, or a phase of its own after the others are dead, frees the most"
    )


def _shared(kernel: Kernel) -> Iterable[str]:
    """Name the largest buffer that is live together with all others."""
    dynamic = [b for b in kernel.buffers if b.memory in STAGING and not b.static and b.bytes]
    if len(dynamic) < 2:
        return
    largest = max(dynamic, key=lambda b: b.bytes or 0)
    one = (largest.bytes or 0) // max(largest.copies or 1, 1)
    copies = f", {largest.copies} copies of {one:,} B" if (largest.copies or 1) > 1 else ""
    yield (
        f"{largest.name} is the largest buffer ({largest.bytes:,} B{copies}): a smaller tile of "
        "it, or a phase of its own after the others are dead, frees the most"
    )
