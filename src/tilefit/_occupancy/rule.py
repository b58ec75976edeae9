"""The occupancy rule, written once: it works on whole numbers and on numpy arrays alike.

NVIDIA: the arithmetic of ``cuda_occupancy.h`` (CUDA 13.0) for compute capability 7.0 and later.
AMD: the same arithmetic over SIMDs and waves, with LLVM's limits (``AMDGPUBaseInfo.cpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilefit._occupancy.core import CoreLimits

Number = Any
"""An int, or an integer array of numpy: the rule has no branch on such a value."""

UNLIMITED = 2**31 - 1
"""The number of blocks where a resource is not used at all, as in NVIDIA's header."""

LIMITERS = ("warps", "registers", "shared", "blocks", "barriers")
"""The limits in the order of the header's bits: 1, 2, 4, 8, 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one block asks for; each value is a `Number`.

    Attributes:
        threads: Threads of the block.
        registers: Registers of a thread; None if unknown, which limits nothing.
        static: Static bytes of shared memory.
        dynamic: Dynamic bytes.
        carveout: The size of shared memory, from `carveout_bytes`. A block that needs more gets
            the next size there is.
        optin: The kernel opted in to more shared memory than the default per block.
        max_dynamic: The dynamic bytes that it opted in to; None: all that there are.
        barriers: Block barriers that it uses.
    """

    threads: Number
    registers: Number | None
    static: Number
    dynamic: Number
    carveout: Number
    optin: bool = True
    max_dynamic: Number | None = None
    barriers: Number = 1


class Ints:
    """For ints, the three functions that the rule otherwise takes from numpy."""

    minimum = staticmethod(min)
    maximum = staticmethod(max)

    @staticmethod
    def where(condition: bool, then: int, otherwise: int) -> int:
        """Choose one of two values."""
        return then if condition else otherwise


def carveout_bytes(limits: CoreLimits, percent: int) -> int:
    """Return the size of shared memory that a carveout asks for: the next one there is.

    Args:
        limits: The core.
        percent: 0 to 100 of the largest size; -1 for the largest.
    """
    wanted = limits.shared_per_core_bytes
    if percent >= 0:
        wanted = wanted * percent // 100
    return next(size for size in limits.carveouts_bytes if size >= wanted)


def warps_of(limits: CoreLimits, threads: Number) -> Number:
    """Return the warps of a block."""
    return (threads + (limits.warp_size - 1)) // limits.warp_size


def registers_of_warp(limits: CoreLimits, registers: Number) -> Number:
    """Return the registers that a warp takes when a thread has ``registers``."""
    granule = limits.register_granule
    return (registers * limits.warp_size + (granule - 1)) // granule * granule


def shared_of_block(limits: CoreLimits, static: Number, dynamic: Number) -> Number:
    """Return the bytes of shared memory that a block takes."""
    granule = limits.shared_granule_bytes
    return (static + dynamic + (limits.shared_reserved_bytes + granule - 1)) // granule * granule


def blocks_by(limits: CoreLimits, request: Request, ops: Any = Ints) -> tuple[Number, ...]:
    """Return how many blocks each of `LIMITERS` allows on one core.

    Args:
        limits: The core.
        request: The block.
        ops: ``numpy`` if any value of the request is an array.
    """
    registers: Number = UNLIMITED
    if request.registers is not None:
        registers = blocks_by_registers(limits, request.threads, request.registers, ops)
    return (
        blocks_by_warps(limits, request.threads),
        registers,
        blocks_by_shared(limits, request, ops),
        blocks_by_slots(limits, request.threads, ops),
        blocks_by_barriers(limits, request.barriers, ops),
    )


def shared_size(limits: CoreLimits, taken: Number, carveout: Number, ops: Any = Ints) -> Number:
    """Return the size that shared memory is set to: as asked for, or the next that holds a block.

    Args:
        limits: The core.
        taken: Bytes that one block takes.
        carveout: The size asked for, from `carveout_bytes`.
        ops: ``numpy`` if anything is an array.
    """
    wanted = ops.maximum(taken, carveout)
    size: Number = limits.carveouts_bytes[-1]
    for option in reversed(limits.carveouts_bytes[:-1]):
        if isinstance(carveout, int) and option < carveout:
            break
        size = ops.where(wanted <= option, option, size)
    return size


def blocks_by_warps(limits: CoreLimits, threads: Number) -> Number:
    """Return how many blocks the warp slots hold; 0 if one has too many threads."""
    legal = threads <= limits.max_threads_per_block
    return legal * (limits.max_warps // warps_of(limits, threads))


def blocks_by_registers(
    limits: CoreLimits, threads: Number, registers: Number, ops: Any = Ints
) -> Number:
    """Return how many blocks the registers hold.

    Every sub-partition gives whole warps out of its own share. The check at launch counts a
    block's warps as if they were spread evenly: their number is rounded up to the sub-partitions.
    """
    warps = warps_of(limits, threads)
    per_warp = registers_of_warp(limits, registers)
    divisor = ops.maximum(per_warp, 1)
    slots = limits.registers_per_core // limits.subpartitions // divisor * limits.subpartitions
    legal = registers <= limits.accepted_registers
    if limits.registers_per_block < limits.registers_per_core:  # otherwise it never decides
        spread = (warps + (limits.subpartitions - 1)) // limits.subpartitions
        legal = legal & (spread <= limits.registers_per_block // limits.subpartitions // divisor)
    return ops.where(per_warp == 0, UNLIMITED, legal * (slots // warps))


def blocks_by_shared(limits: CoreLimits, request: Request, ops: Any = Ints) -> Number:
    """Return how many blocks shared memory holds; 0 if one may not have so much."""
    static, dynamic, max_dynamic = request.static, request.dynamic, request.max_dynamic
    reserved = limits.shared_reserved_bytes
    taken = shared_of_block(limits, static, dynamic)
    if not request.optin:
        legal = taken <= limits.shared_default_bytes + reserved
    elif max_dynamic is None:
        legal = taken <= limits.shared_per_block_bytes + reserved
    else:
        asked = static + max_dynamic + reserved > limits.shared_default_bytes
        largest = ops.where(asked, limits.shared_per_block_bytes, limits.shared_default_bytes)
        legal = (taken <= largest + reserved) & (dynamic <= max_dynamic)
    size = shared_size(limits, taken, request.carveout, ops)
    return ops.where(taken == 0, UNLIMITED, legal * (size // ops.maximum(taken, 1)))


def blocks_by_slots(limits: CoreLimits, threads: Number, ops: Any = Ints) -> Number:
    """Return how many blocks a core holds of any kind."""
    if limits.max_one_warp_blocks == limits.max_blocks:
        return limits.max_blocks
    one_warp = threads <= limits.warp_size
    return ops.where(one_warp, limits.max_one_warp_blocks, limits.max_blocks)


def blocks_by_barriers(limits: CoreLimits, barriers: Number, ops: Any = Ints) -> Number:
    """Return how many blocks the block barriers hold."""
    if limits.barriers is None:
        return UNLIMITED
    held = limits.barriers // ops.maximum(barriers, 1)
    return ops.where(barriers == 0, UNLIMITED, held)
