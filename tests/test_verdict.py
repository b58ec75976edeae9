"""Verdicts flip exactly at a limit, and the worst of them is the kernel's."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.values import KIB, buffer, card, kernel, tmem
from tilefit._devices.names import Device, device, device_names
from tilefit._kernel.kernel import Dim, Kernel, Loop
from tilefit._kernel.memory import Memory
from tilefit._placement.place import place
from tilefit._verdict.judge import Check, Policy, Status, Verdict, judge, worst

DEVICES = [d for d in map(device, device_names()) if d.has(Memory.SHARED)]
devices = st.sampled_from(DEVICES)
H100, A100, B200, RTX_5090 = map(device, ("h100", "a100", "b200", "rtx-5090"))
# 2^31 - 1 in x, 2^16 - 1 in y and z, on every CUDA device (CUDA C++ Programming Guide)
GRID = (2**31 - 1, 2**16 - 1, 2**16 - 1)
WORST_FIRST = ["does-not-fit", "cannot-lower", "cannot-build", "unknown", "fits"]


def verdict(value: Kernel, on: Device = H100, policy: Policy | None = None) -> Verdict:
    return judge(value, place(value), on, policy)


def limit(found: Verdict, name: str) -> Check:
    return next(check for check in found.limits if check.name == name)


# ---- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        *(("v100", 96), ("t4", 64), ("a100", 163), ("rtx-3090", 99), ("rtx-4090", 99)),
        *(("h100", 227), ("b200", 227), ("thor", 227), ("rtx-5090", 99), ("gb10", 99)),
    ],
)
def test_shared_memory_ends_at_the_published_size(name: str, kib: int) -> None:
    """The last byte fits and one more does not; all that a block may opt in to."""
    fits = verdict(kernel(dynamic_bytes=kib * KIB), device(name))
    over = verdict(kernel(dynamic_bytes=kib * KIB + 1), device(name))
    assert (fits.status, fits.reason, fits.memories[0].margin) == ("fits", None, 0)
    assert (over.status, over.memories[0].margin) == ("does-not-fit", -1)
    assert over.reason is not None
    assert "over by 1 B" in over.reason


@given(on=devices, delta=st.integers(-300 * KIB, 300 * KIB))
def test_shared_memory_flips_exactly_at_the_limit(on: Device, delta: int) -> None:
    most = on.pool(Memory.SHARED).per_block_bytes
    needed = max(0, most + delta)
    (check,) = verdict(kernel(dynamic_bytes=needed), on).memories
    assert check.status == ("fits" if needed <= most else "does-not-fit")
    assert check.margin == most - needed
    assert (check.reason is None) == (needed <= most)


@pytest.mark.parametrize("on", DEVICES, ids=lambda d: d.name)
def test_the_limit_is_that_of_one_block_on_every_device(on: Device) -> None:
    most = on.pool(Memory.SHARED).per_block_bytes
    statuses = [
        verdict(kernel(dynamic_bytes=most + extra), on).status for extra in (-1, 0, 1, 1024)
    ]
    assert statuses == ["fits", "fits", "does-not-fit", "does-not-fit"]


def test_static_bytes_count_as_rounded() -> None:
    """227 KiB less 1,024: the 48 B of barriers in front round up to exactly that."""
    most = 227 * KIB
    assert verdict(kernel(dynamic_bytes=most - 1024, static_bytes=48, align=1024)).status == "fits"
    over = verdict(kernel(dynamic_bytes=most - 1023, static_bytes=48, align=1024))
    assert over.memories[0].margin == -1


def test_a_symbolic_size_is_unknown_with_no_margin() -> None:
    found = verdict(kernel(dynamic_bytes=None))
    assert found.status == "unknown"
    assert found.memories[0].margin is None
    assert "--set" in str(found.reason)


@given(headroom=st.integers(0, 200 * KIB), delta=st.integers(-1, 1))
def test_headroom_moves_the_limit_of_shared_memory(headroom: int, delta: int) -> None:
    needed = 227 * KIB - headroom + delta
    found = verdict(kernel(dynamic_bytes=needed), policy=Policy(headroom_bytes=headroom))
    assert found.memories[0].limit == 227 * KIB - headroom
    assert found.status == ("does-not-fit" if delta > 0 else "fits")


@pytest.mark.parametrize(
    ("columns", "status"), [(32, "fits"), (512, "fits"), (544, "does-not-fit")]
)
def test_tensor_memory_has_512_columns(columns: int, status: str) -> None:
    found = verdict(kernel(tmem("C_t", columns)), B200)
    assert found.status == found.memories[1].status == status
    assert found.memories[1].margin == (512 - columns) * 128 * 4


@pytest.mark.parametrize("on", [H100, RTX_5090], ids=lambda d: d.name)
def test_a_device_without_tensor_memory_fits_none_of_it(on: Device) -> None:
    """Neither Hopper nor the RTX cards of Blackwell have it."""
    found = verdict(kernel(tmem("C_t", 32)), on)
    assert (found.status, found.memories[1].limit) == ("does-not-fit", 0)
    assert found.reason == f"{on.name} has no tensor memory"


def test_headroom_leaves_tensor_memory_alone() -> None:
    found = verdict(kernel(tmem("C_t", 512)), B200, Policy(headroom_bytes=KIB))
    assert found.status == "fits"


# ---- threads and grid ------------------------------------------------------------------------


@pytest.mark.parametrize("on", DEVICES, ids=lambda d: d.name)
def test_a_block_has_at_most_1024_threads_everywhere(on: Device) -> None:
    assert verdict(kernel(threads=1024), on).status == "fits"
    over = verdict(kernel(threads=1025), on)
    assert (over.status, limit(over, "threads").margin) == ("does-not-fit", -1)


def test_threads_that_the_compiler_added_are_told_apart() -> None:
    reason = str(verdict(kernel(threads=1024 + 128, threads_declared=1024)).reason)
    assert "over by 128" in reason
    assert "1,024 written; the compiler added 128" in reason
    written = str(verdict(kernel(threads=2048, threads_declared=2048)).reason)
    assert "added" not in written


def test_unknown_threads_are_unknown() -> None:
    assert verdict(kernel(threads=None, threads_declared=None)).status == "unknown"


@given(on=devices, axis=st.integers(0, 2), delta=st.integers(-3, 3))
def test_each_axis_of_the_grid_flips_at_its_limit(on: Device, axis: int, delta: int) -> None:
    grid: list[Dim] = [1, 1, 1]
    grid[axis] = GRID[axis] + delta
    found = verdict(kernel(grid=tuple(grid)), on)
    name = "grid." + "xyz"[axis]
    assert limit(found, name).margin == -delta
    assert found.status == limit(found, name).status == ("does-not-fit" if delta > 0 else "fits")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_grid_without_blocks_is_unknown(axis: int) -> None:
    """CUDA refuses a launch of 0 blocks, and no problem has size 0: a size was not given."""
    grid: list[Dim] = [4, 4, 4]
    grid[axis] = 0
    found = verdict(kernel(grid=tuple(grid)))
    assert found.status == "unknown"
    assert f"no blocks in {'xyz'[axis]}" in str(found.reason)


def test_a_symbolic_grid_is_unknown_and_names_its_expression() -> None:
    found = verdict(kernel(grid=(32, "(m + 127) // 128", 1)))
    assert found.status == "unknown"
    assert "grid.y is (m + 127) // 128" in str(found.reason)
    assert [c.status for c in found.limits if c.name != "grid.y"] == ["fits"] * 3


def test_a_limit_that_nobody_published_is_unknown() -> None:
    found = verdict(kernel(), card(64 * KIB))
    assert found.memories[0].status == "fits"
    assert {c.name: c.status for c in found.limits} == dict.fromkeys(
        ("threads", "grid.x", "grid.y", "grid.z"), "unknown"
    )


# ---- clusters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "blocks", "status"),
    [
        ("h100", 2, "fits"),
        ("h100", 8, "fits"),  # the portable maximum of every chip with clusters
        ("h100", 16, "fits"),  # with the non-portable attribute
        ("h100", 32, "does-not-fit"),
        ("b200", 16, "fits"),
        ("b200", 32, "does-not-fit"),
        ("rtx-5090", 8, "fits"),
        ("rtx-5090", 16, "unknown"),  # nobody published a non-portable maximum
        ("thor", 16, "unknown"),
        ("a100", 2, "does-not-fit"),  # no clusters below 9.0
        ("rtx-4090", 2, "does-not-fit"),
    ],
)
def test_how_many_blocks_a_cluster_may_have(name: str, blocks: int, status: str) -> None:
    found = verdict(kernel(grid=(64, 1, 1), cluster=(blocks, 1, 1)), device(name))
    assert found.status == limit(found, "cluster").status == status
    assert limit(found, "cluster").value == blocks


def test_only_a_cluster_above_the_portable_8_needs_the_attribute() -> None:
    grid = (64, 64, 64)
    assert verdict(kernel(grid=grid, cluster=(8, 1, 1))).reason is None
    reason = verdict(kernel(grid=grid, cluster=(16, 1, 1))).reason
    assert "portable 8" in str(reason)
    assert "attribute" in str(reason)


@given(extents=st.tuples(*[st.sampled_from([1, 2, 3, 4, 8])] * 3))
def test_the_blocks_of_a_cluster_multiply(extents: tuple[int, int, int]) -> None:
    blocks = extents[0] * extents[1] * extents[2]
    found = verdict(kernel(grid=(24, 24, 24), cluster=extents))
    assert found.status == ("fits" if blocks <= 16 else "does-not-fit")
    if blocks > 1:
        assert limit(found, "cluster").value == blocks


@pytest.mark.parametrize("cluster", [None, (1, 1, 1)])
def test_a_cluster_of_one_block_is_none(cluster: tuple[int, ...] | None) -> None:
    found = verdict(kernel(cluster=cluster), A100)
    assert found.status == "fits"
    assert not [c for c in found.limits if c.name.startswith("cluster")]


@given(grid=st.integers(1, 100), extent=st.integers(2, 8))
def test_the_grid_is_a_multiple_of_the_cluster(grid: int, extent: int) -> None:
    found = verdict(kernel(grid=(1, grid, 1), cluster=(1, extent, 1)))
    assert found.status == ("fits" if grid % extent == 0 else "does-not-fit")
    assert any(c.name == "cluster.y" for c in found.limits) == (grid % extent != 0)


def test_a_symbolic_grid_says_nothing_about_multiples() -> None:
    found = verdict(kernel(grid=("m // 128", 1, 1), cluster=(2, 1, 1)))
    assert found.status == "unknown"


# ---- loops that never run --------------------------------------------------------------------


def loop(extent: Dim, *names: str) -> Loop:
    return Loop(variable="k", extent=extent, num_stages=3, buffers=names)


def test_buffers_that_vanish_with_an_empty_loop_prove_nothing() -> None:
    """0 bytes fit everywhere, but not the kernel that its author means."""
    gone, kept = buffer("A_s", 0, copies=0), buffer("C_s", 512)
    value = kernel(gone, kept, dynamic_bytes=512, loops=(loop(0, "A_s", "C_s"),))
    found = verdict(value)
    assert found.status == found.memories[0].status == "unknown"
    assert "so A_s vanishes" in str(found.reason)
    assert "--set" in str(found.reason)


def test_an_empty_loop_that_takes_nothing_away_is_fine() -> None:
    """The loop over the rest of an even division has no iterations."""
    value = kernel(buffer("A_s", 512), dynamic_bytes=512, loops=(loop(0, "A_s"), loop(4, "A_s")))
    assert verdict(value).status == "fits"


def test_an_unused_buffer_is_no_reason_to_doubt() -> None:
    value = kernel(buffer("A_s", 0, copies=0), loops=(loop(4, "A_s"), loop("n", "A_s")))
    assert verdict(value).status == "fits"


def test_what_does_not_fit_without_the_vanished_buffers_does_not_fit() -> None:
    gone = buffer("A_s", 0, copies=0)
    value = kernel(gone, dynamic_bytes=228 * KIB, loops=(loop(0, "A_s"),))
    assert verdict(value).status == "does-not-fit"


# ---- the worst -------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(Status), max_size=6))
def test_the_worst_of_several(statuses: list[Status]) -> None:
    expected = next((name for name in WORST_FIRST if name in statuses), "fits")
    assert worst(statuses) == expected


MEMORY: dict[str, int | None] = {"fits": 227 * KIB, "does-not-fit": 228 * KIB, "unknown": None}
THREADS: dict[str, int | None] = {"fits": 1024, "does-not-fit": 1152, "unknown": None}
ROWS: dict[str, Dim] = {"fits": 65535, "does-not-fit": 70000, "unknown": "m"}


@pytest.mark.parametrize("outcomes", list(product(MEMORY, THREADS, ROWS)), ids="/".join)
def test_the_verdict_is_its_worst_check_and_gives_its_reason(outcomes: tuple[str, ...]) -> None:
    memory, threads, rows = outcomes
    found = verdict(
        kernel(dynamic_bytes=MEMORY[memory], threads=THREADS[threads], grid=(1, ROWS[rows], 1))
    )
    expected = next(name for name in WORST_FIRST if name in outcomes)
    assert found.status == expected
    if expected == "fits":
        assert found.reason is None
        return
    first = ("shared", "threads", "grid.y")[outcomes.index(expected)]
    assert str(found.reason).startswith(first)


@pytest.mark.parametrize(
    ("name", "target", "bytes_", "status"),
    [
        ("a100", "sm_80", 48 * 1024, Status.FITS),
        ("a100", "sm_80", 48 * 1024 + 16, Status.DOES_NOT_FIT),  # ptxas stops at 0xc000
        ("rtx-4090", "sm_89", 48 * 1024 + 16, Status.DOES_NOT_FIT),
        ("h100", "sm_90a", 48 * 1024, Status.FITS),
        ("h100", "sm_90a", 48 * 1024 + 16, Status.UNKNOWN),  # assembles; nobody launched one
        ("b200", "sm_100a", 48 * 1024 + 16, Status.UNKNOWN),
    ],
)
def test_a_static_part_cannot_opt_in_to_more_than_48_kib(
    name: str, target: str, bytes_: int, status: Status
) -> None:
    one = replace(kernel(static_bytes=bytes_), target=target)
    found = judge(one, place(one), device(name))
    assert found.status is status
    if status is not Status.FITS:
        assert found.reason is not None
        assert f"{bytes_:,}" in found.reason
