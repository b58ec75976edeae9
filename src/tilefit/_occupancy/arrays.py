"""Occupancy of many configurations at once: arrays in, arrays out, by the one rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilefit._devices.names import Device
from tilefit._errors import InputError
from tilefit._occupancy.core import CoreLimits, core_limits, one_device
from tilefit._occupancy.rule import LIMITERS, Request, blocks_by, carveout_bytes

_CHUNK = 16384  # elements: the rule's intermediate values stay in the cache
_MOST = 2**31 - 1
_LEAST = {"threads": 1, "carveout": -1}


@dataclass(frozen=True, slots=True, eq=False)
class OccupancyArrays:
    """The answers, in the common shape of the inputs.

    Attributes:
        blocks_per_core: Resident blocks.
        limiter_bits: Every limit equal to that number, a bit each, as in NVIDIA's header:
            1 warps, 2 registers, 4 shared (AMD: LDS), 8 blocks, 16 barriers.
    """

    blocks_per_core: npt.NDArray[np.int32]
    limiter_bits: npt.NDArray[np.uint8]


def occupancy_arrays(
    device: str | Device,
    *,
    threads: npt.ArrayLike,
    registers: npt.ArrayLike | None = None,
    static_smem: npt.ArrayLike = 0,
    dynamic_smem: npt.ArrayLike = 0,
    carveout: npt.ArrayLike = -1,
    barriers: npt.ArrayLike = 1,
    optin: bool = True,
    max_dynamic_smem: npt.ArrayLike | None = None,
    wave: int | None = None,
) -> OccupancyArrays:
    """Return `occupancy` of every element; the inputs are broadcast against each other.

    Args:
        device: An NVIDIA or AMD device, its name, or a ``.toml`` file.
        threads: Threads of one block.
        registers: Registers of one thread; None if unknown, which limits nothing.
        static_smem: Static bytes of shared memory.
        dynamic_smem: Dynamic bytes.
        carveout: 0 to 100 percent of shared memory; -1 for all of it.
        barriers: Block barriers that the kernel uses.
        optin: The kernel opts in to more shared memory than the default per block.
        max_dynamic_smem: The bytes it opts in to; None: as many as there are.
        wave: AMD RDNA: 64 for kernels compiled for waves of 64 lanes.

    Raises:
        InputError: A value is no whole number or out of range, the shapes do not go together, or
            the device has no such thing as occupancy.
        UnknownNameError: No such device.
    """
    limits = core_limits(one_device(device), wave)
    values = {
        "threads": threads,
        "registers": registers,
        "static_smem": static_smem,
        "dynamic_smem": dynamic_smem,
        "carveout": carveout,
        "barriers": barriers,
        "max_dynamic_smem": max_dynamic_smem,
    }
    arrays = {name: _whole(name, value) for name, value in values.items() if value is not None}
    percent = arrays["carveout"]
    if percent.size and percent.max() > 100:
        raise InputError(f"carveout {percent.max()} is not a percentage from 0 to 100")
    # indexed by the percentage; the last entry is what index -1 means
    sizes = np.array([carveout_bytes(limits, p) for p in (*range(101), -1)], dtype=np.int64)
    arrays["carveout"] = sizes[percent]
    return _evaluate(limits, arrays, bool(optin))


def _whole(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{name}: the rows of a list have different lengths") from None
    least = _LEAST.get(name, 0)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name}: {array.dtype} values are not whole numbers")
    for extreme in (array.min(), array.max()):
        if not least <= extreme <= _MOST:
            raise InputError(f"{name} {extreme} is not a whole number from {least} to {_MOST}")
    return array


def _evaluate(
    limits: CoreLimits, arrays: dict[str, npt.NDArray[Any]], optin: bool
) -> OccupancyArrays:
    """Run the rule over chunks; single values stay ints, for which numpy is faster."""
    single = {name: int(array) for name, array in arrays.items() if array.ndim == 0}
    many = {name: array for name, array in arrays.items() if array.ndim > 0}
    if not many:
        many["threads"] = arrays["threads"]
        del single["threads"]
    dtypes: list[Any] = [*([np.int64] * len(many)), np.int32, np.uint8]
    flags: list[Any] = [*([["readonly"]] * len(many)), *([["writeonly", "allocate"]] * 2)]
    try:
        chunks = np.nditer(
            [*many.values(), None, None],
            flags=["external_loop", "buffered", "zerosize_ok"],
            op_flags=flags,
            op_dtypes=dtypes,
            casting="unsafe",  # the range was checked
            buffersize=_CHUNK,
        )
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in many.items())
        raise InputError(f"shapes do not go together: {shapes}") from None
    with chunks:
        for *parts, blocks, bits in chunks:
            values = single | dict(zip(many, parts, strict=True))
            blocks[...], bits[...] = _chunk(limits, values, optin)
        return OccupancyArrays(chunks.operands[-2], chunks.operands[-1])


def _chunk(limits: CoreLimits, values: dict[str, Any], optin: bool) -> tuple[Any, Any]:
    allowed = blocks_by(
        limits,
        Request(
            threads=values["threads"],
            registers=values.get("registers"),
            static=values["static_smem"],
            dynamic=values["dynamic_smem"],
            carveout=values["carveout"],
            optin=optin,
            max_dynamic=values.get("max_dynamic_smem"),
            barriers=values["barriers"],
        ),
        np,
    )
    blocks = allowed[0]
    for other in allowed[1:]:
        blocks = np.minimum(blocks, other)
    bits: Any = 0
    for position in range(len(LIMITERS)):
        bits = bits | ((allowed[position] == blocks) * np.uint8(1 << position))
    return blocks, bits
