"""Allocation function -> scope string -> physical memory, in the four dialects that use them.

The same string names different places: ``shared.dyn`` is shared memory on an NVIDIA GPU, LDS on
an AMD one, UB in TileLang's Ascend dialect and L1 in the adapter tilelang-ascend. Hence a scope
is never looked up without its dialect.

Sources:

* ``tilelang``, ``tilelang.ascend``: TileLang 0.1.15, ``tilelang/language/allocate.py`` and
  ``tilelang/ascend/language/{allocate,simd}.py``; a test compares every row with the installed
  package. Alignments: the shared-memory merge pass (16 B unless an instruction asks for more)
  and ``src/ascend/transform/merge_ub_common.h``.
* ``tilelang-ascend@0.1.1``: ``tilelang/language/allocate.py`` of
  https://github.com/tile-ai/tilelang-ascend at the tags v0.1.1.010-release and
  v0.1.1.030-pre-release and at commit 95acbd7f; ``src/transform/ascend_infer_buffer_scope.cc``
  and ``ascend_memory_planning.cc`` there.
* ``tilelang-ascend@0.1.2``: the spelling of its pull requests 1266 and 1332.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory, Owner


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """What one allocation function gives.

    Attributes:
        dialect: One of `DIALECTS`.
        function: The function's name below the dialect's ``T``.
        scope: The scope string that it writes by default.
        memory: The physical memory behind it; in ``tilelang`` as on an NVIDIA GPU.
        owner: Who shares one instance of that memory.
        align_bytes: What the compiler aligns the buffer to at least; None where it places none.
        restrictions: What else to know; empty if nothing.
        when: The condition under which this row replaces the function's plain row; empty for
            the plain row.
    """

    dialect: str
    function: str
    scope: str
    memory: Memory
    owner: Owner
    align_bytes: int | None
    restrictions: str = ""
    when: str = ""


DIALECTS = ("tilelang", "tilelang.ascend", "tilelang-ascend@0.1.1", "tilelang-ascend@0.1.2")

TITLES = {
    "tilelang": "tilelang.language of TileLang 0.1.15; shared is LDS on AMD",
    "tilelang.ascend": "tilelang.ascend.language of TileLang 0.1.15, Ascend 950",
    "tilelang-ascend@0.1.1": "the adapter, tags 0.1.1.010 and 0.1.1.030",
    "tilelang-ascend@0.1.2": "the adapter, as 0.1.2 spells it",
}
"""One line about each dialect."""

# function [if condition] | scope | memory | owner | alignment in bytes or -
#     restrictions
_TABLES = {
    "tilelang": """
alloc_shared | shared.dyn | shared | block | 16
    in the block's one dynamic array; 128 to 1024 B where TMA, wgmma or tcgen05 reads it
alloc_shared if dtype bool | shared | shared | block | -
    a static array of its own; the dynamic one cannot take bool
alloc_fragment | local.fragment | registers | thread | -
    written in the block's shape, split over its threads
alloc_local | local | registers | thread | -
alloc_var | local.var | registers | thread | -
    one element of each thread; T.ptr makes it int64
alloc_global | global | global | device | -
    becomes a kernel parameter, which the host allocates
alloc_barrier | shared.barrier | shared | block | 16
    8 B each; every arrive count is at least 1
alloc_cluster_barrier | shared.cluster_barrier | shared | block | 16
    as alloc_barrier, for the blocks of a cluster
alloc_tmem | shared.tmem | tensor | block | -
    Blackwell; two dimensions or more; columns a power of two from 32, at most 512 per block;
    4 B of shared memory hold the address
alloc_reducer | local.reducer | undecided | block | -
    the compiler chooses registers and workspace; sum, max, min, and for integers bitand, bitor,
    bitxor
alloc_reducer if replication= is given | local.fragment | registers | thread | -
    deprecated
alloc_descriptor | local.descriptor.wgmma | registers | thread | -
    one uint64; other kinds: tcgen05_smem, tcgen05_instr
alloc_wgmma_desc | local.descriptor.wgmma | registers | thread | -
    one uint64
alloc_tcgen05_smem_desc | local.descriptor.tcgen05_smem | registers | thread | -
    one uint64
alloc_tcgen05_instr_desc | local.descriptor.tcgen05_instr | registers | thread | -
    one uint32
