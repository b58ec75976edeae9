"""Which core has each memory of Ascend's tiles, as both of its toolchains program them."""

from __future__ import annotations

from tilefit._kernel.memory import Memory, Owner

OWNERS = {
    Memory.UB: Owner.AIV,
    **dict.fromkeys((Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C), Owner.AIC),
}
"""In the order that they are listed in. Toolchains write for a cube and a vector core apart; where
a chip has one core for both, the device data says so, and `_placement.place.owned` goes by that."""
