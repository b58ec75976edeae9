"""What tracing a kernel records: launches, the tiles of each, its loops and what they touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tilefit._frontends.source.operators import number
from tilefit._frontends.source.values import (
    Device,
    Launcher,
    LoopFrame,
    Tensor,
    Tile,
    Unknown,
    Value,
)


@dataclass(slots=True, eq=False)
class TracedLoop:
    """A loop over which the kernel runs.

    Attributes:
        variable: Name of its variable.
        index: The variable.
        extent: Number of iterations.
        stages: num_stages, None without.
        explicit: order= and stage= lists are given.
        doubt: Why it may not be there at all.
        touched: Tiles in it, in order.
        copied: Those that a T.copy from global memory fills.
        maybe_copied: Those that a T.copy fills from we cannot say where.
        written: Those that anything in it writes.
    """

    variable: str
    extent: Value
    stages: Value
    explicit: bool = False
    doubt: Unknown | None = None
    index: Device | None = None
    touched: dict[Tile, None] = field(default_factory=dict)
    copied: set[Tile] = field(default_factory=set)
    maybe_copied: set[Tile] = field(default_factory=set)
    written: set[Tile] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        """Whether it has no iterations."""
        extent = number(self.extent)
        return isinstance(extent, int) and extent <= 0


@dataclass(slots=True, eq=False)
class TracedLaunch:
    """One T.Kernel block.

    Attributes:
        launcher: Its grid and threads.
        doubt: Why it may not run.
        tiles: What it allocates, in order.
        loops: Its pipelined loops, and those without iterations.
        gemms: How many matrix products are written in it.
        places: Where a tile stands among the arguments of those products.
        fixed: Tiles whose versions an annotation fixes, and how many.
        unlimited: Whether an annotation takes a limit away from Ascend's scheduler.
        addresses: Tiles that an annotation places, and where (``T.annotate_address``).
        computed: Tiles that something else than a copy or a matrix product uses.
        regions: Ascend's vector and cube regions in it, each with why it may not be there.
    """

    launcher: Launcher
    doubt: Unknown | None = None
    tiles: list[Tile] = field(default_factory=list)
    loops: list[TracedLoop] = field(default_factory=list)
    gemms: int = 0
    places: dict[Tile, list[int]] = field(default_factory=dict)
    regions: dict[str, Unknown | None] = field(default_factory=dict)
    fixed: dict[Tile, Value] = field(default_factory=dict)
    unlimited: bool = False
    addresses: dict[Tile, Value] = field(default_factory=dict)
    computed: set[Tile] = field(default_factory=set)


class Trace:
    """The record of one kernel.

    Attributes:
        launches: Its T.Kernel blocks.
        before: Tiles allocated ahead of the first of them.
        gaps: Why the record may be incomplete, a line each.
        arguments: The tensors that it is called with.
    """

    def __init__(self) -> None:
        self.launches: list[TracedLaunch] = []
        self.before: list[Tile] = []
        self.gaps: dict[str, None] = {}
        self.arguments: list[Tensor] = []
        self._open: list[TracedLaunch] = []
        self._loops: list[TracedLoop] = []

    def launch(self, launcher: Launcher, doubt: Unknown | None) -> None:
        """Enter a T.Kernel block."""
        launch = TracedLaunch(launcher, doubt)
        self.launches.append(launch)
        self._open.append(launch)

    def leave(self) -> None:
        """Leave the innermost T.Kernel block."""
        self._open.pop()

    @contextmanager
    def loops(
        self, frame: LoopFrame, variables: Sequence[str], doubt: Unknown | None
    ) -> Iterator[list[TracedLoop]]:
        """Enter the loops of a frame, outermost first, and return them."""
        before = len(self._loops)
        for variable, extent in zip(variables, frame.extents, strict=True):
            first = len(self._loops) == before
            loop = TracedLoop(
                variable=frame.variable or variable,
                extent=extent,
                stages=frame.stages if first else None,
                explicit=frame.explicit and first,
                doubt=doubt,
            )
            self._loops.append(loop)
            if self._open and (loop.stages is not None or loop.empty):
                self._open[-1].loops.append(loop)
        try:
            yield self._loops[before:]
        finally:
            del self._loops[before:]

    def rename(self, index: Device, name: str) -> bool:
        """Name a loop's variable by the last name that held it; False if it is none."""
        for loop in self._loops:
            if loop.index is index:
                loop.variable = name
                return True
        return False

    def allocate(self, tile: Tile) -> None:
        """Note a new tile."""
        (self._open[-1].tiles if self._open else self.before).append(tile)

    def touch(self, value: Value, *, write: bool = False, computes: bool = True) -> None:
        """Note that a statement uses a tile, or an element of one.

        Args:
            value: The tile or the element.
            write: It is written.
            computes: The statement is neither a copy nor a matrix product.
        """
        tile = value.base if isinstance(value, Device) else value
        if not isinstance(tile, Tile):
            return
        tile.used = tile.used or not any(loop.empty for loop in self._loops)
        if computes and self._open:
            self._open[-1].computed.add(tile)
        for loop in self._loops:
            loop.touched[tile] = None
            if write:
                loop.written.add(tile)

    def copy(self, source: Value, target: Value) -> None:
        """Note a T.copy."""
        tile = target.base if isinstance(target, Device) else target
        if not isinstance(tile, Tile):
            return
        origin = source.base if isinstance(source, Device) else source
        for loop in self._loops:
            if isinstance(origin, Tensor) or (
                isinstance(origin, Tile) and origin.scope == "global"
            ):
                loop.copied.add(tile)
            elif not isinstance(origin, Tile):
                loop.maybe_copied.add(tile)

    def gemm(self, operands: Sequence[Value]) -> None:
        """Note a matrix product."""
        if not self._open:
            return
        launch = self._open[-1]
        launch.gemms += 1
        for place, value in enumerate(operands):
            tile = value.base if isinstance(value, Device) else value
            if isinstance(tile, Tile):
                launch.places.setdefault(tile, []).append(place)

    def region(self, name: str, doubt: Unknown | None) -> None:
        """Note a region for one kind of core."""
        if self._open and (doubt is None or name not in self._open[-1].regions):
            self._open[-1].regions[name] = doubt

    def annotate(self, name: str, given: Value, doubt: Unknown | None) -> None:
        """Note what an annotation tells Ascend's scheduler, or its memory planner.

        Args:
            name: The annotation.
            given: Its argument.
            doubt: Why the statement may not run.
        """
        if not self._open:
            return
        of_tiles = {}
        if isinstance(given, dict):
            of_tiles = {tile: value for tile, value in given.items() if isinstance(tile, Tile)}
        if name == "annotate_buffer_versions":
            self._open[-1].fixed.update(of_tiles)
        elif name == "annotate_address":
            self._open[-1].addresses.update(
                (tile, doubt or value) for tile, value in of_tiles.items()
            )
        elif name == "annotate_unlimit_memory":
            self._open[-1].unlimited = True

    def gap(self, line: str) -> None:
        """Note why there may be more than is recorded."""
        self.gaps[line] = None