alloc_tcgen05_instruction_desc | local.descriptor.tcgen05_instr | registers | thread | -
    the same under its long name
alloc_buffer | global | global | device | -
    TVM's own; takes any scope, this one by default
allocate | global | global | device | -
    another name of alloc_buffer
""",
    "tilelang.ascend": """
alloc_shared | shared.dyn | ub | AIV | 32
    bool too; with T.dual_copy each of the two AIVs holds half of a tile
alloc_l1 | shared.l1 | l1 | AIC | 512
    operand tiles are padded to 16 rows and to 32 B of columns
alloc_l0a | shared.l0a | l0a | AIC | 512
    padded as in L1
alloc_l0b | shared.l0b | l0b | AIC | 512
    padded as in L1
alloc_l0c | shared.l0c | l0c | AIC | 1024
    padded to 16 rows and 16 columns
alloc_l0a_sf | shared.l0a.sf | none | AIC | -
    the MX scales of an L0A tile, kept by its address; 8 bit (K a multiple of 32) or 16 bit (64)
alloc_l0b_sf | shared.l0b.sf | none | AIC | -
    the same for an L0B tile
alloc_fragment | local.fragment | registers | thread | -
    in T.SimtVF; written in the tile's shape, split over the threads
alloc_local | local | registers | thread | -
    in T.SimtVF
alloc_var | local.var | registers | thread | -
    in T.SimtVF
simd.alloc_local | local | registers | AIV | -
    in T.SimdVF: an array of vector registers
simd.alloc_var | local.var | registers | AIV | -
    in T.SimdVF: one vector register
alloc_global | global | global | device | -
    becomes a kernel parameter, which the host allocates
alloc_barrier | shared.barrier | none | core | -
    this dialect has no operation on it and drops it
alloc_reducer | local.reducer | undecided | core | -
    in T.SimtVF; the compiler chooses registers and UB workspace
alloc_reducer if replication= is given | local.fragment | registers | thread | -
    deprecated
alloc_buffer | global | global | device | -
    TVM's own; takes any scope, this one by default
""",
    "tilelang-ascend@0.1.1": """
alloc_ub | shared | ub | AIV | 32
alloc_L1 | shared.dyn | l1 | AIC | 32
alloc_L1 if commit after 0.1.1.030 | shared.l1 | l1 | AIC | 32
    a pass turns it into shared.dyn
alloc_L0A | wmma.matrix_a | l0a | AIC | 32
alloc_L0B | wmma.matrix_b | l0b | AIC | 32
alloc_L0C | wmma.accumulator | l0c | AIC | 32
alloc_shared | shared.dyn | undecided | core | 32
    decided by use: UB if only vector operations touch it, else L1
alloc_shared if dtype bool | shared | ub | AIV | 32
alloc_fragment | local.fragment | undecided | AIC | 32
    decided by its place in T.gemm: L0A, L0B or L0C; in none: L0C
alloc_local | local | registers | core | -
    removed in commits after 0.1.1.030
alloc_var | local.var | registers | core | -
    a scalar
""",
    "tilelang-ascend@0.1.2": """
alloc_ub | shared.ub | ub | AIV | 32
alloc_L1 | shared.l1 | l1 | AIC | 32
alloc_L0A | wmma.matrix_a | l0a | AIC | 32
alloc_L0B | wmma.matrix_b | l0b | AIC | 32
alloc_L0C | wmma.accumulator | l0c | AIC | 32
alloc_shared | shared | undecided | core | 32
    decided by use, and rewritten to shared.ub or shared.l1
alloc_shared if dtype bool | shared.ub | ub | AIV | 32
alloc_fragment | local.fragment | undecided | AIC | 32
    decided by its place in T.gemm: L0A, L0B or L0C; in none: L0C
alloc_var | local.var | registers | core | -
    a scalar
