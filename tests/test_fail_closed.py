"""What no check covers is never a fit: over every memory, every device and every vendor.

The audit below knows the limits from the device data alone. The mutants at the end break the
contract on purpose, and each has to be seen by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.values import buffer, card, kernel
from tilefit._devices.names import Device, device, device_names
from tilefit._kernel.kernel import Buffer, Kernel, Launch, Loop, MemoryUse
from tilefit._kernel.memory import Memory, Owner
from tilefit._placement.place import place
from tilefit._verdict import judge as rules
from tilefit._verdict import launch
from tilefit._verdict.check import Status

# the memories whose limits are those of one block or core, and that a compiler lays out
LAID_OUT = {
    *(Memory.SHARED, Memory.LDS, Memory.TENSOR),
    *(Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C),
}
# not on the chip, or not counted in bytes of a block
ELSEWHERE = {Memory.REGISTERS, Memory.GLOBAL, Memory.NONE}
VENDORS = ("nvidia", "amd", "ascend")
DEVICES = [*map(device, device_names()), card(1024, name="of another vendor", vendor="apple")]


def using(memory: Memory, n_bytes: int, *buffers: Buffer) -> Kernel:
    """A launch of one block of 32 threads that needs so much of one memory."""
    use = MemoryUse(memory=memory, owner=Owner.BLOCK, dynamic_bytes=n_bytes)
    launch = Launch(threads_declared=32, threads=32, grid=(1, 1, 1))
    return replace(kernel(*buffers), memories=(use,), launch=launch)


def status(one: Kernel, on: Device) -> Status:
    return rules.judge(one, place(one), on).status


def audit(devices: list[Device]) -> Iterator[str]:
    """Yield every breach of the contract: nothing at all if it holds."""
    for on in devices:
        for memory in Memory:
            covered = memory in LAID_OUT and on.has(memory) and on.vendor in VENDORS
            if (status(using(memory, 1), on) is Status.FITS) != covered:
                yield f"1 B of {memory} on {on.name}"
            if not covered:
                continue
            limit = on.pool(memory).per_block_bytes
            if status(using(memory, limit), on) is Status.DOES_NOT_FIT:
                yield f"all of {memory} on {on.name}"
            if status(using(memory, limit + 1), on) is not Status.DOES_NOT_FIT:
                yield f"1 B more than all of {memory} on {on.name}"
        for memory in set(Memory) - ELSEWHERE:
            # a buffer there, and no total of it: something else is all that was told
            tile = buffer("tile", 1, memory=memory, scope="local.odd")
            known = next(iter(LAID_OUT - {memory} & {pool.memory for pool in on.pools}), None)
            if known is not None and status(using(known, 1, tile), on) is Status.FITS:
                yield f"a buffer in {memory} without a total on {on.name}"
        if on.vendor in ("nvidia", "amd"):
            yield from _launches(on)


def _launches(on: Device) -> Iterator[str]:
    (main,) = [p.memory for p in on.pools if p.memory in (Memory.SHARED, Memory.LDS)]
    one = using(main, 1)
    most = on.max_threads_per_block
    assert most is not None
    for threads, fits in ((most, True), (most + 1, False)):
        launch = replace(one.launch, threads=threads)
        if (status(replace(one, launch=launch), on) is not Status.DOES_NOT_FIT) != fits:
            yield f"{threads} threads on {on.name}"
    grid = on.max_grid
    for axis in range(3) if grid is not None else ():
        assert grid is not None
        extents = tuple(grid[a] + 1 if a == axis else 1 for a in range(3))
        launch = replace(one.launch, grid=extents)
        if status(replace(one, launch=launch), on) is not Status.DOES_NOT_FIT:
            yield f"grid {extents} on {on.name}"


def test_every_memory_on_every_device() -> None:
    assert list(audit(DEVICES)) == []


def test_a_vendor_without_launch_limits_is_unknown() -> None:
    one = using(Memory.SHARED, 1)
    assert status(one, card(1024, max_threads_per_block=1024)) is not Status.DOES_NOT_FIT
    assert status(one, card(1024, vendor="apple")) is Status.UNKNOWN


def test_a_kernel_of_which_not_all_was_read_is_unknown() -> None:
    on = device("h100")
    assert status(using(Memory.SHARED, 1), on) is Status.FITS
    assert status(replace(using(Memory.SHARED, 1), complete=False), on) is Status.UNKNOWN
    assert status(replace(kernel(), memories=(), complete=False), on) is Status.UNKNOWN
    ascend = device("ascend-950pr_957b")
    assert status(replace(using(Memory.UB, 1), complete=False), ascend) is Status.UNKNOWN


def test_a_kernel_whose_every_buffer_vanished_is_unknown() -> None:
    gone = buffer("tile", 0, copies=0, memory=Memory.UB)
    loop = Loop(variable="k", extent=0, num_stages=None, buffers=("tile",))
    one = replace(kernel(gone, loops=(loop,)), memories=())
    for name in ("ascend-950pr_957b", "h100"):
        assert status(one, device(name)) is not Status.FITS


def test_a_buffer_that_no_source_places_is_unknown_on_every_vendor() -> None:
    tile = buffer("tile", 64, memory=Memory.UNDECIDED, scope="local.odd")
    for name, memory in (
        ("h100", Memory.SHARED),
        ("mi300x", Memory.LDS),
        ("ascend-950pr_957b", Memory.UB),
    ):
        assert status(using(memory, 1, tile), device(name)) is Status.UNKNOWN


def test_a_launch_that_was_not_given_is_not_asked() -> None:
    launch = Launch(threads_declared=None, threads=None, grid=None)
    for name, memory in (("h100", Memory.SHARED), ("mi300x", Memory.LDS)):
        one = replace(using(memory, 1), launch=launch)
        found = rules.judge(one, place(one), device(name))
        assert found.status is Status.FITS
        asked = {check.name: check.status for check in found.limits}
        assert asked == {"threads": Status.NOT_ASKED, "grid": Status.NOT_ASKED}
        over = replace(using(memory, 2**30), launch=launch)
        assert status(over, device(name)) is Status.DOES_NOT_FIT


# ---- mutants: each breaks the contract, and the audit has to see it ---------------------------


def _drop_memory(memory: Memory) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(patch: pytest.MonkeyPatch) -> None:
        left = {m: c for m, c in rules._MEMORY_CHECKS.items() if m is not memory}
        patch.setattr(rules, "_MEMORY_CHECKS", left)

    return apply


def _drop_launch(vendor: str, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(patch: pytest.MonkeyPatch) -> None:
        left = tuple(c for c in launch.LAUNCH_CHECKS[vendor] if c.__name__ != name)
        assert len(left) < len(launch.LAUNCH_CHECKS[vendor])
        patch.setattr(rules, "LAUNCH_CHECKS", {**launch.LAUNCH_CHECKS, vendor: left})

    return apply


def _patched(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(rules, name, value)


def _unknown_memory_fits(patch: pytest.MonkeyPatch) -> None:
    """A memory without a check of its own is held against nothing."""
    plain = rules._memory

    def fits(one: Kernel, plan: Any, on: Device, policy: Any) -> rules.Check:
        check = plain(one, plan, on, policy)
        return check if plan.memory in rules._MEMORY_CHECKS else replace(check, status=Status.FITS)

    patch.setattr(rules, "_memory", fits)


def _swapped_limits(patch: pytest.MonkeyPatch) -> None:
    """The bytes of a whole core instead of those of a block."""
    plain = rules._block_check

    def swapped(one: Kernel, plan: Any, on: Device, policy: Any) -> rules.Check:
        pools = tuple(
            replace(p, per_block_bytes=p.per_core_bytes, reserved_per_block_bytes=0)
            for p in on.pools
        )
        return plain(one, plan, replace(on, pools=pools), policy)

    patch.setattr(rules, "_MEMORY_CHECKS", {**rules._MEMORY_CHECKS, Memory.SHARED: swapped})


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    **{f"no check of {memory}": _drop_memory(memory) for memory in sorted(LAID_OUT)},
    "an unknown memory fits": _unknown_memory_fits,
    "buffers without a total are passed over": _patched("_unplaced", lambda *_: ()),
    "no check of threads": _drop_launch("nvidia", "_threads"),
    "no check of the grid": _drop_launch("nvidia", "_grid"),
    "no check of threads on AMD": _drop_launch("amd", "_threads"),
    "what is undecided is passed over": _drop_launch("nvidia", "_undecided"),
    "per core for per block": _swapped_limits,
    "a vendor without checks fits": _patched("no_launch_checks", lambda *_: ()),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_audit_sees_a_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert list(audit(DEVICES)) != []
