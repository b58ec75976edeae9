"""The modules around TileLang's Ascend passes, and what can be read from each.

Before the scheduler, cube tiles were padded to fractals and loops were found that own a buffer.
The scheduler gives each buffer a number of versions. Later some operators bring scratch of their
own, and one last pass lays out each memory. A buffer is known by its name and by how many of that
name come before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilefit._frontends.tilelang.declared import (
    allocated_in,
    declared_buffers,
    dim,
    nbytes,
    visit,
)
from tilefit._frontends.tilelang.ir import Capture, function_named
from tilefit._frontends.tilelang.sizes import Sizes

SCHEDULE_PASS = "tl.AutoSchedule"
VERSION_PASS = "tl.NormalizeBufferVersion"
MERGE_PASS = "tl.MergeUBAllocations"

# annotations of TileLang's Ascend dialect
VERSIONS = "tl.buffer_versions_map"
MANUAL = "tl.manual_multi_buffer"
ELIGIBLE = "multi_buffer_eligible"

Key = tuple[str, int]
"""A buffer: its name, and how many of that name come before it in the PrimFunc."""


class AscendCapture(Capture):
    """Snapshots of the module around the Ascend passes."""

    watched = (SCHEDULE_PASS, VERSION_PASS, MERGE_PASS)

    def module(self, when: str) -> Any:
        """Return a snapshot (``after tl.AutoSchedule``); None if the pass did not run."""
        return self.modules.get(when)

    @property
    def scheduled(self) -> Any:
        """The kernel in the order that its statements have, tile operators still whole."""
        return self.module(f"after {SCHEDULE_PASS}") or self.module(f"before {VERSION_PASS}")

    def merged(self, symbol: str) -> tuple[Any, Any]:
        """Return a device function before and after its memories are laid out."""
        return (
            function_named(self.module(f"before {MERGE_PASS}"), symbol),
            function_named(self.module(f"after {MERGE_PASS}"), symbol),
        )


def bodies(module: Any) -> list[Any]:
    """Return the bodies of a module's functions."""
    functions = module.functions.values() if module is not None else ()
    return [f.body for f in functions if hasattr(f, "body")]


def keyed(buffers: Iterable[Any]) -> dict[Any, Key]:
    """Return the key of each buffer's storage, by its variable."""
    seen: dict[str, int] = {}
    found: dict[Any, Key] = {}
    for buffer in buffers:
        name = str(buffer.name)
        found[buffer.data] = (name, seen.get(name, 0))
        seen[name] = seen.get(name, 0) + 1
    return found


def allocated(module: Any) -> list[Any]:
    """Return the buffers that the blocks of a module allocate, in order."""
    return [buffer for body in bodies(module) for buffer in declared_buffers(body)]


def scheduled_shapes(module: Any, sizes: Sizes) -> dict[Key, tuple[int | str, ...]]:
    """Return the shape of one version of each buffer that the scheduler saw, by key.

    Args:
        module: The module behind the scheduler.
        sizes: Values for sizes that are open until run time.
    """
    buffers = allocated(module)
    keys = keyed(buffers)
    return {keys[b.data]: tuple(dim(d, sizes) for d in b.shape) for b in buffers}


def noted(body: Any, name: str) -> list[Any]:
    """Return what the blocks of a body carry under an annotation, one after another."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "SBlock":
            found.extend(dict(node.annotations or {}).get(name, ()))

    visit(body, look)
    return found


def annotated(body: Any, name: str) -> dict[Any, int]:
    """Return a map of storage to count that blocks of a body are annotated with."""
    found: dict[Any, int] = {}

    def look(node: Any) -> None:
        if type(node).__name__ == "SBlock":
            for storage, count in dict(dict(node.annotations or {}).get(name, {})).items():
                found[storage] = int(count)

    visit(body, look)
    return found


def block_names(body: Any) -> set[str]:
    """Return the names of the blocks of a body: its cores and vector regions have some."""
    names: set[str] = set()

    def look(node: Any) -> None:
        if type(node).__name__ == "SBlock":
            names.add(str(node.name_hint))

    visit(body, look)
    return names


# ---- the last pass: where everything lies -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Allocation:
    """A buffer as it stands before its memory is laid out.

    Attributes:
        name: Its name.
        scope: Its scope.
        storage: The variable of its memory.
        dtype: Element type.
        bytes: All versions; None if symbolic.
        offset: Where the layout puts it; None if it cannot be read.
    """

    name: str
    scope: str
    storage: Any
    dtype: str
    bytes: int | None
    offset: int | None


def allocations(before: Any, after: Any, sizes: Sizes) -> list[Allocation]:
    """Return every on-chip allocation of a device function, in order."""
    offsets = _offsets(before, after, sizes)
    kept = {buffer.data for buffer in allocated_in(after)}
    return [
        Allocation(
            name=str(b.name),
            scope=str(b.scope()),
            storage=b.data,
            dtype=str(b.dtype),
            bytes=nbytes([dim(d, sizes) for d in b.shape], b.dtype),
            offset=0 if b.data in kept else offsets.get(b.data),
        )
        for b in allocated_in(before)
    ]


def totals(after: Any, sizes: Sizes) -> dict[str, int | None]:
    """Return the bytes of each scope after layout, by scope without its ``.dyn``."""
    found: dict[str, int | None] = {}
    for buffer in allocated_in(after):
        scope = str(buffer.scope()).removesuffix(".dyn")
        size = nbytes([dim(d, sizes) for d in buffer.shape], buffer.dtype)
        known = found.get(scope, 0)
        found[scope] = None if size is None or known is None else known + size
    return found


def _offsets(before: Any, after: Any, sizes: Sizes) -> dict[Any, int]:
    """Return by how many bytes each storage's accesses moved when its memory was merged.

    The pass keeps every access where it stands and adds the offset to its index, so that the
    two functions are read side by side.
    """
    from tilelang import tvm

    analyzer = tvm.arith.Analyzer()
    found: dict[Any, int] = {}
    was, now = _accesses(before), _accesses(after)
    if len(was) != len(now):
        return found
    for (storage, old, dtype), (_, new, _) in zip(was, now, strict=True):
        if storage in found:
            continue
        moved = analyzer.simplify(_first_lane(new) - _first_lane(old))
        kind = tvm.DataType(dtype)
        elements = dim(moved, sizes)
        if isinstance(elements, int):
            found[storage] = elements * int(kind.bits) * int(kind.lanes) // 8
    return found


def _first_lane(index: Any) -> Any:
    """Return the index of the first element of a vector access; a scalar's own."""
    kind = type(index).__name__
    if kind == "Ramp":
        return index.base
    if kind == "Broadcast":
        return index.value
    if kind == "Add":
        return _first_lane(index.a) + _first_lane(index.b)
    return index


def _accesses(function: Any) -> list[tuple[Any, Any, str]]:
    """Return storage, first element and element type of every access to a buffer."""
    found: list[tuple[Any, Any, str]] = []

    def look(node: Any) -> None:
        kind = type(node).__name__
        if kind in ("BufferLoad", "BufferStore") and len(node.indices) == 1:
            found.append((node.buffer.data, node.indices[0], str(node.buffer.dtype)))
        elif kind == "Call" and str(getattr(node.op, "name", "")).endswith("tvm_access_ptr"):
            found.append((node.args[1], node.args[2], str(node.args[0].dtype)))

    visit(function.body, look)
    return found
