"""What a frontend hands over: one `Kernel` per device function, plain values only.

A Kernel travels as JSON from the child process that read it, and the same JSON, recorded from
pinned toolchains, is the fixture of tests that need no toolchain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tilefit._errors import InputError
from tilefit._kernel.extent import OpenSize
from tilefit._kernel.memory import STAGING, Evidence, Memory, Owner
from tilefit._kernel.reasons import Align, Why
from tilefit._kernel.units import round_up

KERNEL_VERSION = 1
"""Of a kernel's JSON; it grows when a key changes its meaning, or a new one has to be there."""

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
        why: Why there are that many copies.
        detail: The same for this buffer in a few words, for people.
        bytes: Size of all copies for one owner; None if symbolic.
        bytes_per_thread: For registers: what one thread holds after lowering.
        align_bytes: Alignment inside its part of the memory, where known.
        align_why: What asks for that alignment.
        offset: Byte offset inside its part of the memory, where the compiler placed it.
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
    why: Why | None = None
    detail: str | None = None
    bytes: int | None = None
    bytes_per_thread: int | None = None
    align_bytes: int | None = None
    align_why: Align | None = None
    offset: int | None = None
    live: tuple[int, int] | None = None
    line: int | None = None
    origin: str = "source"
    static: bool = False
    stages: int | None = None
    padded_shape: tuple[Dim, ...] | None = None
    evidence: Evidence = Evidence.COMPILED
    needs: str | None = None


