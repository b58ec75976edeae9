"""From the record of a traced kernel to `Kernel` values: launch, loops, totals, notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilefit._frontends.ptx import has_tma
from tilefit._frontends.source.allocate import is_borrowed
from tilefit._frontends.source.ascend import (
    conditions_of,
    cores_of,
    may_share,
    open_lines,
    uses_of,
)
from tilefit._frontends.source.buffers import Missing, buffer_of, dim, product
from tilefit._frontends.source.find import plain
from tilefit._frontends.source.operators import extent_of, number
from tilefit._frontends.source.trace import Trace, TracedLaunch, TracedLoop
from tilefit._frontends.source.unknown import names_of, written
from tilefit._frontends.source.values import Unknown, Value
from tilefit._frontends.uses import gpu_uses
from tilefit._kernel.extent import OpenSize, names_in
from tilefit._kernel.kernel import Buffer, Kernel, Launch, Loop, MemoryUse, StageRule
from tilefit._kernel.memory import STAGING, Evidence, Memory
from tilefit._kernel.scopes import memory_of

# T.Kernel without threads= on a GPU (tilelang/cuda/language/kernel.py)
_DEFAULT_THREADS = 128
_VENDORS = {"sm_": "nvidia", "gfx": "amd", "ascend": "ascend", "metal": "apple"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a record is a record of.

    Attributes:
        name: What the user calls the kernel.
        function: The function that was traced.
        params: Its parameters.
        target: What it is read for.
        notes: What was chosen or is missing before it could be traced.
        unread: Those of them that say why there may be more than was traced.
        options: Compiler options of its author, None without.
        sizes: Its sizes that are open until run time.
    """

    name: str
    function: str
    params: Mapping[str, Any]
    target: str
    notes: Sequence[str] = ()
    unread: Sequence[str] = ()
    options: Value = None
    sizes: Sequence[OpenSize] = ()

    @property
    def vendor(self) -> str:
        """Whose chips the target is."""
        found = (v for prefix, v in _VENDORS.items() if self.target.startswith(prefix))
        return next(found, self.target)

    @property
    def warp_specialises(self) -> bool:
        """Whether the compiler may add threads for this target."""
        return has_tma(self.target)


def kernels_of(trace: Trace, origin: Origin) -> tuple[Kernel, ...]:
    """Return one kernel per T.Kernel block; one of unknown size if there is none.

    Raises:
        RefusedError: A buffer has a scope that the target's chips do not have.
    """
    if not trace.launches:
        return (_without_launch(trace, origin),)
    trace.launches[0].tiles[:0] = trace.before
    return tuple(
        _kernel(launch, trace, origin, f"{origin.function}_kernel{f'_{at}' if at else ''}")
        for at, launch in enumerate(trace.launches)
    )


def _dialect(trace: Trace) -> str:
    """Return the dialect of a kernel's allocations."""
    tiles = [*trace.before, *(tile for launch in trace.launches for tile in launch.tiles)]
    if any(is_borrowed(tile) for tile in tiles):
        return "tilelang"
    return next((t.row.dialect for t in tiles if t.row.dialect != "tilelang"), "tilelang")


def _recorded(params: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, plain(value)) for name, value in params.items())


def _without_launch(trace: Trace, origin: Origin) -> Kernel:
    return Kernel(
        name=origin.name,
        function=origin.function,
        toolchain="source",
        toolchain_version=_dialect(trace),
        target=origin.target,
        params=_recorded(origin.params),
        launch=Launch(threads_declared=None, threads=None, grid=("?", "?", "?")),
        buffers=(),
        memories=() if origin.vendor == "ascend" else _on_gpu(origin, (), (), (), complete=False),
        complete=False,
        notes=(*origin.notes, *trace.gaps, "the source alone does not show a T.Kernel block"),
        unread=(*origin.unread, *trace.gaps, f"no T.Kernel block in {origin.function}"),
    )


def _kernel(launch: TracedLaunch, trace: Trace, origin: Origin, function: str) -> Kernel:
    missing = Missing()
    if launch.doubt is not None:
        missing.note("whether this T.Kernel runs", launch.doubt)
    unread = (*trace.gaps, *missing.lines())
    buffers = tuple(buffer_of(t, launch, origin.vendor, missing) for t in launch.tiles)
    dynamic = [b for b in buffers if b.scope == "shared.dyn"]
    static = [b for b in buffers if b.memory in (*STAGING, Memory.THREADGROUP) and b.static]
    decided = all(b.memory is not Memory.UNDECIDED or b.bytes is not None for b in buffers)
    whole = decided and launch.doubt is None and not trace.gaps
    complete = whole and all(b.bytes is not None for b in (*dynamic, *static))
    lines = [*origin.notes, *trace.gaps, *_loop_lines(launch, missing, origin)]
    kernel = Kernel(
        name=origin.name,
        function=function,
        toolchain="source",
        toolchain_version=_dialect(trace),
        target=origin.target,
        params=_recorded(origin.params),
        launch=_launch(launch, origin, missing),
        buffers=buffers,
        memories=_on_gpu(origin, buffers, dynamic, static, complete=complete),
        complete=complete,
        loops=tuple(_loop(loop) for loop in launch.loops),
        gemms=launch.gemms,
        notes=(*lines, *missing.lines()),
        unread=unread,
        arguments=_arguments(trace),
    )
    if origin.vendor != "ascend":
        return kernel
    return _on_ascend(kernel, launch, whole, may_share(origin.options))


