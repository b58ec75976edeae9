"""What lowering puts into an Ascend core's memories besides the author's buffers.

Scratch of a reduction across threads is an allocation of the compiler's own, made after the
scheduler has counted. A matrix multiplication that reads L1 passes its operands through L0A and
L0B, which it addresses from 0 on; no allocation stands for them. Where the author keeps buffers
of his own there, both mean the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilefit._frontends.tilelang.ascend.ir import Key, block_names
from tilefit._frontends.tilelang.ascend.steps import VECTOR_REGIONS, Steps
from tilefit._frontends.tilelang.declared import visit
from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.reasons import Align, Why

# How tl_templates/ascend/gemm.h takes turns: position of M, and how many bits an element moves
# the second slot by. Only the block-scaled template counts two 4-bit elements as one byte there.
_GEMMS = {"tl.ascend_gemm_l1": 3, "tl.ascend_blockscaled_gemm_l1": 5}
_SLOTS = 2
_L0_ALIGN_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """A matrix multiplication that reads its operands from L1.

    Attributes:
        a: Name of the first operand's buffer.
        b: Name of the second one's.
        dtype: Element type of both.
        rows_a: Rows of a slice of A (M).
        rows_b: Rows of a slice of B (N).
        depth: Columns of a slice: the part of K that it takes at a time.
        slots: How many slices are on their way at a time.
        scaled: It multiplies block-scaled operands.
    """

    a: str
    b: str
    dtype: str
    rows_a: int
    rows_b: int
    depth: int
    slots: int
    scaled: bool

    def bytes(self, rows: int) -> int:
        """Return the bytes from address 0 to the end of the last slot of an operand."""
        from tilelang import tvm

        kind = tvm.DataType(self.dtype)
        bits = int(kind.bits) * int(kind.lanes)
        packed = "x2" in self.dtype  # one element of the generated code holds two
        exact = bits // 2 if packed else bits
        stride = exact if self.scaled else max(exact, 8)
        elements = rows * self.depth
        return (elements * stride * (self.slots - 1) + elements * exact) // 8


def gemms_of_l1(function: Any) -> tuple[Gemm, ...]:
    """Return the multiplications of a device function that read L1, each kind once."""
    found: dict[Gemm, None] = {}

    def look(node: Any) -> None:
        name = str(getattr(getattr(node, "op", None), "name", ""))
        if name not in _GEMMS:
            return
        at = _GEMMS[name]
        m, k, n, depth = (int(value) for value in node.args[at : at + 4])
        a, b = node.args[1], node.args[2]
        one = Gemm(
            a=str(a.args[1].name),
            b=str(b.args[1].name),
            dtype=str(a.args[0].dtype),
            rows_a=m,
            rows_b=n,
            depth=depth,
            slots=min(_SLOTS, k // depth),
            scaled="blockscaled" in name,
        )
        found[one] = None

    visit(function.body, look)
    return tuple(found)


def slot_buffers(
    gemms: tuple[Gemm, ...], own: Iterable[tuple[Buffer, Key]], steps: Steps
) -> list[Buffer]:
    """Return the L0A and L0B slots that multiplications from L1 use, equal ones once.

    Args:
        gemms: The multiplications of a device function.
        own: Its author's buffers: those of another one may have the same names.
        steps: The statements of all device functions.
    """
    keys: dict[str, Key | None] = {}
    for buffer, key in own:
        keys[buffer.name] = None if buffer.name in keys else key
    found: dict[tuple[Any, ...], Buffer] = {}
    for gemm in gemms:
        live = steps.multiplication(gemm.a, gemm.b, keys.get(gemm.a))
        for memory, operand, rows in _operands(gemm):
            kind = (memory, operand, rows, gemm.depth, gemm.slots, gemm.dtype)
            known = found.get(kind)
            found[kind] = Buffer(
                name=f"slots for {operand}",
                scope=f"shared.{memory}",
                memory=memory,
                owner=Owner.AIC,
                shape=(rows, gemm.depth),
                dtype=gemm.dtype.removesuffix("x2"),
                copies=gemm.slots,
                why=Why.L1_GEMM_SLOTS,
                detail=f"T.gemm takes {operand} in slices of {gemm.depth} columns",
                bytes=gemm.bytes(rows),
                align_bytes=_L0_ALIGN_BYTES,
                align_why=Align.L0,
                offset=0,
                live=_both(live, known.live) if known else live,
                origin="compiler",
            )
    return list(found.values())


def _operands(gemm: Gemm) -> tuple[tuple[Memory, str, int], ...]:
    return (Memory.L0A, gemm.a, gemm.rows_a), (Memory.L0B, gemm.b, gemm.rows_b)


def _both(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def overlaps_of(
    buffers: Iterable[tuple[Buffer, Key]], gemms: tuple[Gemm, ...], steps: Steps
) -> tuple[str, ...]:
    """Say which L0A and L0B buffers of the author's a multiplication from L1 writes over."""
    lines: dict[str, None] = {}
    for own, key in buffers:
        overlapping = (own.copies or 1) > 1
        for gemm in gemms:
            for memory, _, rows in _operands(gemm):
                if own.memory is not memory or not _hit(own, gemm.bytes(rows)):
                    continue
                if steps.multiplied_while_live(key, gemm.a, gemm.b, overlapping=overlapping):
                    line = (
                        f"T.gemm of {gemm.a} and {gemm.b} writes bytes 0 to {gemm.bytes(rows):,} "
                        f"of {memory.upper()} while {own.name} is live at {own.offset:,}"
                    )
                    lines[line] = None
    return tuple(lines)


def _hit(own: Buffer, end: int) -> bool:
    return own.offset is not None and bool(own.bytes) and own.offset < end


def workspace_regions(function: Any) -> dict[Any, int]:
    """Return the number of the vector region that touches each storage, the first one."""
    found: dict[Any, int] = {}

    def look(node: Any) -> None:
        if type(node).__name__ != "SBlock":
            return
        index = dict(node.annotations or {}).get("tl.vf_source_index")
        if str(node.name_hint) not in VECTOR_REGIONS or index is None:
            return

        def inside(inner: Any) -> None:
            name = str(getattr(getattr(inner, "op", None), "name", ""))
            if name.endswith("tvm_access_ptr"):
                found.setdefault(inner.args[1], int(index))
            elif type(inner).__name__ in ("BufferLoad", "BufferStore"):
                found.setdefault(inner.buffer.data, int(index))

        visit(node, inside)

    visit(function.body, look)
    return found


def has_simt(function: Any) -> bool:
    """Return whether any vector region of a device function is a SIMT one."""
    return "SIMT_VF" in block_names(function.body)


def cores_of(function: Any, gemms: tuple[Gemm, ...]) -> str:
    """Return the cores that a block occupies: ``cube``, ``vector`` or ``mixed``."""
    names = block_names(function.body)
    if {"CUBE", "VECTOR"} <= names:
        return "mixed"
    if "CUBE" in names or (gemms and "VECTOR" not in names):
        return "cube"
    return "vector"
