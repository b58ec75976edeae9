"""The buffers of a traced kernel: memory, copies by the declared rule, bytes, what is missing.

The estimate of a memory is the plain sum over its buffers of

    copies x ceil(elements x bits / 8)

with copies = num_stages for what a copy from global memory (T.copy and its kin, T.im2col) fills in
a pipelined loop, else 1. The deepest of several such loops counts, they are not multiplied. Tensor
memory is rounded up to columns. Reuse, padding, alignment, barriers and scratch of the compiler
are no part of it: it is no bound, neither from above nor from below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilefit._errors import Cause, InputError, RefusedError
from tilefit._frontends.ascend import OWNERS
from tilefit._frontends.ptx import COLUMN_BYTES, LEAST_COLUMNS
from tilefit._frontends.source.allocate import ADAPTER, is_borrowed
from tilefit._frontends.source.ascend import memory_in_gemm
from tilefit._frontends.source.operators import extent_of, number
from tilefit._frontends.source.trace import TracedLaunch, TracedLoop
from tilefit._frontends.source.unknown import names_of, written
from tilefit._frontends.source.values import Tile, Unknown, Value
from tilefit._kernel.dtype import parse_dtype
from tilefit._kernel.kernel import Buffer, Dim
from tilefit._kernel.memory import STAGING, Evidence, Memory, Owner
from tilefit._kernel.reasons import Why
from tilefit._kernel.scopes import memory_of

# why a tile has several copies: num_stages, or order= and stage= lists
_DEEP = (Why.PIPELINE, Why.EXPLICIT_ORDER)


class Missing:
    """What is not known, and which ``--set`` would supply it."""

    def __init__(self) -> None:
        self._needs: dict[tuple[tuple[str, ...], str], dict[str, None]] = {}

    def note(self, item: str, *values: Value) -> None:
        """Note that an item needs what its values need."""
        names = names_of(*values)
        text = "" if names else ", ".join(dict.fromkeys(written(value) for value in values))
        self._needs.setdefault((names, text), {})[item] = None

    def lines(self) -> tuple[str, ...]:
        """Return a line for each set of missing names."""
        return tuple(self._line(*need, items) for need, items in self._needs.items())

    def needs(self) -> str | None:
        """Return the same of a single item in short, None if nothing is missing."""
        found = [self._need(*need) for need in self._needs]
        return "; ".join(found) or None

    @staticmethod
    def _need(names: tuple[str, ...], text: str) -> str:
        if not names:
            return f"the source alone does not say: {text}"
        verb = "is" if len(names) == 1 else "are"
        flags = " ".join(f"--set {name}=VALUE" for name in names)
        return f"{', '.join(names)} {verb} not set: add {flags}"

    @staticmethod
    def _line(names: tuple[str, ...], text: str, items: dict[str, None]) -> str:
        what = ", ".join(items)
        if not names:
            return f"{what}: the source alone does not say: {text}"
        flags = " ".join(f"--set {name}=VALUE" for name in names)
        return f"{what}: not known without {', '.join(names)}: add {flags}"


def product(value: Value) -> int | None:
    """Return the product of one extent or several, None if one is not known."""
    items = value if isinstance(value, (list, tuple)) else [value]
    numbers = [n for n in (number(item) for item in items) if isinstance(n, int)]
    return math.prod(numbers) if len(numbers) == len(items) else None


def dim(value: Value) -> Dim:
    """Return an extent as an integer, or as text."""
    found = extent_of(value)
    return written(value) if found is None else found


def buffer_of(tile: Tile, launch: TracedLaunch, vendor: str, missing: Missing) -> Buffer:
    """Return what a tile declares.

    Args:
        tile: The tile.
        launch: The launch that has it.
        vendor: Whose chip the target is.
        missing: Where to note what is not known.

    Raises:
        RefusedError: The vendor's chips have no such scope.
    """
    label = tile.name or f"the buffer of line {tile.line}"
    memory = _memory(tile, vendor, launch)
    copies, why = _copies(tile, launch.loops, memory)
    if vendor == "ascend" and tile in launch.fixed:
        versions = number(launch.fixed[tile])
        copies, why = (versions, Why.FIXED_VERSIONS) if isinstance(versions, int) else (None, None)
    own = Missing()
    for item, values in _open_items(tile, label, launch, copies):
        missing.note(item, *values)
        own.note(item, *values)
    if tile.doubt is not None:
        copies, why = None, None
    one_copy = _bytes(tile, memory)
    size = None if one_copy is None or copies is None else one_copy * copies
    fragment = tile.scope == "local.fragment"
    of_a_thread = memory is Memory.REGISTERS and not fragment
    return Buffer(
        name=tile.name,
        scope=written(tile.scope),
        memory=memory,
        # written in the shape of the block's tile
        owner=Owner.BLOCK
        if fragment and vendor != "ascend"
        else OWNERS.get(memory, tile.row.owner),
        shape=() if isinstance(tile.shape, Unknown) else tuple(dim(d) for d in tile.shape),
        dtype=written(tile.dtype),
        copies=copies,
        why=why,
        detail=f"T.Pipelined stages={copies}" if why in _DEEP else None,
        bytes=size,
        bytes_per_thread=size if of_a_thread else None,
        offset=_address(tile, launch),
        line=tile.line,
        stages=copies if vendor == "ascend" and why in _DEEP and not launch.unlimited else None,
        static=memory in (*STAGING, Memory.THREADGROUP) and tile.scope != "shared.dyn",
        evidence=Evidence.DECLARED,
        needs=own.needs() if size is None else None,
    )


def _open_items(
    tile: Tile, label: str, launch: TracedLaunch, copies: int | None
) -> Iterator[tuple[str, list[Value]]]:
    """Yield what is not known of a tile, and the values that it hangs on."""
    if copies is None:
        fixed = tile in launch.fixed
        needed = [launch.fixed[tile]] if fixed else _stages_of(tile, launch.loops)
        yield f"copies of {label}", needed
    if tile.doubt is not None:
        yield f"whether {label} is allocated", [tile.doubt]
    parts: list[Value] = [tile.dtype, tile.scope]
    parts += [tile.shape] if isinstance(tile.shape, Unknown) else tile.shape
    needed = [p for p in parts if not isinstance(number(p), (int, str))]
    if needed:
        yield label, needed


def _memory(tile: Tile, vendor: str, launch: TracedLaunch) -> Memory:
    """Return the memory of a tile; undecided if the spellings it may be in disagree about it."""
    if isinstance(tile.scope, Unknown):
        return Memory.UNDECIDED
    found: set[Memory] = set()
    refused: InputError | None = None
    for row in (tile.row, *tile.others):
        scope = tile.scope if tile.scope_given else row.scope
        try:
            meaning = memory_of(row.dialect, vendor, scope)
        except InputError as error:
            refused = refused or error
            continue
        # what a function allocates by default may hang on its use, where its scope alone does not
        by_use = row.memory is Memory.UNDECIDED and scope == row.scope
        found.add(Memory.UNDECIDED if by_use else meaning)
    if not found and refused is not None:
        words = str(refused)
        if tile.row.memory is Memory.TENSOR and not tile.scope_given:
            words = f"T.{tile.row.function} takes tensor memory, which {vendor} chips lack"
        raise RefusedError(f"line {tile.line}: {words}", cause=Cause.CHIP_LACKS) from refused
    if tile.row.dialect in ADAPTER and tile.scope == "local.fragment":
        places = launch.places.get(tile, ())
        # a GPU keeps it in registers; only T.gemm says what it is on a cube core
        return memory_in_gemm(places) if places or not is_borrowed(tile) else Memory.UNDECIDED
    memory = found.pop() if len(found) == 1 else Memory.UNDECIDED
    if memory is Memory.UNDECIDED and tile.row.dialect in ADAPTER and _for_cube(tile, launch):
        return Memory.L1
    return memory


def _for_cube(tile: Tile, launch: TracedLaunch) -> bool:
    """Say whether all that computes with a tile are matrix products, which read it from L1.

    The adapter decides so in ascend_infer_buffer_scope.cc (tilelang-ascend at 95acbd7f).
    """
    return tile in launch.places and tile not in launch.computed


def _address(tile: Tile, launch: TracedLaunch) -> int | None:
    """Return where an annotation puts a tile, None if none does or the source does not say."""
    address = number(launch.addresses.get(tile))
    return address if isinstance(address, int) and address >= 0 else None


def _bytes(tile: Tile, memory: Memory) -> int | None:
    """Return the bytes of one copy, None if a size is not known."""
    if isinstance(tile.shape, Unknown) or isinstance(tile.dtype, Unknown):
        return None
    elements = product(tile.shape)
    if elements is None or elements < 0:
        return None
    if memory is Memory.NONE:
        return 0
    size = parse_dtype(tile.dtype).nbytes(elements)
    if memory is not Memory.TENSOR:
        return size
    columns = max(LEAST_COLUMNS, -(-size // COLUMN_BYTES))
    return COLUMN_BYTES << (columns - 1).bit_length()


def _copies(
    tile: Tile, loops: Sequence[TracedLoop], memory: Memory
) -> tuple[int | None, Why | None]:
    """Return the copies by the declared rule and the code that says why, None for unknown.

    A pipelined loop keeps num_stages copies of what a T.copy from global memory fills in it.
    """
    if memory is Memory.REGISTERS:
        return 1, None
    if memory is Memory.GLOBAL:
        return 1, Why.DEVICE_MEMORY
    touching = [loop for loop in loops if tile in loop.touched]
    if touching and not tile.used:
        return 0, Why.EMPTY_LOOP
    staged = [loop for loop in touching if loop.stages is not None]
    if not staged:
        return 1, Why.NOT_PIPELINED
    deep = [loop for loop in staged if number(loop.stages) != 1]
    filling = [loop for loop in deep if tile in loop.copied]
    unsure = [loop for loop in deep if tile in loop.maybe_copied and loop not in filling]
    stages = [n for n in (number(loop.stages) for loop in filling) if isinstance(n, int)]
    if unsure or len(stages) < len(filling) or any(loop.doubt for loop in filling):
        return None, None
    if stages:
        explicit = any(loop.explicit for loop in filling)
        return max(stages), _DEEP[explicit]
    writing = [loop for loop in staged if tile in loop.written]
    if not writing:
        return 1, Why.READ_ONLY
    return 1, Why.SAME_STAGE if any(loop in deep for loop in writing) else Why.ONE_STAGE


def _stages_of(tile: Tile, loops: Sequence[TracedLoop]) -> list[Value]:
    """Return what the copies of a tile depend on."""
    mine = [loop for loop in loops if tile in loop.touched and loop.stages is not None]
    open_stages = [loop.stages for loop in mine if not isinstance(number(loop.stages), int)]
    doubts = [loop.doubt for loop in mine if loop.doubt is not None]
    return [*open_stages, *doubts] or [Unknown((), "what fills it")]
