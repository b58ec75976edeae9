"""The buffers of a lowered TileLang kernel: size, copies and why, offset, live interval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from tilefit._frontends.ptx import COLUMN_BYTES
from tilefit._frontends.tilelang.declared import allocated_in, dim, lowered_name, nbytes, visit
from tilefit._frontends.tilelang.liveness import AGGRESSIVE_MERGE, DISABLE_REUSE, live_buffers
from tilefit._frontends.tilelang.sizes import Sizes
from tilefit._frontends.tilelang.why import Causes
from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import STAGING, Memory, Owner
from tilefit._kernel.reasons import Align, Why
from tilefit._kernel.scopes import memory_of
from tilefit._kernel.units import round_up

# Alignment of a static item whose declaration does not say; TileLang's generated source does.
_STATIC_ALIGN = 16


def buffers_of(
    declared: list[Any],
    before: Any,
    after: Any,
    causes: Causes,
    source: str,
    configs: Mapping[str, Any],
    *,
    sizes: Sizes,
    seen: Mapping[str, int],
    used: Set[Any],
    vendor: str,
) -> tuple[tuple[Buffer, ...], int]:
    """Return every buffer, source ones first, and the static bytes laid out item by item.

    Args:
        declared: What the author allocated in this T.Kernel.
        before: The device function before shared memory is merged.
        after: The same after it.
        causes: What the passes did to its buffers.
        source: Generated source of the module.
        configs: The kernel's pass configs.
        sizes: Its open sizes.
        seen: How many buffers of each lowered name earlier T.Kernels of the PrimFunc have.
        used: Data variables of the buffers that this T.Kernel uses.
        vendor: Whose chip the target is.
    """
    lowered = allocated_in(before)
    rows: list[tuple[Buffer, Any]] = []
    rest = list(lowered)
    columns = _tmem_columns(source)
    count = dict(seen)
    for written in declared:
        name = lowered_name(written)
        nth = count.get(name, 0)
        count[name] = nth + 1
        if str(written.scope()) == "shared.tmem":
            # what is left of its name in shared memory is the word that holds its address
            rows.append((_tmem_buffer(written, columns, sizes), None))
            continue
        match = next((a for a in rest if lowered_name(a) == name), None)
        if match is not None:
            rest.remove(match)
        buffer = _source_buffer(written, match, causes, nth, vendor, sizes)
        if match is None and written.data in used and buffer.memory is Memory.REGISTERS:
            buffer = replace(buffer, bytes_per_thread=None)  # what became of it is not known
        rows.append((buffer, match))
    rows += [(_compiler_buffer(one, columns, vendor, sizes), one) for one in rest]
    offsets = _offsets(after, sizes)
    alone = _only_dynamic(lowered)
    # TileLang turns aggressive merging off where reuse is off
    aggressive = bool(configs.get(AGGRESSIVE_MERGE)) and not configs.get(DISABLE_REUSE)
    live = {found.var: found for found in live_buffers(before, sizes, aggressive=aggressive)}
    # the compiler ordered what was open without its size: no order that our packer could check
    ordered = not sizes.values or all(
        isinstance(dim(extent), int) for a in lowered if a.data in live for extent in a.shape
    )
    static_align = _static_aligns(source)
    recorded = dict(dict(before.attrs or {}).get("tl.smem_alignment_map", {}))
    finished: dict[Buffer, None] = {}
    static_end = 0
    static_at: dict[Any, tuple[int, int]] = {}
    # ptxas lays static items out in the order of the generated code, which is that of the IR
    for buffer, allocation in sorted(
        (row for row in rows if row[0].static), key=lambda row: lowered.index(row[1])
    ):
        align = static_align.get(str(allocation.name), _STATIC_ALIGN)
        start = round_up(static_end, align)
        static_end = start + (buffer.bytes or 0)
        static_at[allocation] = (start, align)
    for number, (buffer, allocation) in enumerate(rows):
        if buffer.static:
            start, align = static_at[allocation]
            buffer = replace(buffer, offset=start, align_bytes=align, align_why=Align.DECLARED)
        elif buffer.memory in STAGING and allocation is not None:
            offset = 0 if allocation is alone else offsets.get(allocation.data)
            buffer = replace(buffer, offset=offset)
            if allocation.data in live and ordered:
                one = live[allocation.data]
                span = (one.start, one.end)
                why = _align_why(one.align_bytes, recorded=one.name in recorded)
                buffer = replace(buffer, align_bytes=one.align_bytes, align_why=why, live=span)
        # unrolled loops repeat the compiler's scratch registers: one row for equal ones
        scratch = buffer.origin == "compiler" and buffer.memory is Memory.REGISTERS
        if scratch and buffer in finished:
            continue
        key = buffer if buffer not in finished else replace(buffer, name=f"{buffer.name}#{number}")
        finished[key] = None
    return tuple(finished), static_end


_SWIZZLES = {
    16: Align.LEAST,
    256: Align.TMA_SWIZZLE_32,
    512: Align.TMA_SWIZZLE_64,
    1024: Align.TMA_SWIZZLE_128,
}


def _align_why(align_bytes: int, *, recorded: bool) -> Align | None:
    """Return the code that says what asks for an alignment."""
    if not recorded:
        return {16: Align.LEAST, 1024: Align.DESCRIPTOR}.get(align_bytes)
    return _SWIZZLES.get(align_bytes, Align.TMA)


def _only_dynamic(lowered: list[Any]) -> Any:
    """Return the dynamic buffer if there is just one: the compiler does not merge it."""
    dynamic = [a for a in lowered if str(a.scope()) == "shared.dyn"]
    return dynamic[0] if len(dynamic) == 1 else None


def _offsets(function: Any, sizes: Sizes) -> dict[Any, int]:
    """Return the byte offset that the merge pass bound to each buffer's pointer."""
    found: dict[Any, int] = {}

    def look(node: Any) -> None:
        value = getattr(node, "value", None)
        op = str(getattr(getattr(value, "op", None), "name", ""))
        if type(node).__name__ == "Bind" and op.endswith("handle_add_byte_offset"):
            offset = dim(node.value.args[1], sizes)
            if isinstance(offset, int):
                found[node.var] = offset

    visit(function.body, look)
    return found


