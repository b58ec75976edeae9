"""How many blocks of a kernel are resident on one core, what holds them there, what more needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from tilefit._devices.names import Device
from tilefit._errors import InputError
from tilefit._kernel.memory import Memory
from tilefit._occupancy.cliffs import (
    ROLE_MAX,
    ROLE_MIN,
    ROLE_STEP,
    Cliff,
    Role,
    Step,
    next_step,
    registers_for,
)
from tilefit._occupancy.core import CoreLimits, core_limits, one_device
from tilefit._occupancy.rule import (
    LIMITERS,
    UNLIMITED,
    Request,
    blocks_by,
    carveout_bytes,
    registers_of_warp,
    shared_of_block,
    shared_size,
    warps_of,
)
from tilefit._occupancy.words import Problem, cluster_words, notes, pool_problem, tensor, why_none

__all__ = ["Cliff", "Occupancy", "Problem", "Role", "occupancy"]

_NVIDIA_ONLY = {
    "carveout": "carveout",
    "barriers": "block barriers to count",
    "cluster": "clusters",
    "tmem_columns": "tensor memory",
    "max_dynamic_smem": "opt-in for shared memory",
    "roles": "setmaxnreg roles",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """How many blocks are resident on one core. Sizes are bytes.

    Attributes:
        device: Name of the device.
        title: The device as its maker spells it.
        arch: Its architecture.
        vendor: ``nvidia`` or ``amd``.
        limits: What the core has.
        request: What one block asks for.
        blocks_per_core: Resident blocks; an upper bound where registers are unknown.
        limiters: Every limit equal to that number: ``warps``, ``registers``, ``shared`` (AMD:
            ``lds``), ``blocks``, ``barriers``.
        blocks_by: Each limit with the blocks that it allows; None for no limit.
        warps_per_block: Warps (AMD: waves) of one block.
        active_warps: Warps of the resident blocks.
        allocated_registers_per_block: After rounding per warp; None if unknown.
        allocated_shared_bytes_per_block: With the reserved part, rounded up to the granule.
        shared_bytes_per_core: What shared memory is set to: the carveout asked for, or the next
            size that holds a block.
        warps_per_subpartition: Warps that the registers of one sub-partition hold (AMD: waves
            per SIMD), with its own limit of warps; None if registers are unknown.
        registers_for_blocks: The most registers per thread that keep `blocks_per_core`.
        step: What one more block needs.
        carveout: The carveout asked for, in percent; None for the largest.
        tensor_columns: Columns of tensor memory of one block; None for none.
        tensor_blocks: Blocks that hold their tensor memory at once: no limit of residency.
        cluster: Blocks of a cluster; None without clusters.
        roles: Threads that set their own register count.
        wave: Lanes of a wave, where they were asked for.
        problems: Why such a block cannot run; empty if it can.
        notes: What one should know beside the numbers.
    """

    device: str
    title: str
    arch: str
    vendor: str
    limits: CoreLimits
    request: Request
    blocks_per_core: int
    limiters: tuple[str, ...]
    blocks_by: tuple[tuple[str, int | None], ...]
    warps_per_block: int
    active_warps: int
    allocated_registers_per_block: int | None
    allocated_shared_bytes_per_block: int
    shared_bytes_per_core: int
    warps_per_subpartition: int | None
    registers_for_blocks: int
    step: Step
    carveout: int | None
    tensor_columns: int | None
    tensor_blocks: int | None
    cluster: int | None
    roles: tuple[Role, ...]
    wave: int | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether such a block can run at all."""
        return not self.problems

    @property
    def registers_known(self) -> bool:
        """Whether the registers of a thread were given: if not, the count is an upper bound."""
        return self.request.registers is not None

    @property
    def registers_per_warp(self) -> int | None:
        """Registers that one warp takes, rounded up; None if unknown."""
        allocated = self.allocated_registers_per_block
        return None if allocated is None else allocated // self.warps_per_block

    @property
    def asked_registers_per_warp(self) -> int | None:
        """Registers that one warp asks for, before rounding; None if unknown."""
        each = self.request.registers
        return None if each is None else each * self.limits.warp_size

    @property
    def asked_shared_bytes_per_block(self) -> int:
        """Static and dynamic shared memory of one block, as it was asked for."""
        asked: int = self.request.static + self.request.dynamic
        return asked

    @property
    def charged_shared_bytes_per_block(self) -> int:
        """The same with the reserved part, before rounding."""
        return self.asked_shared_bytes_per_block + self.limits.shared_reserved_bytes

    @property
    def max_warps_per_subpartition(self) -> int:
        """Warps that one sub-partition has room for (AMD: waves of a SIMD)."""
        return self.limits.max_warps // self.limits.subpartitions

    @property
    def tightest_first(self) -> tuple[tuple[str, int | None], ...]:
        """`blocks_by` in the order of the blocks; what does not limit comes last."""
        return tuple(sorted(self.blocks_by, key=lambda row: (row[1] is None, row[1] or 0)))

    @property
    def percent(self) -> float:
        """Active warps as a percentage of the core's."""
        return 100 * self.active_warps / self.limits.max_warps

    @property
    def next(self) -> tuple[Cliff, ...]:
        """What more blocks need, all of it at once; empty if there is no way."""
        return self.step.cliffs


