"""What ptxas takes for the target of each NVIDIA device, against what the data says of the chip."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tilefit._assembler.toolkit import find_toolkit
from tilefit._devices.names import Device, device, device_names
from tilefit._frontends import ptx
from tilefit._kernel.memory import Memory

pytestmark = pytest.mark.cuda

# CUDA 13 has no 7.0 and 7.2 any more
ARCHS = [
    one
    for one in map(device, device_names())
    if one.vendor == "nvidia" and not one.product and one.name not in ("sm_70", "sm_72")
]
CLUSTER = "barrier.cluster.arrive.aligned;"
WARP_GROUP = "setmaxnreg.inc.sync.aligned.u32 240;"
WGMMA = "wgmma.fence.sync.aligned;"
TMA = "cp.async.bulk.commit_group;"
TENSOR = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"


def assembles(body: str, target: str, folder: Path) -> bool:
    """Whether ptxas takes a kernel with this body for a target."""
    source = folder / "kernel.ptx"
    source.write_text(
        f".version 9.0\n.target {target}\n.address_size 64\n"
        f".visible .entry k() .reqntid 128 {{\n{body}\nret;\n}}\n",
        encoding="utf-8",
    )
    ptxas = find_toolkit().nvcc.with_name("ptxas")
    done = subprocess.run(
        [ptxas, f"-arch={target}", source, "-o", folder / "kernel.cubin"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0


def static(n_bytes: int) -> str:
    return f".shared .align 4 .b8 s[{n_bytes}];\n.reg .b32 a;\nmov.u32 a, s;\nst.shared.u32 [a], a;"


@pytest.mark.parametrize("one", ARCHS, ids=lambda d: d.name)
def test_an_instruction_assembles_where_the_chip_has_what_it_needs(
    one: Device, tmp_path: Path
) -> None:
    target = str(one.target("tilelang"))
    has = {body: assembles(body, target, tmp_path) for body in (CLUSTER, TMA, WARP_GROUP, TENSOR)}
    assert has == {
        CLUSTER: one.cluster_portable_max is not None,
        TMA: ptx.has_tma(target),
        WARP_GROUP: one.warp_group_threads is not None,
        TENSOR: one.has(Memory.TENSOR),
    }
    assert assembles(WGMMA, target, tmp_path) is (ptx.version_of(target) in ptx.WGMMA_VERSIONS)


@pytest.mark.parametrize("one", ARCHS, ids=lambda d: d.name)
def test_a_static_part_is_held_to_the_limit_that_the_chip_has(one: Device, tmp_path: Path) -> None:
    """From 9.0 on ptxas holds a plain target to it, and the one that toolchains use to none."""
    pool, target = one.pool(Memory.SHARED), str(one.target("tilelang"))
    most = pool.default_per_block_bytes
    assert most is not None
    assert assembles(static(most), target, tmp_path)
    assert assembles(static(most + 1), target, tmp_path) is (pool.static_per_block_bytes is None)
    assert not assembles(static(most + 1), one.name, tmp_path)
