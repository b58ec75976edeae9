"""How many bytes one tile, or one block's tiles, may take: from a size, a device or a capacity."""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.units import human

TYPE_CHECKING = False  # typing itself is not imported: footprint starts as fast as it can
if TYPE_CHECKING:
    from tilefit._devices.names import Device, Pool

_MAIN = (Memory.SHARED, Memory.LDS, Memory.THREADGROUP, Memory.SLM, Memory.VMEM)
"""The one memory that tiles are staged in, on every kind of chip that has just one."""

_TILE_MEMORIES = (
    *_MAIN,
    Memory.TENSOR,
    Memory.UB,
    Memory.L1,
    Memory.L0A,
    Memory.L0B,
    Memory.L0C,
)
"""Memories whose bytes a tile takes whole. Registers are not one: they are per thread."""

MAX_BYTES = 2**63 - 1
"""Sizes above this are no sizes on any machine, and are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A number of bytes that must not be exceeded, and where it comes from.

    Attributes:
        limit_bytes: What may be used, in bytes.
        device: Name of the device; None for a plain size and for a named capacity.
        memory: The physical memory; None for a plain size.
        source: What the number is, in words: ``shared memory of h100, per block``.
        note: Why it is not the number that one might expect; empty if it is.
        plan_device: What to give ``tilefit plan`` as ``-d`` for a compiled answer; None if
            there is no device, or if no toolchain compiles for it.
        arguments: The command-line arguments that ask for this limit.
        padded: The chip has tcgen05, which keeps fp4 and fp6 elements in shared memory in
            8-bit containers when one side of the product is fp8, fp6 or fp4 (kind f8f6f4).
    """

    limit_bytes: int
    device: str | None = None
    memory: Memory | None = None
    source: str = "the size given"
    note: str = ""
    plan_device: str | None = None
    arguments: tuple[str, ...] = ()
    padded: bool = False


def find_limit(
    capacity_bytes: int | None,
    device: str | Device | None,
    memory: str | None,
    *,
    staging: bool = False,
) -> Limit | None:
    """Return the limit that a caller asks for, or None if none is asked for.

    Args:
        capacity_bytes: A plain size in bytes.
        device: In place of it: a device, its name, a ``.toml`` file or a named capacity.
        memory: Which memory of the device.
        staging: See `limit_of_device`.

    Raises:
        InputError: Both a size and a device, or a memory without a device.
    """
    if device is not None:
        if capacity_bytes is not None:
            raise InputError("give a capacity or a device, not both")
        return limit_of_device(device, memory, staging=staging)
    if memory is not None:
        raise InputError(f"memory {memory!r} needs a device that has it (-d)")
    return None if capacity_bytes is None else limit_of_size(capacity_bytes)


def limit_of_size(n_bytes: int) -> Limit:
    """Return the limit that is just a size.

    Args:
        n_bytes: The size in bytes.

    Raises:
        InputError: Negative, or more than any machine has.
    """
    if not 0 <= n_bytes <= MAX_BYTES:
        raise InputError(f"capacity {n_bytes} is not a number of bytes from 0 to 2**63 - 1")
    return Limit(limit_bytes=n_bytes, arguments=("--capacity", str(n_bytes)))


def limit_of_device(
    spec: str | Device, memory: str | None = None, *, staging: bool = False
) -> Limit:
    """Return what one block (on Ascend: one core) may use of a device's memory.

    Args:
        spec: A device, its name, a ``.toml`` file, or a named capacity.
        memory: Name of the memory; may be left out where a device has one main memory.
        staging: The tiles are the operands of a matrix product: on Ascend these are staged
            in L1, which is then the default.

    Raises:
        InputError: The device has several such memories and none was named, or not that one.
        UnknownNameError: No such device or memory.
    """
    from tilefit._devices.names import capacity, expand

    if isinstance(spec, str):
        named = capacity(spec)
        if named is not None:
            if memory is not None and memory.casefold() != named.memory:
                raise InputError(f"{named.name} is a size of {named.memory}, not of {memory}")
            return Limit(
                limit_bytes=named.bytes,
                memory=named.memory,
                source=named.name,
                note=named.reason,
                arguments=("-d", spec),
            )
        devices = expand([spec])
        if len(devices) != 1:
            raise InputError(
                f"{spec!r} names {len(devices)} devices and one is needed here "
                "(`tilefit plan` takes several)"
            )
        device, name = devices[0], spec
    else:
        device, name = spec, spec.name
    chosen = _choose(device, memory, staging)
    pool = device.pool(chosen)
    return Limit(
        limit_bytes=pool.per_block_bytes,
        device=device.name,
        memory=chosen,
        source=f"{chosen} memory of {device.name}, per {pool.owner}",
        note=_note(pool),
        plan_device=name if device.target("tilelang") else None,
        arguments=("-d", name) if memory is None else ("-d", name, "--memory", str(chosen)),
        padded=chosen is Memory.SHARED and _memories(device, (Memory.TENSOR,)) != [],
    )


def _memories(device: Device, wanted: tuple[Memory, ...]) -> list[Memory]:
    return [pool.memory for pool in device.pools if pool.memory in wanted]


def _choose(device: Device, name: str | None, staging: bool) -> Memory:
    choices = _memories(device, _TILE_MEMORIES)
    if name is not None:
        for memory in choices:
            if memory == name.casefold():
                return memory
        hint = "`tilefit plan` counts registers, per thread" if name == Memory.REGISTERS else ""
        raise UnknownNameError(f"memory of {device.name}", name, choices, hint)
    if staging and Memory.L1 in choices:
        return Memory.L1
    main = [memory for memory in choices if memory in _MAIN]
    if len(main) == 1:
        return main[0]
    raise InputError(f"{device.name} needs --memory: one of {', '.join(choices)}")


def _note(pool: Pool) -> str:
    kept, core_bytes = pool.reserved_per_block_bytes, pool.per_core_bytes
    if not kept:
        return ""
    if pool.owner is Owner.BLOCK:
        return (
            f"not {human(core_bytes)}: {core_bytes} B is the whole {pool.core}, and {kept} B of "
            f"it are reserved for every block, so one block may use {pool.per_block_bytes} B"
        )
    return f"the {pool.core} has {core_bytes} B, of which {kept} B are kept back from kernels"
