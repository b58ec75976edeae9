"""Why TileLang's Ascend backend refused a kernel: its message as one plain line, with what to do.

The messages are known to `explain`; its table is the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilefit._devices.names import Device
from tilefit._explain import Finding, explain
from tilefit._kernel.kernel import Kernel
from tilefit._placement.ascend_compare import tile_of
from tilefit._placement.ascend_packer import layout
from tilefit._verdict.ascend import limit_of

SILENCED = "T.annotate_unlimit_memory would turn this refusal into a silent overflow"
"""What is said beside the advice that the compiler gives."""

_UNLIMIT = "annotate_unlimit_memory"
_FORM = "tilelang-ascend"


def plain_refusal(message: str, device: Device) -> str | None:
    """Return the compiler's reason in plain words; None if it is none of the known ones.

    Args:
        message: What the compiler said.
        device: The device that it compiled for.
    """
    finding = next((f for f in explain(message).findings if f.form.startswith(_FORM)), None)
    if finding is None:
        return None
    parts = [_what(finding, device), finding.advice[0].rstrip(".") if finding.advice else ""]
    if _UNLIMIT in message:
        parts.append(SILENCED)
    return ". ".join(part for part in parts if part)


def reuse_would_do(
    whole: Sequence[Kernel], smaller: Sequence[Kernel], device: Device
) -> str | None:
    """Say so if a refused kernel would fit with bytes shared by tiles that are never live together.

    The compiler refuses by the sum of the tiles of a loop. Their sizes are those of the same
    kernel compiled without its scheduler, which checks nothing; when each is live shows the same
    kernel with smaller tiles, which it accepts.

    Args:
        whole: The device functions, compiled without the scheduler.
        smaller: The same with parameters that the compiler accepts.
        device: The device.

    Returns:
        None if it would not fit, or if the two kernels are not of the same buffers.
    """
    shares: list[str] = []
    for big, small in zip(whole, smaller, strict=False):
        for memory in (use.memory for use in big.memories):
            sized = [b for b in big.buffers if b.memory is memory and b.copies]
            lived = [b for b in small.buffers if b.memory is memory and b.copies]
            if [b.name for b in sized] != [b.name for b in lived]:
                return None
            tiles = [tile_of(replace(b, live=o.live)) for b, o in zip(sized, lived, strict=True)]
            known = [tile for tile in tiles if tile is not None]
            limit = limit_of(big, memory, device).bytes
            if len(known) < len(tiles) or layout(known).total_bytes > limit:
                return None
            side_by_side = sum(b.bytes or 0 for b in sized)
            if side_by_side > limit:
                shares.append(
                    f"The tiles are never all live together: sharing bytes within an iteration "
                    f"they need {layout(known).total_bytes:,} B of {memory}, which is there, but "
                    f"the compiler adds up {side_by_side:,} B. Use one buffer for several of them"
                )
    return shares[0] if shares and len(whole) == len(smaller) else None


def cautious(message: str) -> str:
    """Return a message that is not known, with a warning if it proposes to silence the check."""
    return f"{message} ({SILENCED})" if _UNLIMIT in message else message


def _what(finding: Finding, device: Device) -> str:
    memory = finding.memory or "a memory"
    required, limit = finding.required_bytes, finding.limit_bytes
    if required is not None and limit is not None:
        return (
            f"{memory}: the buffers of one loop need {required:,} B in one version each, and "
            f"{limit:,} B are left for them{_why(finding, device)}: {required - limit:,} B too many"
        )
    if finding.over is not None:
        return (
            f"{memory}: buffers whose versions are fixed or that cannot have several are "
            f"{finding.over:,} B over what there is, before anything else is counted"
        )
    if finding.sums:
        one = finding.sums[0]
        return (
            f"{memory}: T.gemm takes {one.written} = {one.value:,} B at least of L0A or L0B, "
            f"which have {limit:,} B"
            if limit is not None
            else f"{memory}: T.gemm takes {one.written} = {one.value:,} B at least"
        )
    return f"{finding.message}: {finding.says}" if finding.says else finding.message


def _why(finding: Finding, device: Device) -> str:
    """Say where a limit is from, if it is one of the device's."""
    for condition in device.conditions:
        if condition.memory == finding.memory and condition.per_block_bytes == finding.limit_bytes:
            return f" ({condition.when})"
    if finding.memory is not None and device.has(finding.memory):
        if device.pool(finding.memory).per_block_bytes == finding.limit_bytes:
            return " (all that a kernel may use)"
        return " (others take the rest)"
    return ""


def _ascend_words(message: str, device: Device) -> str:
    return plain_refusal(message, device) or cautious(message)


_WORDS: Mapping[str, Callable[[str, Device], str]] = {"ascend": _ascend_words}
"""How a refusal for a vendor's chips is put into plain words; others stay as they are."""


def in_plain_words(message: str, device: Device) -> str:
    """Return a compiler's reason, put into plain words where they are known."""
    words = _WORDS.get(device.vendor)
    return message if words is None else words(message, device)


def for_want_of_memory(message: str, device: Device) -> bool:
    """Say whether a compiler refused because a memory is too small: a smaller tile helps then."""
    return device.vendor in _WORDS and plain_refusal(message, device) is not None
