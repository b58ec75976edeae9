"""What each toolchain calls a device."""

from __future__ import annotations

import pytest

from tilefit._devices.names import device, device_names

TARGETS = {
    "sm_70": "sm_70",
    "sm_72": "sm_72",
    "sm_75": "sm_75",
    "sm_80": "sm_80",
    "sm_86": "sm_86",
    "sm_87": "sm_87",
    "sm_88": "sm_88",
    "sm_89": "sm_89",
    "sm_90": "sm_90a",
    "sm_100": "sm_100a",
    "sm_103": "sm_103a",
    "sm_110": "sm_110a",
    "sm_120": "sm_120a",
    "sm_121": "sm_121a",
}


@pytest.mark.parametrize("toolchain", ["tilelang", "triton"])
@pytest.mark.parametrize(("name", "target"), TARGETS.items())
def test_from_9_0_on_the_target_has_an_a(name: str, target: str, toolchain: str) -> None:
    """wgmma, setmaxnreg and tcgen05 exist on the `a` targets only."""
    assert device(name).target(toolchain) == target


def test_every_nvidia_architecture_is_in_the_table() -> None:
    assert {n for n in device_names() if device(n).vendor == "nvidia"} >= set(TARGETS)
    assert {device(n).arch for n in device_names() if device(n).vendor == "nvidia"} == set(TARGETS)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("h100", "sm_90a"),
        ("a100", "sm_80"),
        ("rtx-4090", "sm_89"),
        ("b200", "sm_100a"),
        ("b300", "sm_103a"),
        ("thor", "sm_110a"),
        ("rtx-5090", "sm_120a"),
        ("gb10", "sm_121a"),
        ("ascend-950", "ascend"),
        ("dav-3510", "ascend"),
        ("ascend-950pr_958b", "ascend"),
    ],
)
def test_a_product_has_the_tilelang_target_of_its_architecture(name: str, target: str) -> None:
    assert device(name).target("tilelang") == target


@pytest.mark.parametrize("name", ["ascend-910b1", "ascend-910_9391", "ascend-310p3", "ascend-910a"])
def test_tilelang_has_no_target_for_the_older_ascend_chips(name: str) -> None:
    """Its Ascend dialect generates code for dav-3510 alone; the reason says so."""
    assert device(name).target("tilelang") is None
    assert "dav-3510" in device(name).why_no_target("tilelang")


@pytest.mark.parametrize("name", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_triton_calls_an_amd_chip_by_its_name(name: str) -> None:
    assert device(name).target("triton") == name


def test_every_compiled_device_has_a_target_or_a_reason() -> None:
    for name in device_names():
        found = device(name)
        if found.vendor in ("nvidia", "amd", "ascend"):
            known = {toolchain for toolchain, _ in (*found.targets, *found.no_target)}
            assert known == {"tilelang", "triton"}, name


def test_limits_only_devices_have_no_target() -> None:
    assert device("apple-gpu").target("tilelang") is None
    assert device("apple-gpu").why_no_target("tilelang") == "tilelang has no target for apple-gpu"


@pytest.mark.tilelang
@pytest.mark.parametrize("name", TARGETS)
def test_the_target_is_the_one_of_tilelangs_own_rule(name: str) -> None:
    from tilelang.contrib.nvcc import get_target_arch

    digits = name.removeprefix("sm_")
    major, minor = int(digits[:-1]), int(digits[-1])
    assert device(name).target("tilelang") == f"sm_{get_target_arch((major, minor))}"
    assert device(f"{major}.{minor}").target("tilelang") == (
        f"sm_{get_target_arch(f'{major}.{minor}')}"
    )
