"""Lay the tiles of an Ascend kernel out in UB, L1, L0A, L0B and L0C.

Written from the rules that TileLang 0.1.15 follows on Ascend 950, not by asking TileLang: shapes,
versions and live intervals go in, byte offsets come out. Held against the compiler's own offsets,
each checks the other.

The rules, memory by memory:

* The cube reads and writes fractals, blocks of 16 rows by 32 B. A tile in L1, L0A or L0B has its
  rows padded to 16 and its columns to 32 B of elements, a transposed one the other way round; one
  in L0C has both padded to 16. Block scales in L1 have their rows padded to 16 and their columns
  to 2 B. UB is not padded.
* A tile of several versions is an array of them. In UB each version starts at a multiple of 32 B.
* Tiles that are never live together may share a slot, which has the size of its largest tile.
  Those that one pipelined loop touches are live together: its iterations overlap. The tile that is
  hardest to place goes next: first the one that may share with the fewest slots there are, then
  the one that excludes the most tiles, then the larger, then the earlier one. It goes where the
  memory grows least, into an old slot before a new one.
* Slots follow one another by size, the largest first, each aligned; the end is aligned to 32 B.
  A tile that is alone in its memory is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilefit._errors import InputError
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import round_up

FRACTAL_ROWS = 16
"""Rows of a fractal."""

FRACTAL_ROW_BYTES = 32
"""Bytes of one row of a fractal: its columns are this over the size of an element."""

SCALES_ROW_BYTES = 2
"""The same for block scales, which the cube reads in pairs of bytes."""

VERSION_ALIGN_BYTES = 32
"""What each version of a tile in UB is aligned to."""

END_ALIGN_BYTES = 32
"""What the end of the tiles of a memory is aligned to, where there are several."""

SLOT_ALIGN_BYTES = {
    Memory.UB: 32,
    Memory.L1: 512,
    Memory.L0A: 512,
    Memory.L0B: 512,
    Memory.L0C: 1024,
}
"""What a slot is aligned to."""

GEMM_SLOTS = 2
"""Slots of L0A and of L0B that a GEMM on L1 tiles takes turns with."""

GEMM_SLOT_BYTES = 32 * 1024
"""The most bytes of such a slot: half of L0A or L0B."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A tile of an Ascend kernel.

    Attributes:
        name: Its name; names may repeat.
        memory: UB, L1, L0A, L0B or L0C.
        shape: As declared, one version.
        bits: Bits of an element.
        versions: How many of them there are.
        transposed: Whether its columns are the rows of the product (M or N), not K.
        fractal: Whether the cube uses it; only such tiles are padded.
        scales: Whether it holds the scales of a block-scaled operand.
        live: Stretch of the program in which its content matters, the end not included; None if
            that is unknown, which excludes every other tile.
        loops: Numbers of the pipelined loops that touch it.
    """

    name: str
    memory: Memory
    shape: tuple[int, ...]
    bits: int
    versions: int = 1
    transposed: bool = False
    fractal: bool = True
    scales: bool = False
    live: tuple[int, int] | None = None
    loops: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Refuse values that no tile can have.

        Raises:
            InputError: Another memory, no versions, no bits, a negative extent, or an end before
                the start.
        """
        if self.memory not in SLOT_ALIGN_BYTES:
            raise InputError(f"tile {self.name!r}: {self.memory} is no memory of Ascend tiles")
        if self.versions < 1 or self.bits < 1 or min(self.shape, default=0) < 0:
            raise InputError(
                f"tile {self.name!r}: shape {self.shape}, {self.bits} bits, "
                f"{self.versions} versions: not a tile"
            )
        if self.live is not None and self.live[1] < self.live[0]:
            raise InputError(f"tile {self.name!r}: end {self.live[1]} is before {self.live[0]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the tiles of one memory are.

    Attributes:
        offsets: First byte of each tile, in the order in which they were given.
        slots: Number of its slot.
        total_bytes: From address 0 to the end.
    """

    offsets: tuple[int, ...]
    slots: tuple[int, ...]
    total_bytes: int


def padded_shape(tile: Tile) -> tuple[int, ...]:
    """Return the shape of one version as the hardware keeps it."""
    if tile.memory is Memory.UB or not tile.fractal or len(tile.shape) < 2:
        return tile.shape
    *outer, rows, columns = tile.shape
    across = FRACTAL_ROWS
    if tile.memory is not Memory.L0C:
        row_bytes = SCALES_ROW_BYTES if tile.scales else FRACTAL_ROW_BYTES
        across = max(1, row_bytes * 8 // tile.bits)
    grains = (across, FRACTAL_ROWS) if tile.transposed else (FRACTAL_ROWS, across)
    return (*outer, round_up(rows, grains[0]), round_up(columns, grains[1]))


def compact_bytes(tile: Tile) -> int:
    """Return the bytes of one version, fractal padding included."""
    return -(-prod(padded_shape(tile)) * tile.bits // 8)


def tile_bytes(tile: Tile) -> int:
    """Return the bytes of all versions: those in UB each start at a multiple of 32 B."""
    if tile.memory is Memory.UB:
        one = compact_bytes(tile)
        return one if tile.versions == 1 else tile.versions * round_up(one, VERSION_ALIGN_BYTES)
    return -(-tile.versions * prod(padded_shape(tile)) * tile.bits // 8)


def layout(tiles: Sequence[Tile], *, reuse: bool = True) -> Layout:
    """Place the tiles of one memory.

    Args:
        tiles: In the order in which the program allocates them.
        reuse: Whether tiles may share a slot; without it they follow one another by name.
    """
    sizes = [tile_bytes(tile) for tile in tiles]
    if len(tiles) < 2:
        return Layout(offsets=(0,) * len(tiles), slots=(0,) * len(tiles), total_bytes=sum(sizes))
    if not reuse:
        return _by_name(tiles, sizes)
    aligns = [SLOT_ALIGN_BYTES[tile.memory] for tile in tiles]
    slots: list[list[int]] = []
    left = set(range(len(tiles)))
    while left:
        chosen = min(left, key=lambda n: _ease(n, tiles, sizes, aligns, slots))
        left.remove(chosen)
        options = [
            _with(slots, number, chosen)
            for number, members in enumerate(slots)
            if all(apart(tiles[chosen], tiles[member]) for member in members)
        ]
        options.append([*slots, [chosen]])
        slots = min(options, key=lambda option: _placed(option, sizes, aligns)[1])
    starts, total = _placed(slots, sizes, aligns)
    slot_of = {member: number for number, members in enumerate(slots) for member in members}
    numbers = tuple(slot_of[n] for n in range(len(tiles)))
    return Layout(offsets=tuple(starts[n] for n in numbers), slots=numbers, total_bytes=total)


def apart(one: Tile, other: Tile) -> bool:
    """Say whether two tiles are never live together, in no iteration of a loop either."""
    if one.live is None or other.live is None or one.loops & other.loops:
        return False
    return one.live[1] <= other.live[0] or other.live[1] <= one.live[0]


def gemm_slots(m: int, n: int, k: int, bits: int) -> tuple[int, int, int] | None:
    """Return what a GEMM on L1 tiles takes of L0A and L0B: at most two slots of a part of K.

    Args:
        m: Rows of the product.
        n: Its columns.
        k: The extent that is summed over.
        bits: Bits of an element of the operands.

    Returns:
        The part of K that one slot holds, the bytes of L0A and those of L0B; None if no part of
        32 B or more divides K and fits.
    """
    grain = FRACTAL_ROW_BYTES * 8 // bits
    most = min(GEMM_SLOT_BYTES * 8 // (extent * bits) for extent in (m, n))
    part = min(most, k) // grain * grain
    while part > 0 and k % part:
        part -= grain
    if part <= 0:
        return None
    slots = min(GEMM_SLOTS, k // part)
    return part, slots * (m * part * bits // 8), slots * (n * part * bits // 8)


def _ease(
    number: int,
    tiles: Sequence[Tile],
    sizes: Sequence[int],
    aligns: Sequence[int],
    slots: Sequence[Sequence[int]],
) -> tuple[int, int, int, int, int]:
    """Return how easy a tile is to place: the hardest one has the smallest key."""
    closed = sum(any(not apart(tiles[number], tiles[m]) for m in slot) for slot in slots)
    excluded = sum(not apart(tiles[number], other) for n, other in enumerate(tiles) if n != number)
    return -closed, -excluded, -sizes[number], -aligns[number], number


def _with(slots: Sequence[Sequence[int]], number: int, tile: int) -> list[list[int]]:
    return [[*members, tile] if n == number else [*members] for n, members in enumerate(slots)]


def _placed(
    slots: Sequence[Sequence[int]], sizes: Sequence[int], aligns: Sequence[int]
) -> tuple[list[int], int]:
    """Return the first byte of each slot, and the end of the last one."""

    def turn(number: int) -> tuple[int, int, int]:
        members = slots[number]
        return -max(aligns[m] for m in members), -max(sizes[m] for m in members), min(members)

    starts, end = [0] * len(slots), 0
    for number in sorted(range(len(slots)), key=turn):
        members = slots[number]
        starts[number] = round_up(end, max(aligns[m] for m in members))
        end = starts[number] + max(sizes[m] for m in members)
    return starts, round_up(end, END_ALIGN_BYTES)


def _by_name(tiles: Sequence[Tile], sizes: Sequence[int]) -> Layout:
    offsets, end = [0] * len(tiles), 0
    for number in sorted(range(len(tiles)), key=lambda n: tiles[n].name):
        offsets[number] = round_up(end, SLOT_ALIGN_BYTES[tiles[number].memory])
        end = offsets[number] + sizes[number]
    return Layout(
        offsets=tuple(offsets),
        slots=tuple(range(len(tiles))),
        total_bytes=round_up(end, END_ALIGN_BYTES),
    )