def occupancy(
    device: str | Device,
    *,
    threads: int,
    registers: int | None = None,
    static_smem: int = 0,
    dynamic_smem: int = 0,
    carveout: int | None = None,
    barriers: int | None = None,
    cluster: int | None = None,
    tmem_columns: int | None = None,
    optin: bool = True,
    max_dynamic_smem: int | None = None,
    wave: int | None = None,
    roles: Sequence[Role | tuple[int, int]] = (),
) -> Occupancy:
    """Return how many blocks are resident on one core (SM, CU or WGP).

    On NVIDIA this is the number of ``cuda_occupancy.h`` for the stated carveout; on AMD it is
    LLVM's model. A block that cannot run is no error: 0 blocks, with `Occupancy.problems`.

    >>> answer = occupancy("h100", threads=256, registers=128, dynamic_smem=99328)
    >>> answer.blocks_per_core, answer.limiters
    (2, ('registers', 'shared'))
    >>> [(cliff.resource, cliff.at_most) for cliff in answer.next]
    [('registers', 80), ('shared', 76800)]

    Args:
        device: An NVIDIA or AMD device, its name, or a ``.toml`` file.
        threads: Threads of one block.
        registers: 32-bit registers of one thread at launch (AMD: VGPR, with AGPR where they are
            one file); None if unknown: the answer is then an upper bound.
        static_smem: Static bytes of shared memory of one block (AMD: of LDS).
        dynamic_smem: Dynamic bytes, without what the driver reserves.
        carveout: 0 to 100 percent of shared memory asked for; None or -1 for all of it.
        barriers: Block barriers that the kernel uses (default: 1).
        cluster: Blocks of a cluster.
        tmem_columns: Columns of tensor memory of one block.
        optin: The kernel opts in to more shared memory than the default per block.
        max_dynamic_smem: The bytes it opts in to; None: as many as there are.
        wave: AMD RDNA: 64 for a kernel compiled for waves of 64 lanes.
        roles: Warp-specialised kernels: (threads, registers) of each setmaxnreg role.

    Raises:
        InputError: A value is no such number, or the device has no such thing as occupancy.
        UnknownNameError: No such device.
    """
    core = one_device(device)
    given = {
        "carveout": carveout,
        "barriers": barriers,
        "cluster": cluster,
        "tmem_columns": tmem_columns,
        "max_dynamic_smem": max_dynamic_smem,
        "roles": tuple(roles) or None,
    }
    limits = core_limits(core, None if wave is None else _whole("wave", wave, 1))
    if core.vendor != "nvidia":
        _refuse_nvidia_only(core, given)
    if max_dynamic_smem is not None and not optin:
        raise InputError("max_dynamic_smem is what a kernel opts in to: it needs optin")
    percent = _carveout(carveout)
    request = Request(
        threads=_whole("threads", threads, 1),
        registers=None if registers is None else _whole("registers", registers, 0),
        static=_whole("static_smem", static_smem, 0),
        dynamic=_whole("dynamic_smem", dynamic_smem, 0),
        carveout=carveout_bytes(limits, percent),
        optin=bool(optin),
        max_dynamic=(
            None if max_dynamic_smem is None else _whole("max_dynamic_smem", max_dynamic_smem, 0)
        ),
        barriers=1 if barriers is None else _whole("barriers", barriers, 0),
    )
    parts = _roles(roles, request.threads)
    allowed = blocks_by(limits, request)
    blocks = min(allowed)
    names = [limits.shared_name if name == "shared" else name for name in LIMITERS]
    warps = warps_of(limits, request.threads)
    taken = shared_of_block(limits, request.static, request.dynamic)
    per_warp = None
    if request.registers is not None:
        per_warp = registers_of_warp(limits, request.registers)
    columns = None if not tmem_columns else _columns(core, tmem_columns)
    clustered = None if cluster is None else _whole("cluster", cluster, 1)
    tensor_blocks, about_tensor = tensor(core, columns)
    remarks = (
        *why_none(limits, request, dict(zip(LIMITERS, allowed, strict=True))),
        about_tensor,
        cluster_words(core, clustered),
        pool_problem(parts, request),
        *notes(core, limits, request),
    )
    return Occupancy(
        device=core.name,
        title=core.title,
        arch=core.arch,
        vendor=core.vendor,
        limits=limits,
        request=request,
        blocks_per_core=blocks,
        limiters=tuple(n for n, b in zip(names, allowed, strict=True) if b == blocks),
        blocks_by=tuple(
            (n, None if b == UNLIMITED else b) for n, b in zip(names, allowed, strict=True)
        ),
        warps_per_block=warps,
        active_warps=blocks * warps,
        allocated_registers_per_block=None if per_warp is None else per_warp * warps,
        allocated_shared_bytes_per_block=taken,
        shared_bytes_per_core=shared_size(limits, taken, request.carveout),
        warps_per_subpartition=None if per_warp is None else _warps_per_part(limits, per_warp),
        registers_for_blocks=registers_for(limits, request.threads, max(blocks, 1)),
        step=next_step(limits, request, blocks, carveout=percent, roles=parts),
        carveout=None if percent < 0 else percent,
        tensor_columns=columns,
        tensor_blocks=tensor_blocks,
        cluster=clustered,
        roles=parts,
        wave=wave,
        problems=tuple(remark for remark in remarks if isinstance(remark, Problem)),
        notes=tuple(remark for remark in remarks if isinstance(remark, str) and remark),
    )


