"""What one core has for its resident blocks: the numbers that the occupancy rule needs."""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._devices.names import Device, expand
from tilefit._errors import InputError
from tilefit._kernel.units import round_up


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLimits:
    """What one core (SM, CU or WGP) has for its resident blocks; nothing is None here.

    Attributes:
        core: Its kind, for people.
        warp_size: Threads of a warp (a wave on AMD).
        max_threads_per_block: Threads of one block.
        max_warps: Resident warps.
        max_blocks: Resident blocks.
        max_one_warp_blocks: Resident blocks of a single warp: AMD's take no barrier slot.
        max_registers_per_thread: The most that a compiler gives one thread.
        accepted_registers: The most that the vendor's calculator takes without saying 0 blocks.
        registers_per_core: 32-bit registers.
        registers_per_block: The most that one block may hold of them.
        register_granule: Registers are given to a warp in multiples of this.
        subpartitions: Parts of the core with their own share of the registers.
        shared_name: What shared memory is called: ``shared`` or ``lds``.
        shared_per_core_bytes: Shared memory for all resident blocks.
        shared_per_block_bytes: The most for one block, with the opt-in where there is one.
        shared_default_bytes: The most for one block without the opt-in.
        shared_reserved_bytes: Taken beside a block's own bytes.
        shared_granule_bytes: A block's share is rounded up to a multiple of this.
        carveouts_bytes: The sizes that shared memory can be set to, ascending.
        barriers: Block barriers of the core; None where they limit nothing.
    """

    core: str
    warp_size: int
    max_threads_per_block: int
    max_warps: int
    max_blocks: int
    max_one_warp_blocks: int
    max_registers_per_thread: int
    accepted_registers: int
    registers_per_core: int
    registers_per_block: int
    register_granule: int
    subpartitions: int
    shared_name: str
    shared_per_core_bytes: int
    shared_per_block_bytes: int
    shared_default_bytes: int
    shared_reserved_bytes: int
    shared_granule_bytes: int
    carveouts_bytes: tuple[int, ...]
    barriers: int | None


def core_limits(device: Device, wave: int | None = None) -> CoreLimits:
    """Return what the rule needs of a device.

    Args:
        device: An NVIDIA or AMD device.
        wave: AMD RDNA: lanes of a wave, 32 (the default) or 64.

    Raises:
        InputError: The rule does not hold for this vendor, a number is missing (in a user's own
            device), or there are no such waves.
    """
    _refuse_other_vendors(device)
    amd = device.vendor == "amd"
    pool = device.main_pool
    warp_size = _needed(device, "warp_size")
    if wave is not None:
        waves = device.warp_sizes or (warp_size,)
        if wave not in waves:
            known = " or ".join(map(str, waves))
            raise InputError(f"wave {wave}: {device.name} has waves of {known} lanes")
        warp_size = wave
    registers = _needed(device, "registers_per_core")
    granule = device.register_step or _needed(device, "register_granule")
    max_warps = _needed(device, "max_warps_per_core")
    max_blocks = _needed(device, "max_blocks_per_core")
    most = _needed(device, "max_registers_per_thread")
    options = {size for size in pool.carveouts_bytes if size <= pool.per_core_bytes}
    return CoreLimits(
        core=pool.core,
        warp_size=warp_size,
        max_threads_per_block=_needed(device, "max_threads_per_block"),
        max_warps=max_warps,
        max_blocks=max_blocks,
        max_one_warp_blocks=max(max_blocks, max_warps) if amd else max_blocks,
        max_registers_per_thread=most,
        # NVIDIA's takes 256 registers, which need no more room than the 255 that a thread can have
        accepted_registers=most if amd else round_up(most * warp_size, granule) // warp_size,
        registers_per_core=registers,
        registers_per_block=device.registers_per_block or registers,
        register_granule=granule,
        subpartitions=_needed(device, "subpartitions"),
        shared_name=pool.memory.value,
        shared_per_core_bytes=pool.per_core_bytes,
        shared_per_block_bytes=pool.per_block_bytes,
        shared_default_bytes=pool.default_per_block_bytes or pool.per_block_bytes,
        shared_reserved_bytes=pool.reserved_per_block_bytes,
        shared_granule_bytes=pool.granule_bytes,
        carveouts_bytes=tuple(sorted({*options, pool.per_core_bytes})),
        barriers=device.barriers_per_core,
    )


def one_device(spec: str | Device) -> Device:
    """Return the one device that is meant.

    Raises:
        InputError: Several are.
        UnknownNameError: None is.
    """
    if isinstance(spec, Device):
        return spec
    devices = expand([spec])
    if len(devices) != 1:
        raise InputError(f"{spec!r} names {len(devices)} devices and one is needed here")
    return devices[0]


def _refuse_other_vendors(device: Device) -> None:
    if device.vendor == "ascend":
        raise InputError(
            f"{device.name} has no occupancy: an Ascend core runs one block at a time, and more "
            "blocks than cores run in rounds; see `tilefit devices "
            f"{device.name}` for the cores and `tilefit budget -d {device.name}` for the bytes"
        )
    if device.vendor not in ("nvidia", "amd"):
        raise InputError(
            f"no occupancy rule is known for {device.name}; its limits: `tilefit devices "
            f"{device.name}`"
        )


def _needed(device: Device, name: str) -> int:
    value: int | None = getattr(device, name)
    if not value:
        raise InputError(f"{device.name} lacks {name}, which occupancy needs")
    return value