class StageRule(StrEnum):
    """What becomes of the stages that an author asks for."""

    EXACT = "exact"  # every one of them is allocated
    CHOSEN = "chosen"  # a scheduler chose how many versions to keep, at most that many
    AT_MOST = "at-most"  # read from the source: a scheduler would keep as many as fit
    UNKNOWN = "unknown"  # read from the source: nobody says how many are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What one owner needs of one memory, as the toolchain tells it.

    Attributes:
        memory: Which one.
        owner: Who has one of them.
        dynamic_bytes: From address 0 to the end of the last buffer that is laid out at launch;
            None if symbolic.
        least_bytes: Where the compiler may lay its buffers over each other, the fewest bytes it
            can come to; the others are the most then. None where they are what it takes.
        static_bytes: The part fixed at compile time, item by item, before rounding.
        align_bytes: Alignment of the dynamic part behind the static one; None without one.
        columns: The same in columns, where the memory is counted in them.
        evidence: How that came to be known.
    """

    memory: Memory
    owner: Owner
    dynamic_bytes: int | None
    least_bytes: int | None = None
    static_bytes: int = 0
    align_bytes: int | None = None
    columns: int | None = None
    evidence: Evidence = Evidence.COMPILED

    @property
    def padded_static_bytes(self) -> int:
        """The static part as a launch counts it: up to where the dynamic one begins."""
        return round_up(self.static_bytes, self.align_bytes or 1)

    @property
    def total_bytes(self) -> int | None:
        """Both parts as a launch counts them; None if symbolic."""
        if self.dynamic_bytes is None:
            return None
        return self.dynamic_bytes + self.padded_static_bytes


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
        threads: Threads per block after lowering (warp specialisation adds some); None if
            not known.
        grid: Blocks in x, y, z; None where no launch was given, as for an object file.
        cluster: Blocks of a cluster in x, y, z; None without clusters.
        sizes: The sizes open until run time that the grid hangs on; its extents are arithmetic
            over their names (`_kernel.extent`).
    """

    threads_declared: int | None
    threads: int | None
    grid: tuple[Dim, ...] | None
    cluster: tuple[int, ...] | None = None
    sizes: tuple[OpenSize, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUse:
    """A matrix instruction of the generated code.

    Attributes:
        path: The family: ``mma``, ``wgmma``, ``tcgen05`` (NVIDIA), ``mfma`` or ``wmma`` (AMD).
        shape: As the compiler names it (``m16n8k16``, ``f32_16x16x16f16``); None where it does not.
        dtype: Type of its first operand (``float16``, ``tf32``), or as the compiler spells it.
    """

    path: str
    shape: str | None
    dtype: str


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
class Assembled:
    """What the assembler made of a device function.

    Attributes:
        registers_per_thread: Registers at launch; roles may move them later.
        spill_bytes: Bytes that a thread spills (stores).
        stack_bytes: Stack of a thread.
        static_bytes: Static shared memory, as the assembler lays it out.
        matrix_instructions: Matrix instructions in the machine code; None if not read.
        matrix_kinds: Their names without suffixes, sorted (``HGMMA``).
        traps: Instructions in it that end the kernel with an error; None if not read.
    """

    registers_per_thread: int
    spill_bytes: int
    stack_bytes: int
    static_bytes: int
    matrix_instructions: int | None = None
    matrix_kinds: tuple[str, ...] = ()
    traps: int | None = None


@dataclass(frozen=True, slots=True)
class CannotAssemble:
    """That there is no machine code of a device function, and why.

    Attributes:
        reason: Why, in one line.
        for_want_of_tools: Whether it is the toolkit here that lacks something, and not the kernel:
            another one may build it.
    """

    reason: str
    for_want_of_tools: bool = False


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
        memories: What it needs of each memory that it uses. The one that the tiles of a block
            are staged in is there even if it takes nothing of it.
        complete: Whether these are all its bytes; False where an allocation could not be read.
        stage_rule: What becomes of the stages that its author asks for.
        conditions: Codes of the device's conditional limits that hold for it (``simt``).
        cores: On Ascend: ``cube``, ``vector`` or ``mixed``, the cores that a block occupies.
        overlaps: Pieces of one memory that the compiler gave to two live things, one line each.
        reuse: Whether the compiler may place buffers over dead ones.
        loops: Pipelined loops and loops without iterations.
        roles: Warp-group roles; empty without warp specialisation.
        gemms: Matrix multiplications that the author wrote (T.gemm and its kin).
        matrix: The matrix instructions that the compiler wrote for them; None where no code was
            read.
        assembly: What the assembler made of it, or why nothing; None if it was not tried.
        notes: Remarks of the toolchain that the author should see.
        unread: Of a source that was read alone: why it may allocate more than `buffers`, a line
            each.
        build: What it takes to assemble it, only where that was asked for.
        code: A digest of the code that was generated: kernels with one digest are one kernel,
            whatever their parameters. None where none was.
        arguments: Type and shape of each tensor that it is called with, in order, where known: a
            parameter that changes them is a size of the problem.
    """

    name: str
    function: str
    toolchain: str
    toolchain_version: str
    target: str
    params: tuple[tuple[str, Any], ...]
    launch: Launch
    buffers: tuple[Buffer, ...]
    memories: tuple[MemoryUse, ...]
    complete: bool
    stage_rule: StageRule = StageRule.EXACT
    conditions: tuple[str, ...] = ()
    cores: str | None = None
    overlaps: tuple[str, ...] = ()
    reuse: bool = True
    loops: tuple[Loop, ...] = ()
    roles: tuple[Role, ...] = ()
    gemms: int = 0
    matrix: tuple[MatrixUse, ...] | None = None
    assembly: Assembled | CannotAssemble | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    build: Build | None = None
    code: str | None = None
    arguments: tuple[str, ...] = ()

    def use(self, *memories: Memory) -> MemoryUse | None:
        """Return what it needs of the first of these memories that it uses; None if of none."""
        return next((use for use in self.memories if use.memory in memories), None)

    @property
    def staged(self) -> MemoryUse | None:
        """What it needs of the memory that a block's tiles are staged in; None without one."""
        return self.use(*STAGING)

    @property
    def assembled(self) -> Assembled | None:
        """What the assembler made of it; None if it made nothing, or was not asked."""
        return self.assembly if isinstance(self.assembly, Assembled) else None

    @property
    def built(self) -> str:
        """In a word: ``not-tried``, ``assembled`` or ``cannot-assemble``."""
        if self.assembly is None:
            return "not-tried"
        return "cannot-assemble" if isinstance(self.assembly, CannotAssemble) else "assembled"

    def to_dict(self) -> dict[str, Any]:
        """Return the kernel as JSON-ready values."""
        return {"schema_version": KERNEL_VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Kernel:
        """Rebuild a kernel from `to_dict`, also after a trip through JSON.

        Raises:
            InputError: It is of another version.
            KeyError: A required key is missing.
            TypeError: There is a key that no field has.
        """
        version, fields = data.get("schema_version"), {**data}
        if version != KERNEL_VERSION:
            raise InputError(
                f"a kernel's JSON has schema_version {version!r}, this tilefit reads "
                f"{KERNEL_VERSION}: make it again"
            )
        del fields["schema_version"]
        return cls(
            **{
                **fields,
                "params": tuple((name, value) for name, value in data["params"]),
                "launch": _launch(data["launch"]),
                "buffers": tuple(_buffer(item) for item in data["buffers"]),
                "memories": tuple(_use(item) for item in data["memories"]),
                "stage_rule": StageRule(data["stage_rule"]),
                "conditions": tuple(data["conditions"]),
                "overlaps": tuple(data["overlaps"]),
                "loops": tuple(
                    Loop(**_tuples(item, "buffers", "copied")) for item in data["loops"]
                ),
                "roles": tuple(Role(**item) for item in data["roles"]),
                "matrix": _matrix(data.get("matrix")),
                "assembly": data["assembly"] and _assembly(data["assembly"]),
                "notes": tuple(data["notes"]),
                "unread": tuple(data.get("unread", ())),
                "arguments": tuple(data.get("arguments", ())),
                "build": data["build"] and Build(**_tuples(data["build"], "include_dirs", "flags")),
            }
        )


def _launch(data: dict[str, Any]) -> Launch:
    values = _tuples(data, "grid", "cluster")
    values["sizes"] = tuple(OpenSize(**item) for item in data.get("sizes", ()))
    return Launch(**values)


def _buffer(data: dict[str, Any]) -> Buffer:
    values = _tuples(data, "shape", "live", "padded_shape")
    values["memory"] = Memory(values["memory"])
    values["owner"] = Owner(values["owner"])
    values["evidence"] = Evidence(values["evidence"])
    values["why"] = values["why"] and Why(values["why"])
    values["align_why"] = values["align_why"] and Align(values["align_why"])
    return Buffer(**values)


def _matrix(data: list[dict[str, Any]] | None) -> tuple[MatrixUse, ...] | None:
    return None if data is None else tuple(MatrixUse(**item) for item in data)


def _assembly(data: dict[str, Any]) -> Assembled | CannotAssemble:
    if "reason" in data:
        return CannotAssemble(**data)
    return Assembled(**_tuples(data, "matrix_kinds"))


def _use(data: dict[str, Any]) -> MemoryUse:
    enums = {
        "memory": Memory(data["memory"]),
        "owner": Owner(data["owner"]),
        "evidence": Evidence(data["evidence"]),
    }
    return MemoryUse(**{**data, **enums})


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