def _refuse_nvidia_only(device: Device, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} {value}: {device.name} has no {_NVIDIA_ONLY[name]}")


def _whole(name: str, value: object, least: int) -> int:
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise InputError(f"{name} {value!r} is not a whole number from {least}")
    return number


def _carveout(value: int | None) -> int:
    if value is None:
        return -1
    number = _whole("carveout", value, -1)
    if number > 100:
        raise InputError(f"carveout {number} is not a percentage from 0 to 100")
    return number


def _roles(roles: Sequence[Role | tuple[int, int]], threads: int) -> tuple[Role, ...]:
    found = []
    for role in roles:
        count, registers = (role.threads, role.registers) if isinstance(role, Role) else role
        found.append(Role(_whole("role threads", count, 1), _whole("role registers", registers, 0)))
        if registers % ROLE_STEP or not ROLE_MIN <= registers <= ROLE_MAX:
            raise InputError(
                f"role registers {registers}: setmaxnreg takes multiples of {ROLE_STEP} "
                f"from {ROLE_MIN} to {ROLE_MAX}"
            )
    total = sum(role.threads for role in found)
    if total > threads:
        raise InputError(f"the roles have {total} threads, the block {threads}")
    return tuple(found)


def _columns(device: Device, columns: object) -> int:
    number = _whole("tmem_columns", columns, 1)
    if not device.has(Memory.TENSOR):
        return number
    step = device.pool(Memory.TENSOR).column_step
    if number % step:
        raise InputError(
            f"tmem_columns {number}: tensor memory is given out by {step} columns, "
            f"so this is {-(-number // step) * step}"
        )
    return number


def _warps_per_part(limits: CoreLimits, per_warp: int) -> int:
    """Return the warps that one sub-partition holds, by registers and by slots."""
    slots = limits.max_warps // limits.subpartitions
    if per_warp == 0:
        return slots
    return min(slots, limits.registers_per_core // limits.subpartitions // per_warp)
