"""Read a lowered kernel of TileLang's Ascend backend: five memories instead of one.

UB belongs to a vector core (AIV), L1, L0A, L0B and L0C to a cube core (AIC). The backend lays out
each of them, and it does so after its scheduler has decided how many versions a buffer gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilefit._kernel import Arena, Buffer, Kernel, Launch, Loop
from tilefit._memory import Memory, Owner
from tilefit._scopes import memory_of
from tilefit.frontends._ascend_bounds import stores_past_the_end
from tilefit.frontends._ascend_hidden import (
    cores_of,
    gemms_of_l1,
    has_simt,
    overlaps_of,
    slot_buffers,
    workspace_regions,
)
from tilefit.frontends._ascend_ir import (
    Allocation,
    AscendCapture,
    Key,
    allocated,
    allocations,
    bodies,
    keyed,
    scheduled_shapes,
    totals,
)
from tilefit.frontends._ascend_steps import Steps, steps_of
from tilefit.frontends._ascend_why import Versions
from tilefit.frontends._tilelang_declared import (
    Sizes,
    declared_buffers,
    dim,
    launch_of,
    loop_nodes,
    nbytes,
    visit,
)
from tilefit.frontends._tilelang_ir import in_order
from tilefit.frontends._tilelang_notes import gemms_of
from tilefit.frontends._tilelang_why import with_copied

_DISABLE_REUSE = "tl.disable_shared_memory_reuse"
_VENDOR = "ascend"
_DIALECT = "tilelang.ascend"
_ORDER = (Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C)
# AscendScopeAlignBytes in src/ascend/transform/merge_ub_common.h, and the 32 B of a UB block
_ALIGN = {
    Memory.UB: (32, "ub"),
    Memory.L1: (512, "l1"),
    Memory.L0A: (512, "l0"),
    Memory.L0B: (512, "l0"),
    Memory.L0C: (1024, "l0c"),
}


def kernels_of(
    prim_func: Any,
    capture: AscendCapture,
    artifact: Any,
    *,
    name: str,
    params: Mapping[str, Any],
    sizes: Sizes,
    target: str,
    version: str,
    configs: Mapping[str, Any],
    build_flags: tuple[str, ...] | None = None,
) -> tuple[Kernel, ...]:
    """Return one `Kernel` per device function of a PrimFunc lowered for Ascend.

    `build_flags` is what other targets need to assemble; nothing assembles these kernels here.
    """
    del build_flags
    functions = in_order(artifact.device_mod)
    roots = _launch_roots(prim_func)
    if len(roots) != len(functions):  # not one T.Kernel a function: they share the whole body
        roots = [prim_func.body] * len(functions)
    keys = keyed(declared_buffers(prim_func.body))
    steps = _steps(capture)
    versions = Versions(capture, steps)
    found = []
    for (symbol, function), root in zip(functions, roots, strict=True):
        before, after = capture.merged(symbol)
        before, after = before or function, after or function
        gemms = gemms_of_l1(before)
        loops = tuple(loop for _, loop in with_copied(loop_nodes(root, sizes)))
        reader = _Reader(capture, steps, versions, loops)
        buffers = reader.buffers(declared_buffers(root), keys, before, after)
        overlaps = overlaps_of(buffers, gemms, steps)
        buffers += slot_buffers(gemms, steps)
        arenas = _arenas(buffers, totals(after))
        found.append(
            Kernel(
                name=name,
                function=symbol,
                toolchain="tilelang",
                toolchain_version=version,
                target=target,
                params=tuple(params.items()),
                launch=_launch(launch_of(root, dict(function.attrs), sizes)),
                buffers=tuple(buffers),
                dynamic_bytes=_total(arenas, Memory.UB),
                static_bytes=0,
                dynamic_align_bytes=None,
                arenas=arenas,
                conditions=("simt",) if has_simt(before) else (),
                cores=cores_of(before, gemms),
                overlaps=overlaps,
                reuse=not configs.get(_DISABLE_REUSE),
                loops=loops,
                gemms=gemms_of(root),
                notes=stores_past_the_end(before),
            )
        )
    return tuple(found)


def _launch_roots(prim_func: Any) -> list[Any]:
    """Return the loop over blocks of each T.Kernel, in program order."""
    found: list[Any] = []

    def look(node: Any) -> None:
        binding = getattr(node, "thread_binding", None)
        if str(getattr(binding, "thread_tag", "")) == "blockIdx.x":
            found.append(node)

    visit(prim_func.body, look)
    return found


def _launch(launch: Launch) -> Launch:
    """Return a launch without threads: an Ascend grid is one of cores."""
    return replace(launch, threads_declared=None, threads=None)


def _steps(capture: AscendCapture) -> Steps:
    module = capture.scheduled
    keys = keyed(allocated(module))
    (body,) = bodies(module)
    return steps_of(body, keys)


def _total(arenas: tuple[Arena, ...], memory: Memory) -> int | None:
    return next((a.total_bytes for a in arenas if a.memory is memory), 0)


def _arenas(buffers: list[Buffer], laid_out: Mapping[str, int | None]) -> tuple[Arena, ...]:
    """Return the total of each memory: what was laid out, and the hidden slots beside it."""
    found = []
    for memory in _ORDER:
        scope = "shared" if memory is Memory.UB else f"shared.{memory}"
        slots = [b.bytes or 0 for b in buffers if b.memory is memory and b.why == "l1-gemm-slots"]
        if scope not in laid_out and not slots:
            continue
        total = laid_out.get(scope, 0)
        if total is not None:
            total = max(total, *slots, 0)
        found.append(Arena(memory=memory, owner=_owner(memory), total_bytes=total))
    return tuple(found)


def _owner(memory: Memory) -> Owner:
    return Owner.AIV if memory is Memory.UB else Owner.AIC


class _Reader:
    """Makes the buffers of one device function."""

    def __init__(
        self,
        capture: AscendCapture,
        steps: Steps,
        versions: Versions,
        loops: tuple[Loop, ...],
    ) -> None:
        empty = [loop for loop in loops if isinstance(loop.extent, int) and loop.extent <= 0]
        self._never_touched = {name for loop in empty for name in loop.buffers}
        self._padded = scheduled_shapes(capture.scheduled)
        self._steps = steps
        self._versions = versions

    def buffers(
        self, declared: list[Any], keys: Mapping[Any, Key], before: Any, after: Any
    ) -> list[Buffer]:
        """Return the author's buffers, then the compiler's."""
        rest = allocations(before, after)
        found = []
        for written in declared:
            match = next((a for a in rest if a.name == str(written.name)), None)
            if match is not None:
                rest.remove(match)
            found.append(self._source(written, keys[written.data], match))
        regions = workspace_regions(before)
        count: dict[str, int] = {}
        for one in rest:
            memory = memory_of(_DIALECT, _VENDOR, one.scope)
            if memory not in _ORDER:
                continue
            key = (one.name, count.get(one.name, 0))
            count[one.name] = key[1] + 1
            found.append(self._added(one, key, memory, regions.get(one.storage)))
        return found

    def _source(self, written: Any, key: Key, lowered: Allocation | None) -> Buffer:
        scope = str(written.scope())
        memory = memory_of(_DIALECT, _VENDOR, scope)
        shape = tuple(dim(d) for d in written.shape)
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
        if memory not in _ORDER:
            held = 0 if lowered is None else lowered.bytes
            if memory is Memory.REGISTERS:
                return replace(buffer, bytes_per_thread=held)
            return replace(buffer, bytes=0 if memory is Memory.NONE else buffer.bytes)
        buffer = replace(buffer, owner=_owner(memory))
        if lowered is None:
            why = "empty-loop" if buffer.name in self._never_touched else "unused"
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
            live=self._steps.live(key, overlapping=copies > 1),
        )

    def _added(self, one: Allocation, key: Key, memory: Memory, region: int | None) -> Buffer:
        """Return a buffer of the compiler's: scratch that the scheduler knew of, or later one."""
        align, align_why = _ALIGN[memory]
        buffer = Buffer(
            name=one.name,
            scope=one.scope,
            memory=memory,
            owner=_owner(memory),
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
            why = "reduce-workspace" if workspace else "compiler-scratch"
            live = None if region is None else self._steps.region(region)
            return replace(buffer, why=why, live=live)
        copies = self._versions.copies(key)
        return replace(
            buffer,
            shape=self._padded[key],
            copies=copies,
            stages=self._versions.stages(key),
            why="nz-scratch" if one.name.startswith("nz_scratch") else "compiler-scratch",
            live=self._steps.live(key, overlapping=copies > 1),
        )


def _elements(one: Allocation) -> int | str:
    from tilelang import tvm

    kind = tvm.DataType(one.dtype)
    return "?" if one.bytes is None else one.bytes * 8 // (int(kind.bits) * int(kind.lanes))
