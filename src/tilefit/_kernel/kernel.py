"""What a frontend hands over: one `Kernel` per device function, plain values only.

A Kernel travels as JSON from the child process that read it, and the same JSON, recorded from
pinned toolchains, is the fixture of tests that need no toolchain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tilefit._kernel.memory import Evidence, Memory, Owner

Dim = int | str
"""A dimension or extent: an integer, or the expression as text where it is symbolic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One buffer of a kernel.

    Attributes:
        name: As written in the source, or as the compiler named it.
        scope: The scope string as written (``shared.dyn``, ``local.fragment`` ...).
        memory: The physical memory that the scope means for this target.
        owner: Who shares one instance of it.
        shape: As declared, one copy.
        dtype: Element type, as the toolchain spells it.
        copies: How often the compiler multiplied it, 0 if it vanished, None if the bytes are
            no whole multiple of the declared ones.
        why: Why there are that many copies: a code of `tilefit._kernel.reasons.REASONS`.
        detail: The same for this buffer in a few words, for people.
        bytes: Size of all copies for one owner; None if symbolic.
        bytes_per_thread: For registers: what one thread holds after lowering.
        align_bytes: Alignment inside its arena, where known.
        align_why: What asks for that alignment: a code of `tilefit._kernel.reasons.ALIGNMENTS`.
        offset: Byte offset inside its arena, where the compiler placed it.
        live: Live interval in program order, where known.
        line: Line in the source file, where known.
        origin: ``source`` if the author wrote it, ``compiler`` if lowering added it.
        static: True for the statically allocated part of shared memory.
        stages: The ``num_stages`` that the author asked of the loop that decides `copies`, where
            the compiler is free to take fewer (Ascend); None elsewhere.
        padded_shape: Shape of one copy as the hardware keeps it (Ascend's fractals); None if it
            is the declared one.
        evidence: How `bytes` came to be known.
        needs: Of a source that was read alone: what `bytes` needs that it does not give.
    """

    name: str
    scope: str
    memory: Memory
    owner: Owner
    shape: tuple[Dim, ...]
    dtype: str
    copies: int | None = 1
    why: str | None = None
    detail: str | None = None
    bytes: int | None = None
    bytes_per_thread: int | None = None
    align_bytes: int | None = None
    align_why: str | None = None
    offset: int | None = None
    live: tuple[int, int] | None = None
    line: int | None = None
    origin: str = "source"
    static: bool = False
    stages: int | None = None
    padded_shape: tuple[Dim, ...] | None = None
    evidence: Evidence = Evidence.COMPILED
    needs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """The bytes of one memory as the compiler laid them out, where a kernel uses several.

    Attributes:
        memory: Which one.
        owner: Who has one of them.
        total_bytes: From address 0 to the end of the last buffer; None if symbolic.
        evidence: How that came to be known.
    """

    memory: Memory
    owner: Owner
    total_bytes: int | None
    evidence: Evidence = Evidence.COMPILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop of the source that the author asked to pipeline, or that never runs.

    Attributes:
        variable: Name of the loop variable.
        extent: Number of iterations, or its expression.
        num_stages: The stages asked for; None if the loop is not pipelined.
        buffers: Names of the on-chip buffers that its body touches.
        copied: Those of them that a T.copy from global memory fills in it.
    """

    variable: str
    extent: Dim
    num_stages: int | None
    buffers: tuple[str, ...]
    copied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A group of warps with a job and a register limit of its own (setmaxnreg).

    Attributes:
        name: ``producer`` or ``consumer``.
        threads: Threads of the group.
        registers: Registers per thread while the role runs; None if not set.
    """

    name: str
    threads: int
    registers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the kernel is launched.

    Attributes:
        threads_declared: Threads per block as the author wrote them.
        threads: Threads per block after lowering (warp specialisation adds some).
        grid: Blocks in x, y, z.
        cluster: Blocks of a cluster in x, y, z; None without clusters.
    """

    threads_declared: int | None
    threads: int | None
    grid: tuple[Dim, ...]
    cluster: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What it takes to assemble a kernel's module.

    Attributes:
        source: Generated source of the whole module.
        include_dirs: Folders that hold its headers.
        flags: Flags that the kernel asks the compiler for.
    """

    source: str
    include_dirs: tuple[str, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One device function as a toolchain made it for one target.

    Attributes:
        name: The factory or kernel that the user named.
        function: The device function.
        toolchain: Name of the toolchain.
        toolchain_version: Its version.
        target: Target as that toolchain names it (``sm_90a``).
        params: Parameters that it was built with, defaults included, as text-safe values.
        launch: Threads, grid, cluster.
        buffers: Every on-chip and register buffer.
        dynamic_bytes: Dynamic shared memory of one block; None if symbolic.
        static_bytes: Static shared memory laid out item by item, before rounding.
        dynamic_align_bytes: Alignment of the module's dynamic array; None without one.
        arenas: On Ascend: UB, L1, L0A, L0B, L0C as the compiler laid them out, those that the
            kernel uses; empty where shared memory is all there is.
        conditions: Codes of the device's conditional limits that hold for it (``simt``).
        cores: On Ascend: ``cube``, ``vector`` or ``mixed``, the cores that a block occupies.
        overlaps: Pieces of one memory that the compiler gave to two live things, one line each.
        reuse: Whether the compiler may place buffers over dead ones.
        loops: Pipelined loops and loops without iterations.
        roles: Warp-group roles; empty without warp specialisation.
        gemms: Matrix multiplications that the author wrote (T.gemm and its kin).
        built: ``not-tried``, ``assembled`` or ``cannot-assemble``.
        built_reason: Why it could not be assembled.
        registers_per_thread: Registers at launch, None unless assembled.
        spill_bytes: Bytes that a thread spills (stores), None unless assembled.
        stack_bytes: Stack of a thread, None unless assembled.
        assembled_static_bytes: Static shared memory by the assembler, None unless assembled.
        matrix_instructions: Matrix instructions in the machine code, None if not read.
        matrix_kinds: Their names.
        notes: Remarks of the toolchain that the author should see.
        unread: Of a source that was read alone: why it may allocate more than `buffers`, a line
            each.
        build: What it takes to assemble it, only where that was asked for.
    """

    name: str
    function: str
    toolchain: str
    toolchain_version: str
    target: str
    params: tuple[tuple[str, Any], ...]
    launch: Launch
    buffers: tuple[Buffer, ...]
    dynamic_bytes: int | None
    static_bytes: int
    dynamic_align_bytes: int | None
    arenas: tuple[Arena, ...] = ()
    conditions: tuple[str, ...] = ()
    cores: str | None = None
    overlaps: tuple[str, ...] = ()
    reuse: bool = True
    loops: tuple[Loop, ...] = ()
    roles: tuple[Role, ...] = ()
    gemms: int = 0
    built: str = "not-tried"
    built_reason: str | None = None
    registers_per_thread: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    assembled_static_bytes: int | None = None
    matrix_instructions: int | None = None
    matrix_kinds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    build: Build | None = None

    @property
    def staging(self) -> Memory:
        """The memory that its tiles are staged in: LDS on AMD, shared memory elsewhere."""
        return Memory.LDS if self.target.startswith("gfx") else Memory.SHARED

    def to_dict(self) -> dict[str, Any]:
        """Return the kernel as JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Kernel:
        """Rebuild a kernel from `to_dict`, also after a trip through JSON.

        Raises:
            KeyError: A required key is missing.
            TypeError: There is a key that no field has.
        """
        return cls(
            **{
                **data,
                "params": tuple((name, value) for name, value in data["params"]),
                "launch": Launch(**_tuples(data["launch"], "grid", "cluster")),
                "buffers": tuple(_buffer(item) for item in data["buffers"]),
                "arenas": tuple(_arena(item) for item in data["arenas"]),
                "conditions": tuple(data["conditions"]),
                "overlaps": tuple(data["overlaps"]),
                "loops": tuple(
                    Loop(**_tuples(item, "buffers", "copied")) for item in data["loops"]
                ),
                "roles": tuple(Role(**item) for item in data["roles"]),
                "matrix_kinds": tuple(data["matrix_kinds"]),
                "notes": tuple(data["notes"]),
                "unread": tuple(data.get("unread", ())),
                "build": data["build"] and Build(**_tuples(data["build"], "include_dirs", "flags")),
            }
        )


def _buffer(data: dict[str, Any]) -> Buffer:
    values = _tuples(data, "shape", "live", "padded_shape")
    values["memory"] = Memory(values["memory"])
    values["owner"] = Owner(values["owner"])
    values["evidence"] = Evidence(values["evidence"])
    return Buffer(**values)


def _arena(data: dict[str, Any]) -> Arena:
    return Arena(
        memory=Memory(data["memory"]),
        owner=Owner(data["owner"]),
        total_bytes=data["total_bytes"],
        evidence=Evidence(data["evidence"]),
    )


def _tuples(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a copy of ``data`` in which the named lists are tuples again."""
    return {
        key: tuple(value) if key in names and value is not None else value
        for key, value in data.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a kernel factory.

    Attributes:
        name: Its name, as `--set` takes it.
        default: The default, other things than numbers and text as text.
        required: True if it has no default.
    """

    name: str
    default: Any
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A kernel that a file offers.

    Attributes:
        name: What follows ``::``.
        style: ``factory``, ``eager`` or ``prim_func``.
        line: Line in the file, where known.
        parameters: In order of declaration.
    """

    name: str
    style: str
    line: int | None
    parameters: tuple[Parameter, ...]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Listing:
        """Rebuild a listing from JSON."""
        return cls(**{**data, "parameters": tuple(Parameter(**p) for p in data["parameters"])})