""",
}


def _rows(dialect: str, table: str) -> list[ScopeRow]:
    rows: list[ScopeRow] = []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            row = rows[-1]
            rows[-1] = replace(row, restrictions=f"{row.restrictions} {line.strip()}".strip())
            continue
        what, scope, memory, owner, align = (cell.strip() for cell in line.split("|"))
        function, _, when = what.partition(" if ")
        align_bytes = None if align == "-" else int(align)
        rows.append(
            ScopeRow(dialect, function, scope, Memory(memory), Owner(owner), align_bytes, when=when)
        )
    return rows


SCOPES = tuple(row for dialect in DIALECTS for row in _rows(dialect, _TABLES[dialect]))
"""Every row, dialect by dialect."""


def scope_rows(dialect: str | None = None) -> tuple[ScopeRow, ...]:
    """Return the rows of one dialect, or of all.

    Raises:
        UnknownNameError: There is no such dialect.
    """
    if dialect is None:
        return SCOPES
    _known(dialect)
    return tuple(row for row in SCOPES if row.dialect == dialect)


# What a scope string means, also those that only a compiler writes. A test holds every row of
# the tables against these.
_LOCAL = {
    "local": Memory.REGISTERS,
    "local.var": Memory.REGISTERS,
    "local.fragment": Memory.REGISTERS,
    "local.reducer": Memory.UNDECIDED,
    "global": Memory.GLOBAL,
    "": Memory.GLOBAL,  # TVM leaves "global" out
}


def _gpu(shared: Memory) -> dict[str, Memory]:
    return {"shared": shared, "shared.dyn": shared, **_LOCAL}


_NVIDIA = {
    **_gpu(Memory.SHARED),
    "shared.barrier": Memory.SHARED,
    "shared.cluster_barrier": Memory.SHARED,
    "shared.tmem": Memory.TENSOR,
    "local.descriptor.wgmma": Memory.REGISTERS,
    "local.descriptor.tcgen05_smem": Memory.REGISTERS,
    "local.descriptor.tcgen05_instr": Memory.REGISTERS,
}
_APPLE = {
    **_gpu(Memory.THREADGROUP),
    "metal.simdgroup": Memory.REGISTERS,
    "metal.cooperative_tensor": Memory.REGISTERS,
}
_CUBE = (Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C)
_ASCEND_950 = {
    **_gpu(Memory.UB),
    # GetAscendScopeQualifier in src/ascend/codegen/codegen_ascend.cc
    **{f"shared.{memory}{dyn}": memory for memory in _CUBE for dyn in ("", ".dyn")},
    "shared.l0a.sf": Memory.NONE,
    "shared.l0b.sf": Memory.NONE,
    "shared.bt": Memory.BIAS,
    "shared.fp": Memory.FIXPIPE,
    "shared.barrier": Memory.NONE,
}
_ADAPTER = {
    **_LOCAL,
    "local.fragment": Memory.UNDECIDED,
    "wmma.matrix_a": Memory.L0A,
    "wmma.matrix_b": Memory.L0B,
    "wmma.accumulator": Memory.L0C,
    "shared.l1": Memory.L1,
    "shared.dyn": Memory.L1,
}
_MEANING = {
    ("tilelang", "nvidia"): _NVIDIA,
    ("tilelang", "amd"): _gpu(Memory.LDS),
    ("tilelang", "apple"): _APPLE,
    ("tilelang", "ascend"): _ASCEND_950,  # common kernels lowered for Ascend use its backend
    ("tilelang.ascend", "ascend"): _ASCEND_950,
    ("tilelang-ascend@0.1.1", "ascend"): {**_ADAPTER, "shared": Memory.UB},
    ("tilelang-ascend@0.1.2", "ascend"): {
        **_ADAPTER,
        "shared": Memory.UNDECIDED,
        "shared.ub": Memory.UB,
    },
}


def memory_of(dialect: str, vendor: str, scope: str) -> Memory:
    """Return the physical memory that ``scope`` names in a dialect on a vendor's chip.

    In the adapter ``shared.dyn`` is read as its passes leave it: L1. What ``T.alloc_shared``
    becomes is not known from its scope; its row says ``undecided``.

    Raises:
        UnknownNameError: There is no such dialect, or it has no such scope.
        InputError: The dialect does not run on that vendor's chips.
    """
    _known(dialect)
    meaning = _MEANING.get((dialect, vendor))
    if meaning is None:
        vendors = ", ".join(v for d, v in _MEANING if d == dialect)
        raise InputError(f"dialect {dialect} has no target of vendor {vendor!r}, only {vendors}")
    if scope not in meaning:
        raise UnknownNameError(f"{dialect} scope on {vendor}", scope, filter(None, meaning))
    return meaning[scope]


def _known(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise UnknownNameError("dialect", dialect, DIALECTS)
