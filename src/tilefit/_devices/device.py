"""What a device is: its memories, its launch limits, and the source of every number.

The constructors refuse values that contradict each other and name both numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._errors import InputError
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.units import round_up

VENDORS = ("nvidia", "amd", "ascend", "apple", "intel", "tpu")
CONFIDENCES = ("high", "medium", "low", "unknown")

REGISTER_BYTES = 4
"""A register is 32 bits wide on every device here."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One number with where it comes from.

    Attributes:
        key: The number's name, for example ``"shared.per_block_bytes"``.
        value: An integer, several, or None where there is none (see `absent`).
        unit: ``"bytes"``, ``"registers"``, ``"threads"`` ...; empty for a plain count.
        source: The document or program in a few words.
        confidence: ``"high"``, ``"medium"``, ``"low"`` or ``"unknown"``.
        note: What a reader should know beside the number.
        absent: Of a value that is None: the device has no such thing. Otherwise it has, and
            nobody published the number.
    """

    key: str
    value: int | tuple[int, ...] | None
    unit: str
    source: str
    confidence: str
    note: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One memory of a device. All sizes are bytes.

    Attributes:
        memory: Which memory.
        owner: Who shares one instance of it.
        core: What `per_core_bytes` counts: ``"SM"``, ``"CU"``, ``"WGP"``, ``"AIV"`` ...
        per_block_bytes: What one block (or one Ascend core's kernel) may use, at most.
        per_core_bytes: What all blocks resident on one core share.
        physical_bytes: The array on the chip, with what caches or the toolchain keep of it.
        reserved_per_block_bytes: Taken beside the kernel's own bytes for each resident block.
        granule_bytes: A block's share is rounded up to a multiple of this (1: not published).
        align_bytes: Alignment of a buffer in it, where the hardware asks for one.
        default_per_block_bytes: The limit without an opt-in at launch, where they differ.
        static_per_block_bytes: The limit of what is allocated statically, without the launch.
        carveouts_bytes: Sizes that can be split off for this memory, ascending.
        columns: Tensor memory only: columns of the whole memory.
        lanes: Tensor memory only: lanes of a column.
        no_limit: Which of the fields that are None the memory does not have at all; the
            numbers of the others were not published.

    Raises:
        InputError: Two of the numbers contradict each other.
    """

    memory: Memory
    owner: Owner
    core: str
    per_block_bytes: int
    per_core_bytes: int
    physical_bytes: int
    reserved_per_block_bytes: int = 0
    granule_bytes: int = 1
    align_bytes: int | None = None
    default_per_block_bytes: int | None = None
    static_per_block_bytes: int | None = None
    carveouts_bytes: tuple[int, ...] = ()
    columns: int | None = None
    lanes: int | None = None
    no_limit: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("per_block_bytes", "per_core_bytes", "physical_bytes", "granule_bytes"):
            _check(getattr(self, name) > 0, f"{self.memory}.{name}", getattr(self, name), "above 0")
        _check_none(self, f"{self.memory}.")
        for name in (
            *("align_bytes", "default_per_block_bytes", "static_per_block_bytes"),
            *("columns", "lanes"),
        ):
            value = getattr(self, name)
            _check(value is None or value > 0, f"{self.memory}.{name}", value, "above 0")
        reserved = self.reserved_per_block_bytes
        self._need(reserved >= 0, f"reserved_per_block_bytes {reserved} is below 0")
        taken = self.per_block_bytes + reserved
        self._need(
            taken <= self.per_core_bytes,
            f"per_block_bytes {self.per_block_bytes} + reserved_per_block_bytes {reserved} "
            f"= {taken} is above per_core_bytes {self.per_core_bytes}",
        )
        self._need(
            self.per_core_bytes <= self.physical_bytes,
            f"per_core_bytes {self.per_core_bytes} is above physical_bytes {self.physical_bytes}",
        )
        self._need(
            taken % self.granule_bytes == 0,
            f"per_block_bytes + reserved_per_block_bytes {taken} is no multiple of "
            f"granule_bytes {self.granule_bytes}",
        )
        for name in ("default_per_block_bytes", "static_per_block_bytes"):
            part = getattr(self, name)
            self._need(
                part is None or part <= self.per_block_bytes,
                f"{name} {part} is above per_block_bytes {self.per_block_bytes}",
            )
        carveouts = self.carveouts_bytes
        self._need(
            list(carveouts) == sorted(set(carveouts)) and min(carveouts, default=0) >= 0,
            f"carveouts_bytes {list(carveouts)} are not ascending sizes",
        )
        self._need(
            max(carveouts, default=0) <= self.per_core_bytes,
            f"carveouts_bytes go up to {max(carveouts, default=0)}, above per_core_bytes "
            f"{self.per_core_bytes}",
        )
        self._need(
            self.columns is None or self.physical_bytes % self.columns == 0,
            f"physical_bytes {self.physical_bytes} is no multiple of columns {self.columns}",
        )

    @property
    def column_bytes(self) -> int:
        """Bytes of one column of tensor memory, over all its lanes.

        Raises:
            InputError: The memory has no columns.
        """
        _check(self.columns is not None, f"{self.memory}.columns", self.columns, "a number")
        return self.physical_bytes // (self.columns or 1)

    @property
    def column_step(self) -> int:
        """Columns of tensor memory are given out in multiples of this."""
        return self.granule_bytes // self.column_bytes

    def _need(self, holds: bool, complaint: str) -> None:
        if not holds:
            raise InputError(f"{self.memory}: {complaint}")

    def allocated_bytes(self, requested_bytes: int) -> int:
        """Return what a block that asks for ``requested_bytes`` takes from its core."""
        return round_up(requested_bytes + self.reserved_per_block_bytes, self.granule_bytes)

    def largest_for(self, blocks: int) -> int:
        """Return the most bytes that each of ``blocks`` resident blocks may ask for.

        The core is shared in whole granules and every block pays its reserved part, so this
        is less than an equal share.

        Raises:
            InputError: ``blocks`` is below 1.
        """
        _check(blocks > 0, "blocks", blocks, "above 0")
        share = self.per_core_bytes // blocks // self.granule_bytes * self.granule_bytes
        return max(0, min(self.per_block_bytes, share - self.reserved_per_block_bytes))


