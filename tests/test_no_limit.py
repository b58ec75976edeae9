"""A device says "has no such limit" and "nobody published it" apart, and so does a verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.values import KIB, card, kernel, made
from tilefit._devices import config as _config
from tilefit._devices.load import LAUNCH_LIMITS
from tilefit._devices.names import Device, device, device_names
from tilefit._errors import InputError
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._occupancy.occupancy import occupancy
from tilefit._placement.place import place
from tilefit._verdict.check import Check, Status
from tilefit._verdict.judge import judge
from tilefit.cli import main

# what a launch check or the occupancy rule asks of a device of the vendor
ASKED = {
    "nvidia": set(LAUNCH_LIMITS) - {"warp_sizes"},
    "amd": set(LAUNCH_LIMITS),
    "ascend": {"max_threads_per_block", "max_grid", "warp_size", "cluster_max"},
}
KNOWN = {
    "max_threads_per_block": 1024,
    "max_grid": (2**31 - 1, 65535, 65535),
    "cluster_portable_max": 8,
    "cluster_max": 16,
    "warp_size": 32,
    "register_granule": 256,
    "registers_per_core": 65536,
    "registers_per_block": 65536,
}


def limit_check(one: Kernel, on: Device, name: str) -> Check:
    found = judge(one, place(one), on)
    return next(check for check in found.limits if check.name == name)


def on_card(field: str, how: str) -> Device:
    """A card of which all is known but one number: it is not there, or nobody published it."""
    known = {**KNOWN, field: None}
    if field == "cluster_portable_max":
        known["cluster_max"] = None
    return card(100 * KIB, **known, no_limit=(field,) if how == "none" else ())


# ---- what a verdict makes of it ----------------------------------------------------------------

WITH_REGISTERS = replace(kernel(threads=256), assembly=made(registers_per_thread=64))


@pytest.mark.parametrize(
    ("field", "name", "one"),
    [
        ("max_threads_per_block", "threads", kernel(threads=4096, threads_declared=4096)),
        ("max_grid", "grid.y", kernel(grid=(1, 10**6, 1))),
        ("registers_per_block", "registers", WITH_REGISTERS),
    ],
)
def test_no_limit_fits_and_an_unpublished_one_is_unknown(
    field: str, name: str, one: Kernel
) -> None:
    free = limit_check(one, on_card(field, "none"), name)
    assert free.status is Status.FITS
    assert free.reason is None
    open_ = limit_check(one, on_card(field, "unknown"), name)
    assert (open_.status, open_.limit) == (Status.UNKNOWN, None)
    assert open_.reason == f"no {name} limit is published for card"


@pytest.mark.parametrize("field", ["warp_size", "register_granule"])
def test_registers_are_unknown_where_nobody_published_how_a_warp_gets_them(field: str) -> None:
    found = limit_check(WITH_REGISTERS, on_card(field, "unknown"), "registers")
    assert (found.status, found.reason) == (Status.UNKNOWN, f"no {field} is published for card")


def test_a_symbolic_grid_needs_no_size_where_there_is_no_limit() -> None:
    one = kernel(grid=("ceil(M / 128)", 1, 1))
    assert limit_check(one, on_card("max_grid", "none"), "grid.x").status is Status.FITS
    assert limit_check(one, card(KIB, **KNOWN), "grid.x").status is Status.UNKNOWN


def test_a_grid_without_blocks_is_unknown_even_without_a_limit() -> None:
    one = kernel(grid=(0, 1, 1))
    assert limit_check(one, on_card("max_grid", "none"), "grid.x").status is Status.UNKNOWN


def test_a_cluster_does_not_fit_a_chip_without_clusters_and_is_unknown_if_nobody_said() -> None:
    """Here the thing that is not there is what the kernel needs."""
    one = kernel(grid=(8, 1, 1), cluster=(2, 1, 1))
    without = limit_check(one, on_card("cluster_portable_max", "none"), "cluster")
    assert (without.status, without.limit) == (Status.DOES_NOT_FIT, 1)
    assert "card (card) has no clusters" in str(without.reason)
    open_ = limit_check(one, on_card("cluster_portable_max", "unknown"), "cluster")
    assert open_.status is Status.UNKNOWN
    assert open_.reason == "no cluster limit is published for card"


def test_a_cluster_above_the_portable_size_where_there_is_no_larger_one_does_not_fit() -> None:
    """Nothing is left to publish: 16 blocks are 8 more than the most."""
    one = kernel(grid=(16, 1, 1), cluster=(16, 1, 1))
    unsaid = replace(device("h100"), cluster_portable_max=8, cluster_max=None)
    none = replace(unsaid, no_limit=("cluster_max",))
    assert limit_check(one, unsaid, "cluster").status is Status.UNKNOWN
    found = limit_check(one, none, "cluster")
    assert (found.status, found.limit) == (Status.DOES_NOT_FIT, 8)
    assert found.reason == "cluster 16, limit 8: over by 8"
    portable = kernel(grid=(8, 1, 1), cluster=(8, 1, 1))
    assert limit_check(portable, none, "cluster").status is Status.FITS
    assert occupancy(unsaid, threads=128, cluster=16).problems == ()
    assert "limit 8" in occupancy(none, threads=128, cluster=16).problems[0].text


def test_registers_are_not_rounded_where_there_is_no_granule() -> None:
    """33 registers x 32 lanes x 8 warps = 8,448; in multiples of 256 a warp takes 1,280."""
    one = replace(kernel(threads=256), assembly=made(registers_per_thread=33))
    assert limit_check(one, device("h100"), "registers").value == 8 * 1280
    gone = replace(device("h100"), register_granule=None, no_limit=("register_granule",))
    found = limit_check(one, gone, "registers")
    assert (found.value, found.status) == (33 * 32 * 8, Status.FITS)
    taken = occupancy(gone, threads=256, registers=33).allocated_registers_per_block
    assert taken == 33 * 32 * 8


def test_occupancy_says_the_same_of_clusters() -> None:
    h100 = device("h100")
    unsaid = replace(h100, cluster_portable_max=None, cluster_max=None)
    gone = replace(unsaid, no_limit=("cluster_portable_max",))
    assert "no clusters" in occupancy(gone, threads=128, cluster=2).problems[0].text
    answer = occupancy(unsaid, threads=128, cluster=2)
    assert answer.problems == ()
    assert "no cluster limit is published for h100" in " ".join(answer.notes)


def test_occupancy_says_what_it_takes_for_a_number_that_nobody_published() -> None:
    h100 = device("h100")
    unsaid = replace(h100, barriers_per_core=None, registers_per_block=None)
    told = " ".join(occupancy(unsaid, threads=128).notes)
    assert "no barriers_per_core is published for h100: taken as no limit" in told
    assert "no registers_per_block is published for h100: taken as all of the core" in told
    gone = replace(unsaid, no_limit=("barriers_per_core", "registers_per_block"))
    assert "published" not in " ".join(occupancy(gone, threads=128).notes)


def test_without_a_block_limit_a_block_may_hold_the_registers_of_its_core() -> None:
    """AMD: 1,024 threads x 256 registers are twice the 131,072 of a CU; 128 are all of them."""
    mi300x = device("mi300x")
    assert mi300x.registers_per_core == 1024 * 128
    for each, status in ((128, Status.FITS), (256, Status.DOES_NOT_FIT)):
        one = replace(kernel(threads=1024), assembly=made(registers_per_thread=each))
        assert limit_check(one, mi300x, "registers").status is status


def test_a_static_part_is_not_held_to_a_limit_that_its_memory_does_not_have() -> None:
    one = kernel(static_bytes=64 * KIB)
    a100 = device("a100")
    shared = a100.pool(Memory.SHARED)
    free = replace(shared, static_per_block_bytes=None, no_limit=("static_per_block_bytes",))
    assert judge(one, place(one), a100).status is Status.DOES_NOT_FIT
    on = replace(a100, pools=(free,))
    assert judge(one, place(one), on).status is Status.FITS


# ---- what the data says ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in device_names() if device(n).vendor in ASKED])
def test_each_number_that_a_check_asks_for_is_there_or_said_not_to_be(name: str) -> None:
    """A number that is simply left out would be unknown, and nobody would have looked for it."""
    found = device(name)
    said = {fact.key for fact in found.facts}
    assert ASKED[found.vendor] - said == set()


@pytest.mark.parametrize("name", device_names())
def test_what_is_absent_is_named_and_the_rest_is_unpublished(name: str) -> None:
    found = device(name)
    for fact in found.facts:
        if fact.key in LAUNCH_LIMITS:
            assert (fact.key in found.no_limit) is fact.absent
        if fact.value is None:
            # one is a statement that somebody has to back, the other the lack of one
            assert (fact.confidence == "unknown") is not fact.absent, fact
        else:
            assert not fact.absent, fact


@pytest.mark.parametrize("name", [n for n in device_names() if device(n).vendor == "ascend"])
def test_an_ascend_core_runs_no_threads_but_in_the_simt_parts_of_the_950(name: str) -> None:
    found = device(name)
    assert found.max_threads_per_block is found.warp_size is None
    assert ("max_threads_per_block" in found.no_limit) is (found.arch != "ascend-950")
    assert "max_grid" not in found.no_limit


def test_a_number_may_not_be_there_and_absent() -> None:
    with pytest.raises(InputError, match="cluster_max 16 is there"):
        replace(device("h100"), no_limit=("cluster_max",))
    pool = device("a100").pool(Memory.SHARED)
    with pytest.raises(InputError, match=r"shared\.static_per_block_bytes 49152 is there"):
        replace(pool, no_limit=("static_per_block_bytes",))


# ---- what is shown, and what a user may write --------------------------------------------------


def fact_line(name: str, key: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["devices", name]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == [key])


def test_the_list_of_one_device_tells_them_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert " none " in fact_line("sm_80", "cluster_max", capsys)
    assert " not published " in fact_line("sm_120", "cluster_max", capsys)
    assert " 16 blocks " in fact_line("sm_90", "cluster_max", capsys)


def test_json_names_what_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "sm_80", "sm_120", "gfx942", "--json"]) == 0
    found: dict[str, Any] = {
        one["name"]: one for one in json.loads(capsys.readouterr().out)["devices"]
    }
    assert "cluster_max" in found["sm_80"]["no_limit"]
    assert "cluster_max" not in found["sm_120"]["no_limit"]
    assert found["sm_80"]["limits"]["cluster_max"] is None
    assert found["sm_120"]["limits"]["cluster_max"] is None
    assert "lds.static_per_block_bytes" in found["gfx942"]["no_limit"]


def own(folder: Path, text: str) -> Device:
    path = folder / "pyproject.toml"
    path.write_text(f"[tool.tilefit.device.mine]\n{text}", encoding="utf-8")
    (found,) = _config.devices(folder)
    return found


def test_a_users_device_may_say_either(tmp_path: Path) -> None:
    launch = "[tool.tilefit.device.mine.launch]\n"
    one = kernel(grid=(1, 10**6, 1))
    for value, status in (
        ('"none"', Status.FITS),
        ('["none", "high", "its manual"]', Status.FITS),
        ('"unknown"', Status.UNKNOWN),
        ("[10, 10, 10]", Status.DOES_NOT_FIT),
    ):
        mine = own(tmp_path, f'base = "h100"\n{launch}max_grid = {value}\n')
        assert limit_check(one, mine, "grid.y").status is status, value


def test_a_users_none_is_shown_as_none_without_a_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lab.toml"
    path.write_text('base = "h100"\n[launch]\nbarriers_per_core = "none"\n', encoding="utf-8")
    assert " none " in fact_line(str(path), "barriers_per_core", capsys)


def test_a_device_of_ones_own_with_no_launch_limits_is_unknown(tmp_path: Path) -> None:
    text = 'vendor = "nvidia"\n[tool.tilefit.device.mine.memories.shared]\nper_block_bytes = 1024\n'
    mine = own(tmp_path, text)
    found = judge(kernel(), place(kernel()), mine)
    assert found.status is Status.UNKNOWN
    assert found.reason == "no threads limit is published for mine"
