"""Hold a compiler's layout against a packer of our own that follows its published rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefit._kernel.kernel import Kernel, MemoryUse
from tilefit._kernel.memory import Memory
from tilefit._placement.ascend_compare import arena_differs
from tilefit._placement.tilelang_packer import Interval, agrees, pack


def packing_differs(kernel: Kernel, packers: Mapping[Memory, str]) -> str | None:
    """Pack the buffers by rules of our own; say in one line where the compiler differs.

    Args:
        kernel: A kernel that a compiler laid out.
        packers: Whose rules hold for what memory; see `tilefit._kernel.toolchain.Toolchain`.

    Returns:
        None if every dynamic offset, their total and the assembler's static bytes agree, or if
        there is nothing to compare.
    """
    lines = (
        PACKERS[packers[use.memory]](kernel, use)
        for use in kernel.memories
        if use.memory in packers
    )
    return next(filter(None, lines), None)


def _tilelang_differs(kernel: Kernel, use: MemoryUse) -> str | None:
    made = kernel.assembled
    if made is not None and made.static_bytes != use.padded_static_bytes:
        return (
            f"our static layout needs {use.padded_static_bytes:,} B, the assembler says "
            f"{made.static_bytes:,} B: please report this kernel"
        )
    buffers = [
        b
        for b in kernel.buffers
        if b.memory is use.memory and not b.static and b.live is not None and b.copies != 0
    ]
    if not buffers or use.dynamic_bytes is None:
        return None
    intervals = [
        Interval(
            name=b.name,
            start=b.live[0] if b.live else 0,
            end=b.live[1] if b.live else 0,
            bytes=b.bytes,
            align_bytes=b.align_bytes or 1,
        )
        for b in buffers
    ]
    theirs = [b.offset for b in buffers]
    if agrees(intervals, theirs, use.dynamic_bytes, reuse=kernel.reuse):
        return None
    packing = pack(intervals, reuse=kernel.reuse)
    for buffer, ours in zip(buffers, packing.offsets, strict=True):
        if ours != buffer.offset:
            return (
                f"our packer puts {buffer.name} {_at(ours)}, the compiler {_at(buffer.offset)}: "
                "please report this kernel"
            )
    total = "?" if packing.total_bytes is None else f"{packing.total_bytes:,}"
    return (
        f"our packer needs {total} B, the compiler {use.dynamic_bytes:,} B: "
        "please report this kernel"
    )


def _at(offset: int | None) -> str:
    return "nowhere" if offset is None else f"at {offset:,}"


PACKERS: Mapping[str, Callable[[Kernel, MemoryUse], str | None]] = {
    "tilelang": _tilelang_differs,
    "tilelang-ascend": arena_differs,
}
"""Our packers by the names that a toolchain calls them."""
