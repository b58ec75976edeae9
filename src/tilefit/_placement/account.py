"""Account for every byte of a memory: buffers, gaps and rounding, summing to its total.

A byte that several buffers use in turn is counted once, at the buffer that starts first in
address order; the others say whose bytes they share. No row is a remainder: gaps are the
addresses that no buffer covers. On Ascend the versions of a buffer each start at a multiple of
32 B; what that leaves free between them is a row of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilefit._kernel.kernel import Buffer, Kernel, MemoryUse
from tilefit._kernel.memory import STAGING, Memory
from tilefit._kernel.reasons import Why
from tilefit._kernel.units import round_up
from tilefit._placement.ascend_compare import version_bytes, versions_of
from tilefit._placement.ascend_packer import END_ALIGN_BYTES, VERSION_ALIGN_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the account.

    Attributes:
        name: The buffer, or what the bytes are.
        kind: ``buffer``, ``gap``, ``alignment`` (between the versions of a buffer) or
            ``rounding``.
        static: In the static part.
        offset: First byte inside its part; None for the rounding.
        bytes: All bytes of it.
        own_bytes: Those of them that are first counted here.
        shares_with: Buffers that use some of the same bytes at other times.
        origin: ``source`` or ``compiler``.
        why: What they come from.
        memory: Where they are.
    """

    name: str
    kind: str
    static: bool
    offset: int | None
    bytes: int
    own_bytes: int
    shares_with: tuple[str, ...] = ()
    origin: str = "source"
    why: Why | None = None
    memory: Memory = Memory.SHARED


def account(kernel: Kernel) -> tuple[Row, ...]:
    """Return the rows of every memory of a kernel; each memory's `own_bytes` sum to its total.

    Returns:
        No row of a memory in which a size or an offset is unknown, or of whose static bytes the
        assembler counts others than we do.
    """
    return tuple(
        row
        for use in kernel.memories
        if (rows_of := _ROWS.get(use.memory)) is not None
        for row in rows_of(kernel, use)
    )


def _in_parts(kernel: Kernel, use: MemoryUse) -> list[Row]:
    """Return dynamic rows in address order, then static ones, and what rounds the static part."""
    mine = [b for b in kernel.buffers if b.memory is use.memory and b.copies != 0]
    if use.dynamic_bytes is None or any(b.offset is None or b.bytes is None for b in mine):
        return []
    padded = use.padded_static_bytes
    if kernel.assembled is not None and kernel.assembled.static_bytes != padded:
        return []
    rows = _part([b for b in mine if not b.static], use.dynamic_bytes, static=False)
    rows += _part([b for b in mine if b.static], use.static_bytes, static=True)
    if padded != use.static_bytes:
        rows.append(
            Row(
                name="rounding",
                kind="rounding",
                static=True,
                offset=use.static_bytes,
                bytes=padded - use.static_bytes,
                own_bytes=padded - use.static_bytes,
                origin="compiler",
                why=Why.STATIC_ROUNDING,
            )
        )
    return [replace(row, memory=use.memory) for row in rows]


def _part(buffers: list[Buffer], total: int, *, static: bool) -> list[Row]:
    rows: list[Row] = []
    end = 0  # every address below is accounted for
    for buffer in sorted(buffers, key=lambda b: (b.offset or 0, -(b.bytes or 0))):
        start, size = buffer.offset or 0, buffer.bytes or 0
        if start > end:
            rows.append(_gap(end, start, static=static))
        rows.append(
            Row(
                name=buffer.name,
                kind="buffer",
                static=static,
                offset=start,
                bytes=size,
                own_bytes=max(0, start + size - max(end, start)),
                shares_with=tuple(
                    other.name
                    for other in buffers
                    if other is not buffer and _overlap(buffer, other)
                ),
                origin=buffer.origin,
                why=buffer.why,
            )
        )
        end = max(end, start + size)
    if total > end:
        rows.append(_gap(end, total, static=static))
    return rows


