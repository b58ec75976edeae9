"""The buffers of one Ascend device function: the author's, and those that the compiler added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilefit._frontends.ascend import OWNERS
from tilefit._frontends.tilelang.ascend.hidden import workspace_regions
from tilefit._frontends.tilelang.ascend.ir import (
    Allocation,
    AscendCapture,
    Key,
    allocations,
    scheduled_shapes,
)
from tilefit._frontends.tilelang.ascend.steps import Steps
from tilefit._frontends.tilelang.ascend.why import Versions
from tilefit._frontends.tilelang.declared import dim, nbytes
from tilefit._frontends.tilelang.sizes import Sizes
from tilefit._kernel.kernel import Buffer, Loop
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.reasons import Align, Why
from tilefit._kernel.scopes import memory_of

_VENDOR = "ascend"
_DIALECT = "tilelang.ascend"

# AscendScopeAlignBytes in src/ascend/transform/merge_ub_common.h, and the 32 B of a UB block
_ALIGN = {
    Memory.UB: (32, Align.UB),
    Memory.L1: (512, Align.L1),
    Memory.L0A: (512, Align.L0),
    Memory.L0B: (512, Align.L0),
    Memory.L0C: (1024, Align.L0C),
}


class Reader:
    """Makes the buffers of one device function."""

    def __init__(
        self,
        capture: AscendCapture,
        steps: Steps,
        versions: Versions,
        loops: tuple[Loop, ...],
        sizes: Sizes,
    ) -> None:
        empty = [loop for loop in loops if isinstance(loop.extent, int) and loop.extent <= 0]
        self._never_touched = {name for loop in empty for name in loop.buffers}
        self._padded = scheduled_shapes(capture.scheduled, sizes)
        self._sizes = sizes
        self._steps = steps
        self._versions = versions

    def buffers(
        self, declared: list[Any], keys: Mapping[Any, Key], before: Any, after: Any
    ) -> tuple[list[tuple[Buffer, Key]], list[Buffer]]:
        """Return the author's buffers with their keys, and the compiler's."""
        rest = allocations(before, after, self._sizes)
        own = []
        for number, written in enumerate(declared):
            namesakes = sum(str(d.name) == str(written.name) for d in declared[number:])
            match = self._kept(keys[written.data], namesakes, rest)
            if match is not None:
                rest.remove(match)
            own.append((self._source(written, keys[written.data], match), keys[written.data]))
        regions = workspace_regions(before)
        taken = set(keys.values())
        count: dict[str, int] = {}
        added = []
        for one in rest:
            memory = memory_of(_DIALECT, _VENDOR, one.scope)
            if memory not in OWNERS:
                continue
            key = (one.name, count.get(one.name, 0))
            while key in taken:  # the author has buffers of this name
                key = (one.name, key[1] + 1)
            count[one.name] = key[1] + 1
            added.append(self._added(one, key, memory, regions.get(one.storage)))
        return own, added

    def _kept(self, key: Key, namesakes: int, rest: list[Allocation]) -> Allocation | None:
        """Return what became of a buffer of the author's; None if lowering removed it.

        Args:
            key: The buffer.
            namesakes: How many of its name the author still has, with it.
            rest: What is left of lowering's allocations.
        """
        named = [one for one in rest if one.name == key[0]]
        if len(named) < namesakes and not self._steps.touches(key):
            return None
        return named[0] if named else None

    def _source(self, written: Any, key: Key, lowered: Allocation | None) -> Buffer:
        scope = str(written.scope())
        memory = memory_of(_DIALECT, _VENDOR, scope)
        shape = tuple(dim(d, self._sizes) for d in written.shape)
        span = getattr(written, "span", None)
        buffer = Buffer(
            name=str(written.name),
            scope=scope,
            memory=memory,
            owner=Owner.THREAD,
            shape=shape,
            dtype=str(written.dtype),
            bytes=nbytes(shape, written.dtype),
            line=None if span is None else int(span.line),
        )
        if memory not in OWNERS:
            held = 0 if lowered is None else lowered.bytes
            if memory is Memory.REGISTERS:
                return replace(buffer, bytes_per_thread=held)
            return replace(buffer, bytes=0 if memory is Memory.NONE else buffer.bytes)
        buffer = replace(buffer, owner=OWNERS[memory])
        if lowered is None:
            why = Why.EMPTY_LOOP if buffer.name in self._never_touched else Why.UNUSED
            return replace(buffer, bytes=0, copies=0, why=why)
        copies = self._versions.copies(key)
        stages = self._versions.stages(key)
        padded = self._padded.get(key, shape)
        align, align_why = _ALIGN[memory]
        return replace(
            buffer,
            copies=copies,
            stages=stages,
            why=self._versions.why(key, copies),
            padded_shape=None if padded == shape else padded,
            bytes=lowered.bytes,
            offset=lowered.offset,
            align_bytes=align,
            align_why=align_why,
            # a stretch of the program cannot tell that one of two branches is never taken
            live=None
            if self._steps.alternative(key)
            else self._steps.live(key, overlapping=copies > 1),
        )

    def _added(self, one: Allocation, key: Key, memory: Memory, region: int | None) -> Buffer:
        """Return a buffer of the compiler's: scratch that the scheduler knew of, or later one."""
        align, align_why = _ALIGN[memory]
        buffer = Buffer(
            name=one.name,
            scope=one.scope,
            memory=memory,
            owner=OWNERS[memory],
            shape=(_elements(one),),
            dtype=one.dtype,
            bytes=one.bytes,
            offset=one.offset,
            align_bytes=align,
            align_why=align_why,
            origin="compiler",
        )
        if key not in self._padded:
            workspace = one.name.startswith("workspace")
            why = Why.REDUCE_WORKSPACE if workspace else Why.COMPILER_SCRATCH
            live = None if region is None else self._steps.region(region)
            return replace(buffer, why=why, live=live)
        copies = self._versions.copies(key)
        return replace(
            buffer,
            shape=self._padded[key],
            copies=copies,
            stages=self._versions.stages(key),
            why=Why.NZ_SCRATCH if one.name.startswith("nz_scratch") else Why.COMPILER_SCRATCH,
            live=self._steps.live(key, overlapping=copies > 1),
        )


def _elements(one: Allocation) -> int | str:
    from tilelang import tvm

    kind = tvm.DataType(one.dtype)
    return "?" if one.bytes is None else one.bytes * 8 // (int(kind.bits) * int(kind.lanes))
