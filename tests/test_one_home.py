"""One home for a fact: what is true of a chip stands in the device data and nowhere else.

Frontends see no devices. What PTX or a toolchain defines they may say themselves, in one place
each, and the second half of this file holds that to the device data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilefit
from tilefit._devices import alike
from tilefit._devices.names import Device, device, device_names
from tilefit._frontends import ptx
from tilefit._frontends.ascend import OWNERS
from tilefit._kernel.memory import Memory, Owner
from tilefit._tiles.tour import ASCEND_UB_BYTES

PACKAGE = Path(tilefit.__file__).parent
DEVICES = [device(name) for name in device_names()]
NVIDIA = [one for one in DEVICES if one.vendor == "nvidia"]
CAPABILITIES = {int(one.arch.removeprefix("sm_")) for one in NVIDIA}

_FACT = re.compile("WARP|WAVE|TMEM|TENSOR|CLUSTER|GRANULE|SUBPARTITION|LDS|STATIC_LIMIT")
_ARCH = re.compile(r"(sm_|gfx)\d+")


def told(source: str) -> Iterator[str]:
    """Yield each line of code that knows a fact about chips, or asks for one by a chip's name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            yield from (f"{node.lineno}: {name}" for name in names if _FACT.search(name))
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            numbers = {n.value for s in sides for n in ast.walk(s) if isinstance(n, ast.Constant)}
            if numbers & CAPABILITIES and re.search(
                r"\bv\b|version|capab|target|arch|digits|major", ast.unparse(node)
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if node.func.attr == "startswith" and any(
                isinstance(text, str) and _ARCH.fullmatch(text) for text in texts
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"


def _is_number(value: ast.expr | None) -> bool:
    """Say whether it is arithmetic on whole numbers that are written out."""
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) is int


@pytest.mark.parametrize(
    "code",
    [
        "_WARP_GROUP = 128",
        "TMEM_COLUMN_BYTES: int = 128 * 4",
        "_TENSOR_LANES = 128",
        "_SMALL_LDS_BYTES = 64 * 1024",
        "accepted = target.isdigit() and int(target) >= 90",
        "if version in (100, 103): pass",
        "core = 'CU' if arch.startswith('gfx9') else 'WGP'",
        "_FIRST_WARP_SPECIALISED = 90",
        "exists = lambda v: v == 90",
    ],
)
def test_the_walk_sees_what_was_there_once(code: str) -> None:
    assert len(list(told(code))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "_WIDTH = 80",
        "most = device.warp_group_threads",
        "if width > 90: pass",
        "_THREADS_STEP = 128",
        "name.startswith('shared')",
        "vendor = 'amd' if target.startswith('gfx') else 'nvidia'",
    ],
)
def test_the_walk_leaves_other_code_alone(code: str) -> None:
    assert list(told(code)) == []


def test_no_module_but_devices_and_frontends_knows_a_chip() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("_devices", "_frontends")
        for line in told(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_among_frontends_one_module_knows_the_targets_of_ptx() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in (PACKAGE / "_frontends").rglob("*.py")
        if path.name != "ptx.py"
        for line in told(path.read_text(encoding="utf-8"))
    }
    assert found == set()


# ---- what frontends and the tour say themselves, against the device data -----------------------


@pytest.mark.parametrize("one", NVIDIA, ids=lambda d: d.name)
def test_what_ptx_has_for_a_target_is_what_the_device_has(one: Device) -> None:
    target = str(one.target("tilelang"))
    version = ptx.version_of(target)
    assert version == int(one.arch.removeprefix("sm_"))
    assert (version in ptx.TENSOR_VERSIONS) is one.has(Memory.TENSOR)
    assert ptx.has_tma(target) is (one.cluster_portable_max is not None)
    assert ptx.has_tma(target) is (one.warp_group_threads is not None)
    assert one.warp_group_threads in (None, ptx.WARP_GROUP_THREADS)
    assert (version in ptx.WGMMA_VERSIONS) is (one.arch == "sm_90")
    if one.has(Memory.TENSOR):
        pool = one.pool(Memory.TENSOR)
        assert (pool.column_bytes, pool.column_step) == (ptx.COLUMN_BYTES, ptx.LEAST_COLUMNS)


@pytest.mark.parametrize("target", ["gfx942", "ascend", "", "sm_", "sm_x"])
def test_what_is_no_target_of_ptx_has_no_version(target: str) -> None:
    assert ptx.version_of(target) is None
    assert not ptx.has_tma(target)


def test_a_toolchains_owner_of_an_ascend_memory_is_the_chips() -> None:
    """310P and 910A have one kind of core: the plan takes the owner of the device there."""
    for one in (d for d in DEVICES if d.vendor == "ascend"):
        owners = {memory: one.pool(memory).owner for memory in OWNERS}
        assert owners in (OWNERS, dict.fromkeys(OWNERS, Owner.CORE)), one.name


@pytest.mark.parametrize("one", NVIDIA, ids=lambda d: d.name)
def test_what_is_said_of_all_chips_of_a_vendor_is_true_of_each(one: Device) -> None:
    assert alike.warp() == (one.warp_size, one.register_granule)
    if one.has(Memory.TENSOR):
        assert alike.tensor_memory() == one.pool(Memory.TENSOR)
    static = one.pool(Memory.SHARED).static_per_block_bytes
    assert static in (None, alike.static_shared_bytes())


@pytest.mark.parametrize("name", ["ascend-910b", "ascend-910_93"])
def test_the_tours_unified_buffer_is_that_of_both_chips(name: str) -> None:
    assert device(name).pool(Memory.UB).physical_bytes == ASCEND_UB_BYTES
