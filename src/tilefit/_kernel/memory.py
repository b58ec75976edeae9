"""Physical memories, who owns one, and how a number came to be known."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Memory(StrEnum):
    """A physical place on (or off) the chip. The values are the names used in JSON."""

    SHARED = "shared"  # NVIDIA shared memory, per block
    REGISTERS = "registers"
    TENSOR = "tensor"  # Blackwell TMEM
    LDS = "lds"  # AMD local data share
    UB = "ub"  # Ascend Unified Buffer, per AIV
    L1 = "l1"
    L0A = "l0a"
    L0B = "l0b"
    L0C = "l0c"
    BIAS = "bias"
    FIXPIPE = "fixpipe"
    THREADGROUP = "threadgroup"  # Apple
    SLM = "slm"  # Intel
    VMEM = "vmem"  # TPU
    GLOBAL = "global"
    NONE = "none"  # a handle without storage of its own
    UNDECIDED = "undecided"  # the source alone does not say


# where the tiles of a block are staged: NVIDIA's and AMD's name for the same thing
STAGING = (Memory.SHARED, Memory.LDS)


class Owner(StrEnum):
    """Who shares one instance of a memory."""

    BLOCK = "block"
    THREAD = "thread"
    CORE = "core"
    AIV = "AIV"  # Ascend vector core
    AIC = "AIC"  # Ascend cube core
    DEVICE = "device"


class Evidence(StrEnum):
    """How a number came to be known, strongest first.

    ``compiled`` was read from what the toolchain produced; ``modelled`` is a published rule
    of ours over compiled input; ``inferred`` was decided by compiled neighbours (sweeps only);
    ``declared`` is arithmetic on what the source says.
    """

    COMPILED = "compiled"
    MODELLED = "modelled"
    INFERRED = "inferred"
    DECLARED = "declared"


_STRENGTH = {evidence: rank for rank, evidence in enumerate(Evidence)}


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """Return the weakest of several: a sum is only as good as its worst part.

    Raises:
        ValueError: Nothing was given.
    """
    return max(evidence, key=_STRENGTH.__getitem__)
