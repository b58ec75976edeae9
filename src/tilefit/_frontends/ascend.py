"""Which core has each memory of Ascend's tiles, as both of its toolchains program them."""

from __future__ import annotations

from collections.abc import Sequence

from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import Memory, Owner

OWNERS = {
    Memory.UB: Owner.AIV,
    **dict.fromkeys((Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C), Owner.AIC),
}
"""In the order that they are listed in. Toolchains write for a cube and a vector core apart; where
a chip has one core for both, the device data says so, and `_placement.place.owned` goes by that."""


def declared_bytes(buffers: Sequence[Buffer], *, may_share: bool) -> tuple[int | None, int | None]:
    """Return the most and the fewest bytes that the declared buffers of one memory take.

    A buffer with an offset is where its author put it (``T.annotate_address``), over others if it
    must be. The rest lies behind those at most: without memory planning the adapter counts it
    from 0 in L1 and L0, whatever is there, and from the end of the placed ones in UB
    (ascend_memory_planning.cc of tilelang-ascend at 95acbd7f).

    Args:
        buffers: All of one memory.
        may_share: Whether the compiler may place those without an offset over dead ones.

    Returns:
        The fewest are None where the most are what it takes; both are None with an open size.
    """
    if any(b.bytes is None for b in buffers):
        return None, None
    ends = [b.offset + (b.bytes or 0) for b in buffers if b.offset is not None]
    loose = [b.bytes or 0 for b in buffers if b.offset is None]
    most = max(ends, default=0) + sum(loose)
    least = max([*ends, *loose], default=0)
    return most, least if least < most and (ends or may_share) else None
