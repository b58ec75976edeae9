"""What PTX says of NVIDIA's targets, for frontends, which see no devices.

An instruction and its units belong to the language that a toolchain emits, and the target decides
whether they assemble. Tests hold each of these facts to the device data.
"""

from __future__ import annotations

COLUMN_BYTES = 128 * 4
"""A column of tensor memory: 128 lanes of 32 bit (PTX ISA, tensor memory)."""

LEAST_COLUMNS = 32
"""tcgen05.alloc takes a power of two of columns, and no fewer (PTX ISA)."""

TENSOR_VERSIONS = (100, 101, 103, 110)
"""Targets with tcgen05; 101 is what 110 was called before CUDA 13."""

WGMMA_VERSIONS = (90,)
"""Targets with wgmma."""

WARP_GROUP_THREADS = 128
"""Threads that a wgmma is issued by (PTX ISA, asynchronous warpgroup level matrix operations)."""

WGMMA_ROWS = 64
"""Rows of a wgmma: the M of its every shape (PTX ISA)."""

FIRST_WARP_GROUPS = 90
"""The first target with TMA and with setmaxnreg, which warp specialisation needs."""


def version_of(target: str) -> int | None:
    """Return the compute capability of a target as PTX writes it; None for another vendor's.

    >>> version_of("sm_90a")
    90
    """
    digits = target.removeprefix("sm_").rstrip("af")
    return int(digits) if target.startswith("sm_") and digits.isdecimal() else None


def has_tma(target: str) -> bool:
    """Return whether a target has TMA, and so may have warp specialisation."""
    return (version_of(target) or 0) >= FIRST_WARP_GROUPS
