"""What the chips of a vendor have alike, for a question that names none of them.

A message that counts columns, or a tile that has no device, still needs the size of a column. Each
answer is read from one architecture that has it; a test holds all the others to the same.
"""

from __future__ import annotations

from tilefit._devices.device import Pool
from tilefit._devices.load import load_arch
from tilefit._kernel.memory import Memory


def tensor_memory() -> Pool:
    """Return the tensor memory of NVIDIA's chips: its lanes, and what a column is."""
    return load_arch("sm_100")[0].pool(Memory.TENSOR)


def warp() -> tuple[int, int]:
    """Return the threads of a warp of NVIDIA's chips, and the multiple of registers it is given."""
    found = load_arch("sm_90")[0]
    assert found.warp_size is not None
    assert found.register_granule is not None
    return found.warp_size, found.register_granule


def static_shared_bytes() -> int:
    """Return the most static shared memory of a block, where ptxas has a limit to it."""
    most = load_arch("sm_80")[0].pool(Memory.SHARED).static_per_block_bytes
    assert most is not None
    return most
