"""One limit held against one value, and what is asked beyond bare fitting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tilefit._kernel.extent import Holds
from tilefit._kernel.kernel import Buffer, Dim, Kernel
from tilefit._kernel.memory import STAGING, Memory

UNREAD = "not all that the kernel allocates could be read from its source"


class Status(StrEnum):
    """What can be said, worst first."""

    DOES_NOT_FIT = "does-not-fit"
    CANNOT_LOWER = "cannot-lower"
    CANNOT_BUILD = "cannot-build"  # its bytes are known, and there is no machine code of it
    UNKNOWN = "unknown"
    FITS = "fits"
    NOT_ASKED = "not-asked"  # of a check alone: the question lacks what it is about


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst of several; ``fits`` for none, as what was not asked counts for nothing."""
    order = list(Status)
    return min((*statuses, Status.FITS), key=order.index)


class LaunchLimit(StrEnum):
    """What is checked beside the bytes of a memory. The values are the names used in JSON."""

    THREADS = "threads"
    GRID = "grid"  # where no launch was given
    GRID_X = "grid.x"
    GRID_Y = "grid.y"
    GRID_Z = "grid.z"
    CLUSTER = "cluster"
    CLUSTER_X = "cluster.x"
    CLUSTER_Y = "cluster.y"
    CLUSTER_Z = "cluster.z"
    REGISTERS = "registers"
    ROLES = "roles"
    STATIC = "static"
    BUILD = "build"
    BLOCKS = "blocks"  # wanted of one core: the only one whose limit is the least
    LAUNCH = "launch"  # of a vendor whose limits are not known
    OVERLAP = "overlap"
    UB_OR_L1 = "ub or l1"
    UNDECIDED = "undecided"
    UNREAD = "unread"
    VANISHED = "vanished"


GRID = (LaunchLimit.GRID_X, LaunchLimit.GRID_Y, LaunchLimit.GRID_Z)
CLUSTER = (LaunchLimit.CLUSTER_X, LaunchLimit.CLUSTER_Y, LaunchLimit.CLUSTER_Z)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user asks beyond bare fitting.

    Attributes:
        headroom_bytes: Shared memory, or UB, that has to stay free.
        blocks: Blocks that one core has to hold at once; None if any number will do.
    """

    headroom_bytes: int = 0
    blocks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One limit held against one value.

    Attributes:
        name: The memory or the launch limit.
        value: What the kernel needs; text if it is symbolic, None if unknown.
        limit: What the device allows.
        status: The outcome.
        reason: One line, for every outcome but a plain ``fits``; of that, on what it hangs.
        limit_reason: Why that limit and not the memory's plain one, or when it would be less; of
            a launch limit that the device does not have, that it has none.
        limit_columns: Of tensor memory: the limit in columns.
        silent: Whether the compiler accepted more than the chip has.
        holds: Of an extent over open sizes that can pass the limit: how far it does not.
    """

    name: Memory | LaunchLimit
    value: Dim | None
    limit: int | None
    status: Status
    reason: str | None = None
    limit_reason: str | None = None
    limit_columns: int | None = None
    silent: bool = False
    holds: Holds | None = None

    @property
    def margin(self) -> int | None:
        """What is left; negative if it does not fit, None if unknown."""
        if isinstance(self.value, int) and self.limit is not None:
            return self.limit - self.value
        return None


def fullest(checks: Iterable[Check]) -> Check | None:
    """Return the check of the memory that tiles are staged in; on Ascend the fullest one.

    Of several device functions' it is the one with the most bytes.
    """
    known = [c for c in checks if isinstance(c.value, int)]
    staged = [c for c in known if c.name in STAGING]
    if staged:
        return max(staged, key=_value)
    tiles = [c for c in known if c.name != Memory.TENSOR]
    return max(tiles, key=lambda c: _value(c) / (c.limit or 1), default=None)


def _value(check: Check) -> int:
    return check.value if isinstance(check.value, int) else 0


def why_open(kernel: Kernel, memory: Memory, buffers: Iterable[Buffer]) -> str | None:
    """Say why the bytes of a memory are not known; None if the kernel does not say.

    Args:
        kernel: The kernel.
        memory: The memory.
        buffers: Those that are in it, or may be.
    """
    needs = [f"{b.name}: {b.needs}" for b in buffers if b.bytes is None and b.needs]
    reason = next(iter((*kernel.unread, *needs)), None)
    return None if reason is None else f"{memory} bytes are not known: {reason}"


def no_blocks(axis: LaunchLimit, blocks: int, limit: int | None) -> Check:
    """Return the check of a grid that has no blocks in one axis."""
    return Check(
        name=axis,
        value=blocks,
        limit=limit,
        status=Status.UNKNOWN,
        reason=f"the grid has no blocks in {axis[-1]} at these sizes: nothing would run; "
        "set the problem sizes and tiles with --set",
    )


def unknown(name: Memory | LaunchLimit, reason: str) -> Check:
    """Return a check of which nothing can be said, and why."""
    return Check(name=name, value=None, limit=None, status=Status.UNKNOWN, reason=reason)
