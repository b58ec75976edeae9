"""Read a lowered TileLang kernel: what the author declared, and what the compiler made of it.

The declared side comes from the PrimFunc. The lowered side comes from the IR around the pass
that merges shared memory: before it every buffer still stands alone with its copies, after it
each has its offset. Alignments come from the generated source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilefit._kernel import Buffer, Kernel, Loop
from tilefit._memory import TMEM_COLUMN_BYTES, Memory, Owner
from tilefit._scopes import memory_of
from tilefit._units import round_up
from tilefit.frontends._tilelang_declared import (
    Sizes,
    declared_buffers,
    dim,
    launch_of,
    loops_of,
    nbytes,
    visit,
)

MERGE_PASS = "tl.MergeSharedMemoryAllocations"
# Alignment where nothing else is recorded: of an item in the merged array, and of a static
# item whose declaration does not say (TileLang's generated source always does).
_DYNAMIC_ALIGN = 16
_STATIC_ALIGN = 16


class Capture:
    """The modules before and after the pass that merges shared memory."""

    def __init__(self) -> None:
        self.before: Any = None
        self.after: Any = None

    def instrument(self, tvm: Any) -> Any:
        """Return a TVM pass instrument that fills this capture."""
        capture = self

        @tvm.ir.instrument.pass_instrument  # type: ignore[untyped-decorator, unused-ignore]
        class _AroundMerge:
            def run_before_pass(self, module: Any, info: Any) -> None:
                if info.name == MERGE_PASS:
                    capture.before = module

            def run_after_pass(self, module: Any, info: Any) -> None:
                if info.name == MERGE_PASS:
                    capture.after = module

        return _AroundMerge()


def kernels_of(
    prim_func: Any,
    capture: Capture,
    artifact: Any,
    *,
    name: str,
    params: Mapping[str, Any],
    sizes: Sizes,
    target: str,
    version: str,
) -> tuple[Kernel, ...]:
    """Return one `Kernel` per device function of a lowered PrimFunc."""
    declared = declared_buffers(prim_func)
    loops = loops_of(prim_func, sizes)
    source = str(artifact.kernel_source)
    align = _dynamic_align(source)
    found = []
    for symbol, function in artifact.device_mod.functions.items():
        attrs = dict(function.attrs)
        symbol_name = str(attrs.get("global_symbol", symbol.name_hint))
        before = _function_named(capture.before, symbol_name) or function
        after = _function_named(capture.after, symbol_name) or function
        buffers, static = _buffers(declared, before, after, loops, source)
        found.append(
            Kernel(
                name=name,
                function=symbol_name,
                toolchain="tilelang",
                toolchain_version=version,
                target=target,
                params=tuple(params.items()),
                launch=launch_of(prim_func, attrs, sizes),
                buffers=buffers,
                dynamic_bytes=_dynamic_bytes(attrs),
                static_bytes=static,
                dynamic_align_bytes=align,
                loops=loops,
            )
        )
    return tuple(found)


def _function_named(module: Any, name: str) -> Any:
    for symbol, function in module.functions.items() if module is not None else ():
        if name in (symbol.name_hint, str(dict(function.attrs or {}).get("global_symbol", ""))):
            return function
    return None


# ---- what the compiler made of it --------------------------------------------------------


def _buffers(
    declared: list[Any], before: Any, after: Any, loops: tuple[Loop, ...], source: str
) -> tuple[tuple[Buffer, ...], int]:
    """Return every buffer, source ones first, and the static bytes laid out item by item."""
    lowered = _allocations(before)
    rows: list[tuple[Buffer, Any]] = []
    rest = list(lowered)
    columns = _tmem_columns(source)
    for written in declared:
        if str(written.scope()) == "shared.tmem":
            # what is left of its name in shared memory is the word that holds its address
            rows.append((_tmem_buffer(written, columns), None))
            continue
        match = next((a for a in rest if str(a.name) == str(written.name)), None)
        if match is not None:
            rest.remove(match)
        rows.append((_source_buffer(written, match, loops), match))
    rows += [(_compiler_buffer(allocation, columns), allocation) for allocation in rest]
    offsets = _offsets(after)
    alone = _only_dynamic(lowered)
    align_map = dict(dict(before.attrs or {}).get("tl.smem_alignment_map", {}))
    static_align = _static_aligns(source)
    finished: dict[Buffer, None] = {}
    static_end = 0
    for number, (buffer, allocation) in enumerate(rows):
        if buffer.static:
            align = static_align.get(buffer.name, _STATIC_ALIGN)
            start = round_up(static_end, align)
            static_end = start + (buffer.bytes or 0)
            buffer = replace(buffer, offset=start, align_bytes=align)
        elif buffer.memory is Memory.SHARED and allocation is not None:
            offset = 0 if allocation is alone else offsets.get(allocation.data)
            align = int(align_map.get(buffer.name, _DYNAMIC_ALIGN))
            buffer = replace(buffer, offset=offset, align_bytes=align)
        # unrolled loops repeat the compiler's scratch registers: one row for equal ones
        scratch = buffer.origin == "compiler" and buffer.memory is Memory.REGISTERS
        if scratch and buffer in finished:
            continue
        key = buffer if buffer not in finished else replace(buffer, name=f"{buffer.name}#{number}")
        finished[key] = None
    return tuple(finished), static_end


def _only_dynamic(lowered: list[Any]) -> Any:
    """Return the dynamic buffer if there is just one: the compiler does not merge it."""
    dynamic = [a for a in lowered if str(a.scope()) == "shared.dyn"]
    return dynamic[0] if len(dynamic) == 1 else None


def _allocations(function: Any) -> list[Any]:
    found: list[Any] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "AllocBuffer":
            found.append(node.buffer)

    visit(function.body, look)
    return found


def _offsets(function: Any) -> dict[Any, int]:
    """Return the byte offset that the merge pass bound to each buffer's pointer."""
    found: dict[Any, int] = {}

    def look(node: Any) -> None:
        value = getattr(node, "value", None)
        op = str(getattr(getattr(value, "op", None), "name", ""))
        if type(node).__name__ == "Bind" and op.endswith("handle_add_byte_offset"):
            offset = dim(node.value.args[1])
            if isinstance(offset, int):
                found[node.var] = offset

    visit(function.body, look)
    return found