def _gap(start: int, end: int, *, static: bool) -> Row:
    return Row(
        name="gap",
        kind="gap",
        static=static,
        offset=start,
        bytes=end - start,
        own_bytes=end - start,
        origin="compiler",
        why=Why.ALIGNMENT_GAP,
    )


def _overlap(a: Buffer, b: Buffer) -> bool:
    a_start, b_start = a.offset or 0, b.offset or 0
    return a_start < b_start + (b.bytes or 0) and b_start < a_start + (a.bytes or 0)


# ---- Ascend ----------------------------------------------------------------------------------

Span = tuple[int, int]
"""Addresses from the first byte to the one behind the last."""


def _in_versions(kernel: Kernel, use: MemoryUse) -> list[Row]:
    """Return the rows of one memory of Ascend, whose buffers have versions with room between."""
    buffers = [b for b in kernel.buffers if b.memory is use.memory and b.copies != 0]
    if use.total_bytes is None or any(b.offset is None or b.bytes is None for b in buffers):
        return []
    buffers.sort(key=lambda b: (b.offset or 0, -(b.bytes or 0)))
    covered: list[Span] = []
    rows, padding = [], []
    for buffer in buffers:
        content, between = _spans(buffer)
        rows.append(
            Row(
                name=buffer.name,
                kind="buffer",
                static=False,
                offset=buffer.offset,
                bytes=_length(content),
                own_bytes=_length(_without(content, covered)),
                shares_with=tuple(
                    o.name for o in buffers if o is not buffer and _overlap(buffer, o)
                ),
                origin=buffer.origin,
                why=buffer.why,
                memory=use.memory,
            )
        )
        covered = _joined([*covered, *content])
        padding.append((buffer, between))
    for buffer, between in padding:
        own = _without(between, covered)
        covered = _joined([*covered, *own])
        if own:
            name = f"alignment of {buffer.name}"
            rows.append(_filler(use, "alignment", own[0][0], own, Why.VERSION_ALIGNMENT, name))
    for start, end in _without([(0, use.total_bytes)], covered):
        last = end == use.total_bytes and end - start < END_ALIGN_BYTES
        kind, why = ("rounding", Why.ARENA_END) if last else ("gap", Why.ALIGNMENT_GAP)
        rows.append(_filler(use, kind, start, [(start, end)], why))
    return rows


def _filler(
    use: MemoryUse, kind: str, offset: int, spans: list[Span], why: Why, name: str | None = None
) -> Row:
    return Row(
        name=name or kind,
        kind=kind,
        static=False,
        offset=offset,
        bytes=_length(spans),
        own_bytes=_length(spans),
        origin="compiler",
        why=why,
        memory=use.memory,
    )


def _spans(buffer: Buffer) -> tuple[list[Span], list[Span]]:
    """Return what a buffer's versions cover, and what their alignment leaves free behind each."""
    start, size, copies = buffer.offset or 0, buffer.bytes or 0, versions_of(buffer) or 1
    one = version_bytes(buffer)
    if buffer.memory is not Memory.UB or copies < 2 or one is None:
        return [(start, start + size)], []
    step = round_up(one, VERSION_ALIGN_BYTES)
    if step == one or step * copies != size:
        return [(start, start + size)], []
    starts = [start + step * n for n in range(copies)]
    return [(s, s + one) for s in starts], [(s + one, s + step) for s in starts]


def _length(spans: list[Span]) -> int:
    return sum(end - start for start, end in spans)


def _joined(spans: list[Span]) -> list[Span]:
    """Return spans in address order, those that touch made one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined


def _without(spans: list[Span], covered: list[Span]) -> list[Span]:
    """Return what is left of spans outside others that are in order and apart."""
    left: list[Span] = []
    for start, end in spans:
        for begin, stop in covered:
            if begin < end and stop > start:
                if begin > start:
                    left.append((start, begin))
                start = max(start, stop)
        if start < end:
            left.append((start, end))
    return left


_ROWS = {
    **dict.fromkeys(STAGING, _in_parts),
    **dict.fromkeys((Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C), _in_versions),
}
"""How the bytes of a memory are laid out; no rows are known of others."""