def _source_buffer(
    written: Any, lowered: Any, causes: Causes, nth: int, vendor: str, sizes: Sizes
) -> Buffer:
    scope = str(written.scope())
    shape = tuple(dim(d, sizes) for d in written.shape)
    one_copy = nbytes(shape, written.dtype)
    memory = memory_of("tilelang", vendor, scope)
    owner = Owner.BLOCK if scope.startswith(("shared", "local.fragment")) else Owner.THREAD
    now = None if lowered is None else nbytes([dim(d, sizes) for d in lowered.shape], lowered.dtype)
    buffer = Buffer(
        name=str(written.name),
        scope=scope,
        memory=memory,
        owner=owner,
        shape=shape,
        dtype=str(written.dtype),
        bytes=one_copy,
        line=_line(written),
    )
    if memory is Memory.GLOBAL:
        return replace(buffer, owner=Owner.DEVICE, why=Why.DEVICE_MEMORY)
    if memory is Memory.REGISTERS:
        return replace(buffer, bytes_per_thread=0 if lowered is None else now)
    if lowered is None:
        return replace(buffer, bytes=0, copies=0, why=causes.why(written, nth, 0))
    copies = None
    if one_copy and now is not None and now % one_copy == 0:
        copies = now // one_copy
    return replace(
        buffer,
        bytes=now,
        copies=copies,
        why=causes.why(written, nth, copies),
        detail=causes.detail(buffer.name, copies),
        static=not scope.startswith(("shared.dyn", "shared.tmem")),
    )


def _tmem_buffer(written: Any, columns: Mapping[str, int], sizes: Sizes) -> Buffer:
    """Return a TMEM buffer with the columns that the generated code allocates for it."""
    name = lowered_name(written)
    return Buffer(
        name=str(written.name),
        scope=str(written.scope()),
        memory=Memory.TENSOR,
        owner=Owner.BLOCK,
        shape=tuple(dim(d, sizes) for d in written.shape),
        dtype=str(written.dtype),
        copies=1 if name in columns else 0,
        bytes=columns.get(name, 0) * COLUMN_BYTES,
        why=Why.NOT_PIPELINED if name in columns else Why.UNUSED,
        detail=f"{columns[name]} columns" if name in columns else None,
        line=_line(written),
    )


def _line(written: Any) -> int | None:
    span = getattr(written, "span", None)
    return None if span is None else int(span.line)


def _tmem_columns(source: str) -> dict[str, int]:
    """Return the columns of each TMEM allocation by the name of its buffer."""
    found = re.findall(r"tl::tmem_allocate\(\(?&\(?(\w+)\[0\]\)?\)?, (\d+)\)", source)
    return {name: int(columns) for name, columns in found}


def _compiler_buffer(lowered: Any, tmem: Mapping[str, int], vendor: str, sizes: Sizes) -> Buffer:
    scope = str(lowered.scope())
    shape = tuple(dim(d, sizes) for d in lowered.shape)
    memory = memory_of("tilelang", vendor, scope)
    size = nbytes(shape, lowered.dtype)
    registers = memory is Memory.REGISTERS
    return Buffer(
        name=str(lowered.name),
        scope=scope,
        memory=memory,
        owner=Owner.THREAD if registers else Owner.BLOCK,
        shape=shape,
        dtype=str(lowered.dtype),
        bytes=size,
        bytes_per_thread=size if registers else None,
        why=_origin(str(lowered.name), scope, tmem),
        origin="compiler",
        static=memory in STAGING and scope != "shared.dyn",
    )


def _origin(name: str, scope: str, tmem: Mapping[str, int]) -> Why:
    """Return the code that says why the compiler added a buffer."""
    if name in tmem:
        return Why.TMEM_ADDRESS
    if scope in ("shared.barrier", "shared.cluster_barrier"):
        return Why.BARRIER
    # the names that lowering gives: `workspace` (T.reduce across warps), `red_buf` and
    # `red_result` (all-reduce)
    if scope.startswith("shared") and name.startswith(("workspace", "red_")):
        return Why.REDUCE_WORKSPACE
    return Why.COMPILER_SCRATCH


def _static_aligns(source: str) -> dict[str, int]:
    """Return the alignment of each static shared array by name."""
    found = re.findall(
        r"^\s*__shared__\s+__align__\((\d+)\)\s+[\w\s:<>,]+?\s(\w+)\[", source, re.MULTILINE
    )
    return {name.removesuffix("_mem"): int(align) for align, name in found}