@dataclass(frozen=True, slots=True)
class Condition:
    """A kernel of a certain kind may use less of a memory than its pool says.

    Attributes:
        memory: The memory.
        code: A short name for the case: ``"simt"``, ``"api-scratch"``.
        when: The case in words.
        per_block_bytes: What is left to the kernel then, in bytes.
    """

    memory: Memory
    code: str
    when: str
    per_block_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A product, or an architecture under its own name.

    A number is None if the architecture has no such thing (then `no_limit` names it), or if nobody
    published it.

    Attributes:
        name: The name to type, for example ``"h100"`` or ``"sm_90"``.
        title: The name to read.
        vendor: One of `VENDORS`.
        arch: Name of the architecture; equal to `name` for an architecture itself.
        aliases: Other spellings of `name`.
        product: True for something one can buy, False for an architecture.
        cores: Kind and count, for example ``(("SM", 132),)``; empty where unknown.
        pools: The memories.
        conditions: Cases in which a kernel may use less.
        max_threads_per_block: Threads of one block.
        max_block: Threads of one block along x, y, z.
        max_grid: Blocks of a grid along x, y, z.
        warp_size: Threads of a warp (a wave on AMD), as kernels are compiled unless they say.
        warp_sizes: All sizes that a kernel can be compiled for, where there are several.
        warp_group_threads: Threads of a warp group, which some instructions take together.
        max_registers_per_thread: 32-bit registers.
        registers_per_core: 32-bit registers of one core, over all threads.
        registers_per_block: The most that one block may hold of them.
        register_granule: Registers are given to a warp in multiples of this.
        subpartitions: Parts of a core, each with its own share of registers and warps.
        max_warps_per_core: Resident warps.
        max_threads_per_core: Resident threads.
        max_blocks_per_core: Resident blocks.
        barriers_per_core: Block barriers of one core.
        cluster_portable_max: Blocks of a cluster on every chip of the architecture.
        cluster_max: Blocks of a cluster with the non-portable opt-in.
        no_limit: The numbers that the architecture does not have: clusters below 9.0, for
            example. The others that are None were not published.
        targets: The target that each toolchain uses for it.
        no_target: For the other toolchains, why there is none.
        facts: Every number above with its source.

    Raises:
        InputError: Two of the numbers contradict each other.
    """

    name: str
    title: str
    vendor: str
    arch: str
    aliases: tuple[str, ...] = ()
    product: bool = False
    cores: tuple[tuple[str, int], ...] = ()
    pools: tuple[Pool, ...]
    conditions: tuple[Condition, ...] = ()
    max_threads_per_block: int | None = None
    max_block: tuple[int, int, int] | None = None
    max_grid: tuple[int, int, int] | None = None
    warp_size: int | None = None
    warp_sizes: tuple[int, ...] | None = None
    warp_group_threads: int | None = None
    max_registers_per_thread: int | None = None
    registers_per_core: int | None = None
    registers_per_block: int | None = None
    register_granule: int | None = None
    subpartitions: int | None = None
    max_warps_per_core: int | None = None
    max_threads_per_core: int | None = None
    max_blocks_per_core: int | None = None
    barriers_per_core: int | None = None
    cluster_portable_max: int | None = None
    cluster_max: int | None = None
    no_limit: tuple[str, ...] = ()
    targets: tuple[tuple[str, str], ...] = ()
    no_target: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        if self.vendor not in VENDORS:
            raise InputError(f"vendor {self.vendor!r} is none of {', '.join(VENDORS)}")
        if not self.pools:
            raise InputError(f"{self.name} has no memory")
        _check_none(self, "")
        for kind, count in self.cores:
            _check(count > 0, f"cores.{kind}", count, "above 0")
        for fact in self.facts:
            if fact.confidence not in CONFIDENCES:
                known = ", ".join(CONFIDENCES)
                raise InputError(f"{fact.key}: confidence {fact.confidence!r} is none of {known}")
        for condition in self.conditions:
            _order(
                ("conditions.per_block_bytes", condition.per_block_bytes),
                (
                    f"{condition.memory}.per_block_bytes",
                    self.pool(condition.memory).per_block_bytes,
                ),
            )
        for small, large in (
            ("registers_per_block", "registers_per_core"),
            ("max_registers_per_thread", "registers_per_core"),
            ("max_threads_per_block", "max_threads_per_core"),
            ("cluster_portable_max", "cluster_max"),
        ):
            _order((small, getattr(self, small)), (large, getattr(self, large)))
        if self.warp_size and self.warp_sizes and self.warp_size not in self.warp_sizes:
            raise InputError(
                f"warp_size {self.warp_size} is none of warp_sizes {list(self.warp_sizes)}"
            )
        if self.warp_size and self.warp_group_threads and self.warp_group_threads % self.warp_size:
            raise InputError(
                f"warp_group_threads {self.warp_group_threads} is no multiple of warp_size "
                f"{self.warp_size}"
            )
        if None not in (self.max_warps_per_core, self.warp_size, self.max_threads_per_core):
            threads = (self.max_warps_per_core or 0) * (self.warp_size or 0)
            if threads != self.max_threads_per_core:
                raise InputError(
                    f"max_warps_per_core {self.max_warps_per_core} x warp_size {self.warp_size} "
                    f"= {threads} is not max_threads_per_core {self.max_threads_per_core}"
                )
        if self.subpartitions:
            for name in ("registers_per_core", "max_warps_per_core"):
                value = getattr(self, name)
                if value is not None and value % self.subpartitions:
                    raise InputError(
                        f"{name} {value} is no multiple of subpartitions {self.subpartitions}"
                    )
        if self.cluster_max is not None and self.cluster_portable_max is None:
            raise InputError(f"cluster_max {self.cluster_max} without a cluster_portable_max")

    def has(self, memory: Memory | str) -> bool:
        """Return whether the device has this memory."""
        return any(pool.memory == memory for pool in self.pools)

    def pool(self, memory: Memory | str) -> Pool:
        """Return the pool of a memory.

        Raises:
            InputError: The device has no such memory; the message names those it has.
        """
        for pool in self.pools:
            if pool.memory == memory:
                return pool
        names = ", ".join(pool.memory for pool in self.pools)
        raise InputError(f"{self.name} has no {memory} memory; it has {names}")

    @property
    def main_pool(self) -> Pool:
        """The memory that tiles are staged in: shared, LDS, UB ..."""
        return self.pools[0]

    @property
    def largest_cluster(self) -> int | None:
        """The most blocks of a cluster, however it is launched; None if nobody published it."""
        return self.cluster_portable_max if "cluster_max" in self.no_limit else self.cluster_max

    @property
    def register_step(self) -> int | None:
        """Registers come to a warp in multiples of this; None if nobody published it."""
        return 1 if "register_granule" in self.no_limit else self.register_granule

    def target(self, toolchain: str) -> str | None:
        """Return what ``toolchain`` calls this device, or None if it cannot compile for it."""
        return dict(self.targets).get(toolchain)

    def why_no_target(self, toolchain: str) -> str:
        """Return in words why `target` is None."""
        unknown = f"{toolchain} has no target for {self.name}"
        return dict(self.no_target).get(toolchain, unknown)


def _check_none(value: Pool | Device, where: str) -> None:
    """Refuse a number that is said not to exist and is there."""
    for name in value.no_limit:
        found = getattr(value, name)
        if found is not None:
            raise InputError(f"{where}{name} {found} is there, and no_limit says that it is not")


def _check(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise InputError(f"{name} {value} is not {wanted}")


def _order(small: tuple[str, int | None], large: tuple[str, int | None]) -> None:
    if small[1] is not None and large[1] is not None and small[1] > large[1]:
        raise InputError(f"{small[0]} {small[1]} is above {large[0]} {large[1]}")