def _arguments(trace: Trace) -> tuple[str, ...]:
    """Return type and shape of each tensor argument; none if one of them is not known."""
    found = []
    for one in trace.arguments:
        if not isinstance(one.shape, (list, tuple)):
            return ()
        found.append(f"{written(one.dtype)} {'x'.join(str(dim(n)) for n in one.shape)}")
    return tuple(found)


def _on_gpu(
    origin: Origin,
    buffers: Sequence[Buffer],
    dynamic: Sequence[Buffer],
    static: Sequence[Buffer],
    *,
    complete: bool,
) -> tuple[MemoryUse, ...]:
    """Return the sums of what is declared; the dynamic one is not known unless all of it is."""
    return gpu_uses(
        buffers,
        memory_of("tilelang", origin.vendor, "shared.dyn"),
        dynamic_bytes=sum(b.bytes or 0 for b in dynamic) if complete else None,
        static_bytes=sum(b.bytes or 0 for b in static),
        align_bytes=None,
        evidence=Evidence.DECLARED,
    )


def _on_ascend(kernel: Kernel, launch: TracedLaunch, whole: bool, shares: bool) -> Kernel:
    """Return a kernel with the memories of Ascend; a grid there is one of cores, not of threads."""
    unsure = [why for why in launch.regions.values() if why is not None]
    missing = Missing()
    if unsure:
        missing.note("whether its vector and cube regions are there", *unsure)
    buffers = kernel.buffers
    memories = uses_of(
        launch,
        buffers,
        complete=whole and not unsure,
        may_share=shares and not _scheduled(kernel),
    )
    return replace(
        kernel,
        launch=replace(kernel.launch, threads_declared=None, threads=None),
        memories=memories,
        complete=whole,
        stage_rule=StageRule.AT_MOST if _scheduled(kernel) else StageRule.UNKNOWN,
        conditions=conditions_of(launch),
        cores=None if unsure else cores_of(launch, buffers),
        notes=(*kernel.notes, *missing.lines(), *open_lines(launch, buffers)),
        unread=(*kernel.unread, *missing.lines()),
    )


def _scheduled(kernel: Kernel) -> bool:
    """Say whether TileLang's own backend compiles it, whose scheduler keeps as many as fit."""
    own = kernel.target == "ascend"  # the adapter's targets are ascend-910b ...
    return own and not kernel.toolchain_version.startswith("tilelang-ascend")


def _launch(launch: TracedLaunch, origin: Origin, missing: Missing) -> Launch:
    launcher = launch.launcher
    grid = [dim(extent) for extent in launcher.grid[:3]]
    for axis, extent in zip("xyz", launcher.grid, strict=False):
        if extent_of(extent) is None:
            missing.note(f"grid.{axis}", extent)
    mentioned = {name for blocks in grid for name in names_in(str(blocks))}
    declared = None if launcher.threads is None else product(launcher.threads)
    threads = declared
    if launcher.threads is None:
        threads = None if origin.vendor == "ascend" else _DEFAULT_THREADS
    elif declared is None:
        missing.note("threads", launcher.threads)
    return Launch(
        threads_declared=declared,
        threads=threads,
        grid=(*grid, *[1] * (3 - len(grid))),
        cluster=_cluster(launcher.cluster, missing),
        sizes=tuple(size for size in origin.sizes if size.name in mentioned),
    )


def _cluster(value: Value, missing: Missing) -> tuple[int, ...] | None:
    if value is None:
        return None
    given = value if isinstance(value, (list, tuple)) else [value]
    extents = [n for n in (number(one) for one in given) if isinstance(n, int)]
    if len(extents) < len(given):
        missing.note("the cluster", value)
        return None
    extents += [1] * (3 - len(extents))
    return None if extents == [1, 1, 1] else tuple(extents)


def _loop(loop: TracedLoop) -> Loop:
    stages = number(loop.stages)
    here = [tile for tile in loop.touched if tile.scope != "global"]
    return Loop(
        variable=loop.variable,
        extent=dim(loop.extent),
        num_stages=stages if isinstance(stages, int) else None,
        buffers=tuple(dict.fromkeys(tile.name for tile in here)),
        copied=tuple(sorted({tile.name for tile in here if tile in loop.copied})),
    )


def _loop_lines(launch: TracedLaunch, missing: Missing, origin: Origin) -> Iterator[str]:
    staged = [loop for loop in launch.loops if loop.stages is not None]
    for loop in staged:
        over = f"the loop over {loop.variable}"
        if not isinstance(number(loop.stages), int):
            missing.note(f"num_stages of {over}", loop.stages)
        if names_of(loop.extent) and not isinstance(number(loop.extent), int):
            missing.note(f"the iterations of {over}", loop.extent)
        if loop.doubt is not None:
            missing.note(f"whether {over} is there", Unknown(loop.doubt.names, loop.doubt.text))
    if origin.vendor != "ascend":
        yield "an estimate, no bound: the compiler reuses, aligns and adds bytes of its own"
    if staged and origin.warp_specialises:
        yield "threads as written: warp specialisation can add 128 when the kernel is compiled"
