"""Hold a compiler's layout of an Ascend memory against our own rules."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from tilefit._errors import InputError
from tilefit._kernel.dtype import parse_dtype
from tilefit._kernel.kernel import Buffer, Kernel, Loop, MemoryUse
from tilefit._kernel.reasons import Why
from tilefit._placement.ascend_packer import Tile, compact_bytes, layout, padded_shape, tile_bytes

HIDDEN_L0 = Why.L1_GEMM_SLOTS
"""Code of the L0A and L0B slots that a GEMM on L1 tiles takes at address 0, whatever is there."""


# a tile is a fractal, transposed, of block scales
_WAYS = ((True, False, False), (True, True, False), (True, False, True), (False, False, False))

BY_HAND = Why.MANUAL_VERSIONS
"""Code of a buffer whose shape has its versions in front."""


def versions_of(buffer: Buffer) -> int | None:
    """Return the versions of a buffer, also where the author laid them out by hand."""
    if buffer.why == BY_HAND and isinstance(buffer.shape[0], int):
        return buffer.shape[0]
    return buffer.copies


def version_bytes(buffer: Buffer) -> int | None:
    """Return the bytes of one version as the hardware keeps it; None if a size is open."""
    shape = buffer.padded_shape or buffer.shape
    shape = shape[1:] if buffer.why == BY_HAND else shape
    extents = [extent for extent in shape if isinstance(extent, int)]
    bits = bits_of(buffer)
    if len(extents) < len(shape) or bits is None:
        return None
    return -(-prod(extents) * bits // 8)


def bits_of(buffer: Buffer) -> int | None:
    """Return the bits of an element of a buffer; None for a type that is not known."""
    try:
        return parse_dtype(buffer.dtype).bits
    except InputError:
        return None


def tile_of(buffer: Buffer, loops: frozenset[int] = frozenset()) -> Tile | None:
    """Return what our rules need of a buffer, and nothing that the compiler decided of its bytes.

    Which side of a tile is the longer one in a fractal is not in a buffer: of the two ways, of
    block scales, and of no fractal at all, it is the one that gives the padded shape that the
    compiler has.
    """
    shape = tuple(extent for extent in buffer.shape if isinstance(extent, int))
    bits, versions = bits_of(buffer), versions_of(buffer)
    if len(shape) < len(buffer.shape) or bits is None or not versions:
        return None
    kept = buffer.padded_shape or buffer.shape
    if buffer.why == BY_HAND:
        shape, kept = shape[1:], kept[1:]
    ways = [
        Tile(
            name=buffer.name,
            memory=buffer.memory,
            shape=shape,
            bits=bits,
            versions=versions,
            transposed=transposed,
            fractal=fractal,
            scales=scales,
            live=buffer.live,
            loops=loops,
        )
        for fractal, transposed, scales in _WAYS
    ]
    return next((tile for tile in ways if padded_shape(tile) == kept), ways[0])


def _loops_of(buffer: Buffer, kernel: Kernel) -> frozenset[int]:
    """Return the numbers of the pipelined loops that touch a buffer."""
    return frozenset(
        number
        for number, loop in enumerate(kernel.loops)
        if loop.num_stages is not None
        and loop.extent != 1  # nothing that its iteration overlaps with
        and (buffer.name in loop.buffers or _within(buffer, loop, kernel))
    )


def _within(buffer: Buffer, loop: Loop, kernel: Kernel) -> bool:
    """Say whether scratch that the compiler added lives while a loop's buffers do."""
    lives = [b.live for b in kernel.buffers if b.live is not None and b.name in loop.buffers]
    if buffer.origin != "compiler" or buffer.live is None or not lives:
        return False
    start, end = min(s for s, _ in lives), max(e for _, e in lives)
    return start <= buffer.live[0] and buffer.live[1] <= end


def arena_differs(kernel: Kernel, use: MemoryUse) -> str | None:
    """Lay out one memory by our rules; say in one line where the compiler differs.

    Returns:
        None if sizes, offsets and the total agree, or if there is nothing to compare.
    """
    mine = [b for b in kernel.buffers if b.memory is use.memory and b.copies != 0]
    placed = [b for b in mine if b.why != HIDDEN_L0]
    tiles = [tile_of(b, _loops_of(b, kernel)) for b in placed]
    known = [tile for tile in tiles if tile is not None]
    if not placed or len(known) < len(tiles) or use.total_bytes is None:
        return None
    for buffer, tile in zip(placed, known, strict=True):
        if buffer.bytes is not None and tile_bytes(tile) != buffer.bytes:
            return (
                f"by our rules {buffer.name} takes {tile_bytes(tile):,} B "
                f"({tile.versions} x {compact_bytes(tile):,} B), the compiler gives it "
                f"{buffer.bytes:,} B: please report this kernel"
            )
    ours = layout(known, reuse=kernel.reuse)
    hidden = max((b.bytes or 0 for b in mine if b.why == HIDDEN_L0), default=0)
    total = max(ours.total_bytes, hidden)
    if total < use.total_bytes:
        return (
            f"the compiler takes {use.total_bytes:,} B of {use.memory} where {total:,} B would "
            "do: it keeps tiles apart that are never live together"
        )
    if any(tile.live is None for tile in known) and _share(placed):
        return None  # to us, what is live at an unknown time shares with nothing
    if total > use.total_bytes:
        return (
            f"our rules take {total:,} B of {use.memory}, the compiler "
            f"{use.total_bytes:,} B: it lets tiles share bytes that we count as live together, "
            "as a tile is to us from its first use to its last"
        )
    for buffer, offset in zip(placed, ours.offsets, strict=True):
        if buffer.offset not in (None, offset):
            return (
                f"our rules put {buffer.name} at {offset:,} in {use.memory}, the compiler at "
                f"{buffer.offset:,}: please report this kernel"
            )
    return None


def _share(buffers: list[Buffer]) -> bool:
    """Say whether any two buffers of a memory have bytes in common."""
    placed = sorted((b.offset, b.bytes or 0) for b in buffers if b.offset is not None)
    return any(a + size > b for (a, size), (b, _) in pairwise(placed))
