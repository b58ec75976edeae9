"""Why TileLang's Ascend backend refused a kernel: its message as one plain line, with what to do.

The messages are known to `explain`; its table is the only one.
"""

from __future__ import annotations

from tilefit._device import Device
from tilefit._explain import Finding, explain

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
