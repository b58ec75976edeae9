"""What a user wants beyond bare fitting: blocks that one core holds, bytes that stay free."""

from __future__ import annotations

from dataclasses import replace

from tilefit._devices.names import Device
from tilefit._errors import InputError
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import STAGING, Memory
from tilefit._planning.residency import by_core, residency
from tilefit._verdict.check import Check, LaunchLimit, Status, worst
from tilefit._verdict.judge import Policy, Verdict


def with_blocks(verdict: Verdict, kernel: Kernel, device: Device, wanted: int | None) -> Verdict:
    """Return the verdict with a check of the blocks of one core; as it is if none are wanted."""
    if wanted is None:
        return verdict
    check = _check(kernel, device, wanted)
    status = worst((verdict.status, check.status))
    return replace(
        verdict,
        status=status,
        reason=verdict.reason if status is verdict.status else check.reason,
        limits=(*verdict.limits, check),
    )


def block_limit(device: Device, policy: Policy) -> int | None:
    """Return the bytes that a block may have for its tiles, with what is wanted beside.

    Returns:
        None where blocks have no memory of their own. Where several blocks have to be held, as
        much as their share of the core at most.
    """
    pool = next((device.pool(m) for m in STAGING if device.has(m)), None)
    if pool is None or by_core(device):
        return None
    share = pool.per_core_bytes // (policy.blocks or 1)
    return min(pool.per_block_bytes - policy.headroom_bytes, share)


def _check(kernel: Kernel, device: Device, wanted: int) -> Check:
    """Judge by what is known: a bound from above can refute, and proves nothing."""
    found, exact, words = _held(kernel, device)
    status = Status.UNKNOWN
    if found is not None and found < wanted:
        status = Status.DOES_NOT_FIT
    elif found is not None and exact:
        status = Status.FITS
    return Check(
        name=LaunchLimit.BLOCKS,
        value=found if exact else None,
        limit=wanted,
        status=status,
        reason=None if status is Status.FITS else f"{_plural(wanted)} wanted: {words}",
    )


def _held(kernel: Kernel, device: Device) -> tuple[int | None, bool, str]:
    """Return the blocks of one core, whether more may not be, and the same in words."""
    if by_core(device):
        return 1, True, "a core of this chip takes one block at a time"
    held = residency(kernel, device)
    if held is None or held.blocks is None:
        return None, False, f"how many one core of {device.name} holds is not known for this kernel"
    by = f" by {' and '.join(held.limiters)}" if held.limiters else ""
    if held.exact:
        return held.blocks, True, f"one {held.core} holds {held.blocks}, held there{by}"
    words = f"one {held.core} holds at most {held.blocks}{by}, registers not counted"
    how = "--assemble counts them" if kernel.assembly is None else "it could not be assembled"
    return held.blocks, False, f"{words}; {how}"


def refuse_headroom(headroom_bytes: int, device: Device) -> None:
    """Refuse headroom that leaves nothing.

    Raises:
        InputError: The device has no more than that of the memory that it is kept from.
    """
    for memory in (*STAGING, Memory.UB):
        if not headroom_bytes or not device.has(memory):
            continue
        most = device.pool(memory).per_block_bytes
        if headroom_bytes >= most:
            raise InputError(
                f"headroom of {headroom_bytes:,} B leaves nothing of the {most:,} B of {memory} "
                f"that a kernel may use on {device.name}"
            )


def _plural(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"
