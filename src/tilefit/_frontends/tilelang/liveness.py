"""When each dynamic shared buffer of a lowered TileLang function is live.

Reads the IR that enters the pass which merges shared memory, with our own walk: the function is
written out as a line of steps, each step lists the buffers that it touches, and a buffer is live
from the first step that touches it to the last.

A loop, a branch and the like open a scope: a first step, the steps inside, a last step. What
happens inside is charged to the scope that stands where the buffer was allocated, because a
buffer that a loop uses must survive the whole loop. With aggressive merging each step keeps its
own touches. A branch that only splits the roles of a warp-specialised kernel opens no scope: its
two sides stand one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilefit._frontends.tilelang.declared import dim, product, visit
from tilefit._frontends.tilelang.sizes import Sizes

AGGRESSIVE_MERGE = "tl.enable_aggressive_shared_memory_merge"
"""Pass config that turns `aggressive` on; off unless the kernel sets it."""

DISABLE_REUSE = "tl.disable_shared_memory_reuse"
"""Pass config that turns reuse (and with it aggressive merging) off."""

_DYNAMIC = "shared.dyn"
_LEAST_ALIGN_BYTES = 16
# Operand of an instruction that swizzles addresses, without an alignment recorded for it.
_SWIZZLED_ALIGN_BYTES = 1024
_SWIZZLING = frozenset(
    {
        "tl.tma_load",
        "tl.tma_store",
        "tl.initialize_wgmma_descriptor",
        "tl.initialize_tcgen05_descriptor",
    }
)
_ALIGNMENTS = "tl.smem_alignment_map"
_ROLES = "kWarpSpecializationScope"
_SCOPE_ATTRS = frozenset({"extern_scope", "virtual_thread"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """A dynamic shared buffer and when it is live.

    Attributes:
        name: Its name; names may repeat, `var` tells them apart.
        var: The TVM variable of its memory.
        bytes: Its size, None if an extent is open until run time.
        align_bytes: The alignment that it needs in the merged array.
        start: First step that touches it.
        end: Step after the last one; 0 like `start` if nothing touches it.
    """

    name: str
    var: Any
    bytes: int | None
    align_bytes: int
    start: int
    end: int


def live_buffers(
    function: Any, sizes: Sizes | None = None, *, aggressive: bool
) -> tuple[LiveBuffer, ...]:
    """Return the dynamic shared buffers of a function in order of allocation.

    Args:
        function: A device function as it enters `tl.MergeSharedMemoryAllocations`.
        sizes: Its open sizes.
        aggressive: The value of `AGGRESSIVE_MERGE`.
    """
    walk = _Walk(aggressive=aggressive)
    walk.statement(function.body)
    live = _intervals(walk.steps, walk.depth)
    recorded = dict(dict(function.attrs or {}).get(_ALIGNMENTS, {}))
    found = []
    for var, buffer in walk.buffers.items():
        start, end = live.get(var, (0, 0))
        fallback = _SWIZZLED_ALIGN_BYTES if var in walk.swizzled else _LEAST_ALIGN_BYTES
        align = int(recorded.get(str(var.name), fallback))
        found.append(
            LiveBuffer(
                name=str(var.name),
                var=var,
                bytes=_nbytes(buffer, sizes),
                align_bytes=max(align, _LEAST_ALIGN_BYTES),
                start=start,
                end=end,
            )
        )
    return tuple(found)


def _nbytes(buffer: Any, sizes: Sizes | None) -> int | None:
    """Return the bytes of a buffer in the array: only 4-bit elements share a byte."""
    from tilelang import tvm

    elements = product([dim(extent, sizes) for extent in buffer.shape])
    if elements is None:
        return None
    kind = tvm.DataType(str(buffer.dtype))
    bits, lanes = int(kind.bits), int(kind.lanes)
    if bits == 4:
        return -(-elements * lanes * bits // 8)
    return elements * lanes * -(-bits // 8)


# ---- the function as a line of steps -----------------------------------------------------


@dataclass(slots=True)
class _Step:
    """A statement that touches a buffer, or the first or last step of a scope.

    Attributes:
        node: The statement. Both ends of a scope carry it, and so does every place to which the
            compiler copied it unchanged: what is known of one place holds for all of them.
        touched: The buffers charged to it; both ends of a scope share one record.
    """

    node: Any
    touched: dict[Any, None] = field(default_factory=dict)


class _Walk:
    """Writes a function out as steps.

    Attributes:
        buffers: The dynamic buffers by variable, in order of allocation.
        swizzled: Those that an address-swizzling instruction gets.
        steps: The steps.
        depth: By statement, how many loops over a sequence of statements it stands in.
    """

    def __init__(self, *, aggressive: bool) -> None:
        self.buffers: dict[Any, Any] = {}
        self.swizzled: set[Any] = set()
        self.steps: list[_Step] = []
        self.depth: dict[Any, int] = {}
        self._aggressive = aggressive
        self._home: dict[Any, int] = {}  # how many scopes are open where a buffer is allocated
        self._open: list[_Step] = []
        self._loops = 0
        self._in_threads = False

    def statement(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "SeqStmt":
            for child in node.seq:
                self.statement(child)
        elif kind == "AllocBuffer":
            if str(node.buffer.scope()) == _DYNAMIC:
                self.buffers[node.buffer.data] = node.buffer
                self._home[node.buffer.data] = len(self._open)
        elif kind == "BufferStore":
            with self._single(node):
                self._expressions(node.value, *node.indices)
                self._touch(node.buffer.data)
        elif kind == "Evaluate":
            with self._single(node):
                self._expressions(node.value)
        elif kind == "Bind":
            self._expressions(node.value)
        elif kind == "For":
            sequence = _is_sequence(node.body)
            self._loops += sequence
            with self._scope(node):
                self._expressions(node.min, node.extent)
                self.statement(node.body)
            self._loops -= sequence
        elif kind == "While":
            with self._scope(node):
                self._expressions(node.condition)
                self.statement(node.body)
        elif kind == "IfThenElse":
            with self._scope(node):
                self._expressions(node.condition)
                self._branches(node)
        elif kind == "AssertStmt":
            with self._scope(node):
                self._expressions(node.condition)
        elif kind == "AttrStmt":
            self._attribute(node)

    def _attribute(self, node: Any) -> None:
        key = str(node.attr_key)
        if key == _ROLES:
            self._roles(node.body)
        elif key in _SCOPE_ATTRS or (key == "thread_extent" and not self._in_threads):
            outermost = key == "thread_extent"
            self._in_threads |= outermost
            with self._scope(node):
                self._expressions(node.value)
                self.statement(node.body)
            self._in_threads &= not outermost
        else:
            self._expressions(node.value)
            self.statement(node.body)

    def _roles(self, node: Any) -> None:
        """Walk the branches of a warp-specialised part as if no branch were there."""
        kind = type(node).__name__
        if kind == "SeqStmt":
            for child in node.seq:
                self._roles(child)
        elif kind == "AttrStmt":
            self._roles(node.body)
        elif kind == "IfThenElse":
            self._branches(node)
        else:
            self.statement(node)

    def _branches(self, node: Any) -> None:
        self.statement(node.then_case)
        if node.else_case is not None:
            self.statement(node.else_case)

    @contextmanager
    def _scope(self, node: Any) -> Iterator[None]:
        step = _Step(node)
        self.depth[node] = self._loops
        self.steps.append(step)
        self._open.append(step)
        yield
        self._open.pop()
        self.steps.append(step)

    @contextmanager
    def _single(self, node: Any) -> Iterator[None]:
        step = _Step(node)
        self._open.append(step)
        yield
        self._open.pop()
        if step.touched:
            self.depth[node] = self._loops
            self.steps.append(step)

    def _touch(self, var: Any) -> None:
        if var not in self._home or not self._open:
            return
        innermost = len(self._open) - 1
        level = innermost if self._aggressive else min(self._home[var], innermost)
        self._open[level].touched[var] = None

    def _expressions(self, *expressions: Any) -> None:
        for expression in expressions:
            visit(expression, self._look)

    def _look(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "Var":
            self._touch(node)
        elif kind == "BufferLoad":
            self._touch(node.buffer.data)
        elif kind == "Call" and str(getattr(node.op, "name", "")) in _SWIZZLING:
            visit(node, self._look_for_swizzled)

    def _look_for_swizzled(self, node: Any) -> None:
        kind = type(node).__name__
        if kind in ("Var", "BufferLoad"):
            self.swizzled.add(node if kind == "Var" else node.buffer.data)


def _is_sequence(body: Any) -> bool:
    """Tell whether a loop body is several statements, directly or in a branch."""
    kind = type(body).__name__
    if kind == "IfThenElse":
        branches = [body.then_case, *([] if body.else_case is None else [body.else_case])]
        return any(_is_sequence(branch) for branch in branches)
    return kind == "SeqStmt"


# ---- from steps to intervals -------------------------------------------------------------


def _intervals(steps: Sequence[_Step], depth: dict[Any, int]) -> dict[Any, tuple[int, int]]:
    """Return (first step, step after the last) for each buffer that is touched."""
    first: dict[Any, Any] = {}
    last: dict[Any, Any] = {}
    at_first: dict[Any, int] = {}
    at_last: dict[Any, int] = {}
    for number, step in enumerate(steps):
        at_first.setdefault(step.node, number)
        at_last[step.node] = number
        for var in step.touched:
            first.setdefault(var, step.node)
            last[var] = step.node
    marks = {*first.values(), *last.values()}
    marked = [step.node for step in steps if step.node in marks]
    found = {}
    for var, begin in first.items():
        end = last[var]
        if depth[end] > depth[begin]:
            end = _pushed_out(end, depth[begin], marked, depth)
        start = at_first[begin]
        found[var] = (start, max(at_last[end] + 1, start + 1))
    return found


def _pushed_out(node: Any, to: int, marked: Sequence[Any], depth: dict[Any, int]) -> Any:
    """Return the last first-or-last-use from `node` on before the next one at loop depth `to`."""
    number = next(n for n, mark in enumerate(marked) if mark.same_as(node))
    while number + 1 < len(marked) and depth[marked[number + 1]] != to:
        number += 1
    return marked[number]
