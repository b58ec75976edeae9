"""What a kernel needs of the memories of a GPU, from its buffers: the same for every frontend."""

from __future__ import annotations

from collections.abc import Sequence

from tilefit._frontends.ptx import COLUMN_BYTES
from tilefit._kernel.kernel import Buffer, MemoryUse
from tilefit._kernel.memory import Evidence, Memory, Owner, weakest


def gpu_uses(
    buffers: Sequence[Buffer],
    staging: Memory,
    *,
    dynamic_bytes: int | None,
    static_bytes: int,
    align_bytes: int | None,
    evidence: Evidence,
) -> tuple[MemoryUse, ...]:
    """Return the use of the memory that tiles are staged in, and of tensor memory if there is any.

    Args:
        buffers: All buffers of the kernel.
        staging: Shared memory or LDS.
        dynamic_bytes: Its dynamic part.
        static_bytes: Its static part, before rounding.
        align_bytes: Alignment of its dynamic part.
        evidence: How these came to be known.
    """
    parts = [b.evidence for b in buffers if b.memory is staging]
    staged = MemoryUse(
        memory=staging,
        owner=Owner.BLOCK,
        dynamic_bytes=dynamic_bytes,
        static_bytes=static_bytes,
        align_bytes=align_bytes,
        evidence=weakest([evidence, *parts]),
    )
    tensor = [b for b in buffers if b.memory is Memory.TENSOR]
    if not tensor:
        return (staged,)
    sizes = [b.bytes for b in tensor]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    return (
        staged,
        MemoryUse(
            memory=Memory.TENSOR,
            owner=Owner.BLOCK,
            dynamic_bytes=total,
            columns=None if total is None else total // COLUMN_BYTES,
            evidence=weakest(b.evidence for b in tensor),
        ),
    )