def _source_buffer(written: Any, lowered: Any, loops: tuple[Loop, ...]) -> Buffer:
    scope = str(written.scope())
    shape = tuple(dim(d) for d in written.shape)
    one_copy = nbytes(shape, written.dtype)
    memory = memory_of("tilelang", "nvidia", scope)
    owner = Owner.BLOCK if scope.startswith(("shared", "local.fragment")) else Owner.THREAD
    now = None if lowered is None else nbytes([dim(d) for d in lowered.shape], lowered.dtype)
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
        return replace(buffer, owner=Owner.DEVICE, why="in device memory, by a pointer parameter")
    if memory is Memory.REGISTERS:
        return replace(buffer, bytes_per_thread=0 if lowered is None else now)
    if lowered is None:
        return replace(buffer, bytes=0, copies=0, why="vanished in lowering")
    copies = None
    if one_copy and now is not None and now % one_copy == 0:
        copies = now // one_copy
    return replace(
        buffer,
        bytes=now,
        copies=copies,
        why=_why(str(written.name), copies, loops),
        static=not scope.startswith(("shared.dyn", "shared.tmem")),
    )


def _tmem_buffer(written: Any, columns: Mapping[str, int]) -> Buffer:
    """Return a TMEM buffer with the columns that the generated code allocates for it."""
    name = str(written.name)
    return Buffer(
        name=name,
        scope=str(written.scope()),
        memory=Memory.TENSOR,
        owner=Owner.BLOCK,
        shape=tuple(dim(d) for d in written.shape),
        dtype=str(written.dtype),
        copies=1 if name in columns else 0,
        bytes=columns.get(name, 0) * TMEM_COLUMN_BYTES,
        why=f"{columns[name]} columns" if name in columns else "vanished in lowering",
        line=_line(written),
    )


def _line(written: Any) -> int | None:
    span = getattr(written, "span", None)
    return None if span is None else int(span.line)


def _tmem_columns(source: str) -> dict[str, int]:
    """Return the columns of each TMEM allocation by the name of its buffer."""
    found = re.findall(r"tl::tmem_allocate\(\(?&\(?(\w+)\[0\]\)?\)?, (\d+)\)", source)
    return {name: int(columns) for name, columns in found}


def _why(name: str, copies: int | None, loops: tuple[Loop, ...]) -> str | None:
    """Name the pipelined loops that a multiplied buffer stands in (the cause, if it is one)."""
    if copies is None:
        return "its layout changed in lowering"
    asked = [loop.num_stages for loop in loops if name in loop.buffers and loop.num_stages]
    if copies > 1 and asked:
        return "T.Pipelined stages=" + " and ".join(str(s) for s in asked)
    return None


def _compiler_buffer(lowered: Any, tmem: Mapping[str, int]) -> Buffer:
    scope = str(lowered.scope())
    shape = tuple(dim(d) for d in lowered.shape)
    memory = memory_of("tilelang", "nvidia", scope)
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
        why="holds its address in TMEM" if str(lowered.name) in tmem else "added by the compiler",
        origin="compiler",
        static=memory is Memory.SHARED and scope != "shared.dyn",
    )


def _dynamic_bytes(attrs: Mapping[str, Any]) -> int | None:
    size = dim(attrs.get("dyn_shared_memory_buf", 0))
    return size if isinstance(size, int) else None


def _dynamic_align(source: str) -> int | None:
    """Return the alignment of the module's dynamic array, None if it has none."""
    found = re.findall(r"extern\s+__shared__\s+__align__\((\d+)\)", source)
    return max(int(a) for a in found) if found else None


def _static_aligns(source: str) -> dict[str, int]:
    """Return the alignment of each static shared array by name."""
    found = re.findall(
        r"^\s*__shared__\s+__align__\((\d+)\)\s+[\w\s:<>,]+?\s(\w+)\[", source, re.MULTILINE
    )
    return {name.removesuffix("_mem"): int(align) for align, name in found}
