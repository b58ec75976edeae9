"""The device data, the names it answers to, and the ``devices`` command.

Limits are held against a table written by hand in KiB from the vendors' documents.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilefit
from tilefit._devices.load import data_file, index_text
from tilefit._devices.names import (
    Device,
    Pool,
    capacities,
    capacity,
    device,
    device_names,
    expand,
    vendor_of,
)
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory, Owner
from tilefit.cli import main

KIB = 1024
SHARED, TENSOR, LDS = Memory.SHARED, Memory.TENSOR, Memory.LDS
UB, L1, L0A, L0B, L0C = Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C
BIAS, FIXPIPE = Memory.BIAS, Memory.FIXPIPE

# (architecture, memory): what one block may use, what a core has, the array on the chip
LIMITS_BYTES = {
    ("sm_70", SHARED): (96 * KIB, 96 * KIB, 128 * KIB),
    ("sm_72", SHARED): (96 * KIB, 96 * KIB, 128 * KIB),
    ("sm_75", SHARED): (64 * KIB, 64 * KIB, 96 * KIB),
    ("sm_80", SHARED): (163 * KIB, 164 * KIB, 192 * KIB),
    ("sm_86", SHARED): (99 * KIB, 100 * KIB, 128 * KIB),
    ("sm_87", SHARED): (163 * KIB, 164 * KIB, 192 * KIB),
    ("sm_88", SHARED): (99 * KIB, 100 * KIB, 128 * KIB),
    ("sm_89", SHARED): (99 * KIB, 100 * KIB, 128 * KIB),
    ("sm_90", SHARED): (227 * KIB, 228 * KIB, 256 * KIB),
    ("sm_100", SHARED): (227 * KIB, 228 * KIB, 256 * KIB),
    ("sm_100", TENSOR): (256 * KIB, 256 * KIB, 256 * KIB),
    ("sm_103", SHARED): (227 * KIB, 228 * KIB, 256 * KIB),
    ("sm_103", TENSOR): (256 * KIB, 256 * KIB, 256 * KIB),
    ("sm_110", SHARED): (227 * KIB, 228 * KIB, 256 * KIB),
    ("sm_110", TENSOR): (256 * KIB, 256 * KIB, 256 * KIB),
    ("sm_120", SHARED): (99 * KIB, 100 * KIB, 128 * KIB),
    ("sm_121", SHARED): (99 * KIB, 100 * KIB, 128 * KIB),
    ("gfx90a", LDS): (64 * KIB, 64 * KIB, 64 * KIB),
    ("gfx942", LDS): (64 * KIB, 64 * KIB, 64 * KIB),
    ("gfx950", LDS): (160 * KIB, 160 * KIB, 160 * KIB),
    ("gfx1100", LDS): (64 * KIB, 128 * KIB, 128 * KIB),
    ("gfx1201", LDS): (64 * KIB, 128 * KIB, 128 * KIB),
    ("ascend-310p", UB): (256 * KIB, 256 * KIB, 256 * KIB),
    ("ascend-310p", L1): (1024 * KIB, 1024 * KIB, 1024 * KIB),
    ("ascend-310p", L0A): (64 * KIB, 64 * KIB, 64 * KIB),
    ("ascend-310p", L0B): (64 * KIB, 64 * KIB, 64 * KIB),
    ("ascend-310p", L0C): (256 * KIB, 256 * KIB, 256 * KIB),
    ("ascend-910a", UB): (256 * KIB, 256 * KIB, 256 * KIB),
    ("ascend-910a", L1): (1024 * KIB, 1024 * KIB, 1024 * KIB),
    ("ascend-910a", L0A): (64 * KIB, 64 * KIB, 64 * KIB),
    ("ascend-910a", L0B): (64 * KIB, 64 * KIB, 64 * KIB),
    ("ascend-910a", L0C): (256 * KIB, 256 * KIB, 256 * KIB),
    **{
        (arch, memory): sizes
        for arch in ("ascend-910b", "ascend-910_93")
        for memory, sizes in {
            UB: (192 * KIB - 256, 192 * KIB, 192 * KIB),
            L1: (512 * KIB - 256, 512 * KIB, 512 * KIB),
            L0A: (64 * KIB, 64 * KIB, 64 * KIB),
            L0B: (64 * KIB, 64 * KIB, 64 * KIB),
            L0C: (128 * KIB, 128 * KIB, 128 * KIB),
            BIAS: (1 * KIB, 1 * KIB, 1 * KIB),
            FIXPIPE: (7 * KIB, 7 * KIB, 7 * KIB),
        }.items()
    },
    ("ascend-950", UB): (248 * KIB, 256 * KIB, 256 * KIB),
    ("ascend-950", L1): (512 * KIB, 512 * KIB, 512 * KIB),
    ("ascend-950", L0A): (64 * KIB, 64 * KIB, 64 * KIB),
    ("ascend-950", L0B): (64 * KIB, 64 * KIB, 64 * KIB),
    ("ascend-950", L0C): (256 * KIB, 256 * KIB, 256 * KIB),
    ("ascend-950", BIAS): (4 * KIB, 4 * KIB, 4 * KIB),
    ("ascend-950", FIXPIPE): (16 * KIB, 16 * KIB, 16 * KIB),
    ("apple-gpu", Memory.THREADGROUP): (32 * KIB, 32 * KIB, 32 * KIB),
    ("intel-xe-hpg", Memory.SLM): (64 * KIB, 128 * KIB, 128 * KIB),
    ("intel-xe-hpc", Memory.SLM): (128 * KIB, 128 * KIB, 128 * KIB),
    ("intel-xe2-hpg", Memory.SLM): (128 * KIB, 128 * KIB, 128 * KIB),
    ("tpu-v4", Memory.VMEM): (16 * KIB**2, 16 * KIB**2, 16 * KIB**2),
    ("tpu-v5e", Memory.VMEM): (128 * KIB**2, 128 * KIB**2, 128 * KIB**2),
    ("tpu-v5p", Memory.VMEM): (64 * KIB**2, 64 * KIB**2, 64 * KIB**2),
    ("tpu-v6e", Memory.VMEM): (128 * KIB**2, 128 * KIB**2, 128 * KIB**2),
}
# 64 Ki registers of 4 B an SM; AMD: VGPRs x lanes x 4 SIMDs x 4 B
REGISTERS_BYTES = {
    **{arch: 64 * 1024 * 4 for arch, memory in LIMITS_BYTES if memory is SHARED},
    **dict.fromkeys(("gfx90a", "gfx942", "gfx950"), 512 * 64 * 4 * 4),
    **dict.fromkeys(("gfx1100", "gfx1201"), 1536 * 32 * 4 * 4),
}
CORES = {
    "v100": {"SM": 80},
    "xavier": {"SM": 8},
    "t4": {"SM": 40},
    "a100": {"SM": 108},
    "a30": {"SM": 56},
    "a10": {"SM": 72},
    "a10g": {"SM": 80},
    "rtx-3090": {"SM": 82},
    "a6000": {"SM": 84},
    "orin": {"SM": 16},
    "l4": {"SM": 58},
    "l40s": {"SM": 142},
    "rtx-4090": {"SM": 128},
    "h100": {"SM": 132},
    "h100-pcie": {"SM": 114},
    "h200": {"SM": 132},
    "h20": {"SM": 78},
    "gh200": {"SM": 132},
    "b200": {"SM": 148},
    "gb200": {"SM": 152},
    "b300": {"SM": 148},
    "gb300": {"SM": 152},
    "thor": {"SM": 20},
    "rtx-5090": {"SM": 170},
    "rtx-pro-6000": {"SM": 188},
    "gb10": {"SM": 48},
    "mi210": {"CU": 104},
    "mi250": {"CU": 208 // 2},
    "mi250x": {"CU": 220 // 2},
    "mi300x": {"CU": 8 * 38},
    "mi325x": {"CU": 8 * 38},
    "mi300a": {"CU": 228},
    "mi350x": {"CU": 8 * 32},
    "mi355x": {"CU": 8 * 32},
    "rx-7900-xtx": {"WGP": 48, "CU": 96},
    "rx-9070-xt": {"WGP": 32, "CU": 64},
    "r9700": {"WGP": 32, "CU": 64},
    "ascend-310p3": {"AI core": 8, "vector": 7},
    "ascend-910a": {"AI core": 32},
    "ascend-910b1": {"AIC": 24, "AIV": 48},
    "ascend-910b2": {"AIC": 24, "AIV": 48},
    "ascend-910b3": {"AIC": 20, "AIV": 40},
    "ascend-910b4": {"AIC": 20, "AIV": 40},
    **{f"ascend-910_{sku}": {"AIC": 20, "AIV": 40} for sku in ("9362", "9363", "9372")},
    **{f"ascend-910_{sku}": {"AIC": 24, "AIV": 48} for sku in ("9381", "9382", "9391", "9392")},
    "ascend-950pr_9599": {"AIC": 36, "AIV": 72},
    "ascend-950pr_958b": {"AIC": 32, "AIV": 64},
    "ascend-950pr_957b": {"AIC": 28, "AIV": 56},
    "tpu-v4": {"TensorCore": 2},
    "tpu-v5e": {"TensorCore": 1},
    "tpu-v5p": {"TensorCore": 2},
    "tpu-v6e": {"TensorCore": 1},
}
EVERY_NAME = device_names()


# ---- the numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_limit_is_the_one_written_by_hand(name: str) -> None:
    """For products too: a product has the memories of its architecture and no others."""
    found = device(name)
    assert {
        pool.memory: (pool.per_block_bytes, pool.per_core_bytes, pool.physical_bytes)
        for pool in found.pools
        if pool.memory is not Memory.REGISTERS
    } == {memory: sizes for (arch, memory), sizes in LIMITS_BYTES.items() if arch == found.arch}


def test_every_architecture_of_the_table_is_there() -> None:
    assert {arch for arch, _ in LIMITS_BYTES} == {device(name).arch for name in EVERY_NAME}


@pytest.mark.parametrize(("arch", "size"), REGISTERS_BYTES.items())
def test_the_register_file_is_registers_times_four_bytes(arch: str, size: int) -> None:
    assert device(arch).pool(Memory.REGISTERS).per_core_bytes == size


@pytest.mark.parametrize("name", EVERY_NAME)
def test_core_counts(name: str) -> None:
    """A product that is not in the table claims none: a count is never taken from a sibling."""
    assert dict(device(name).cores) == CORES.get(name, {})


@pytest.mark.parametrize(
    ("name", "granule", "reserved"),
    [
        ("v100", 256, 0),
        ("t4", 256, 0),
        *((n, 128, 1024) for n in ("a100", "rtx-3090", "rtx-4090", "h100", "b200", "gb10")),
    ],
)
def test_shared_memory_is_given_out_in_granules(name: str, granule: int, reserved: int) -> None:
    pool = device(name).pool(SHARED)
    assert (pool.granule_bytes, pool.reserved_per_block_bytes) == (granule, reserved)


@pytest.mark.parametrize(
    ("name", "granule"),
    [("mi210", 512), ("mi300x", 512), ("mi350x", 1280), ("rx-7900-xtx", 1024), ("r9700", 1024)],
)
def test_lds_is_given_out_in_granules(name: str, granule: int) -> None:
    pool = device(name).pool(LDS)
    assert (pool.granule_bytes, pool.reserved_per_block_bytes) == (granule, 0)


@pytest.mark.parametrize("name", [n for n in EVERY_NAME if device(n).vendor == "nvidia"])
def test_nvidia_launch_limits_are_the_same_everywhere(name: str) -> None:
    found = device(name)
    assert found.max_threads_per_block == 1024
    assert found.max_block == (1024, 1024, 64)
    assert found.max_grid == (2**31 - 1, 65535, 65535)
    assert (found.warp_size, found.max_registers_per_thread) == (32, 255)
    assert found.registers_per_core == found.registers_per_block == 64 * 1024
    assert (found.register_granule, found.subpartitions) == (256, 4)


@pytest.mark.parametrize("name", [n for n in EVERY_NAME if device(n).vendor == "nvidia"])
def test_warp_groups_and_clusters_start_at_9_0(name: str) -> None:
    """wgmma and setmaxnreg take four warps of 32 threads (PTX ISA)."""
    found = device(name)
    later = int(found.arch.removeprefix("sm_")) >= 90
    assert found.warp_group_threads == (4 * 32 if later else None)
    for number in ("warp_group_threads", "cluster_portable_max", "cluster_max"):
        assert (number in found.no_limit) is not later


@pytest.mark.parametrize("name", [n for n in EVERY_NAME if device(n).vendor == "nvidia"])
def test_a_static_part_has_a_limit_of_its_own_below_9_0(name: str) -> None:
    """ptxas stops at 0xc000 for sm_75 to sm_89; for sm_90a and later it takes more."""
    found = device(name)
    later = int(found.arch.removeprefix("sm_")) >= 90
    assert found.pool(SHARED).static_per_block_bytes == (None if later else 0xC000)
    assert found.pool(SHARED).no_limit == ()


@pytest.mark.parametrize("name", ["b200", "b300", "thor"])
def test_tensor_memory_is_512_columns_of_128_lanes_of_4_bytes(name: str) -> None:
    pool = device(name).pool(Memory.TENSOR)
    assert (pool.columns, pool.lanes, pool.column_bytes) == (512, 128, 128 * 4)
    assert pool.column_step == 32  # the least that tcgen05.alloc gives


@pytest.mark.parametrize(
    ("name", "wave", "per_thread", "granule", "waves", "blocks"),
    [
        ("gfx90a", 64, 256 + 256, 8 * 64, 8 * 4, 16),
        ("gfx942", 64, 256 + 256, 8 * 64, 8 * 4, 16),
        ("gfx950", 64, 256 + 256, 8 * 64, 8 * 4, 16),
        ("gfx1100", 32, 256, 24 * 32, 16 * 4, 32),
        ("gfx1201", 32, 256, 24 * 32, 16 * 4, 32),
    ],
)
def test_amd_launch_limits(
    name: str, wave: int, per_thread: int, granule: int, waves: int, blocks: int
) -> None:
    """Per CU on CDNA (4 SIMDs), per WGP on RDNA (2 CUs x 2 SIMDs)."""
    found = device(name)
    assert found.max_threads_per_block == 1024
    assert (found.warp_size, found.max_registers_per_thread) == (wave, per_thread)
    assert (found.register_granule, found.subpartitions) == (granule, 4)
    assert (found.max_warps_per_core, found.max_blocks_per_core) == (waves, blocks)
    assert found.max_threads_per_core == waves * wave


@pytest.mark.parametrize(
    ("memory", "align"), [(UB, 32), (L1, 32), (L0A, 512), (L0B, 512), (L0C, 64), (BIAS, 64)]
)
def test_ascend_alignments(memory: Memory, align: int) -> None:
    for name in ("ascend-910b", "ascend-910_93", "ascend-950"):
        assert device(name).pool(memory).align_bytes == align


def test_ub_belongs_to_a_vector_core_and_l1_to_a_cube_core_but_where_both_are_one() -> None:
    for name in ("ascend-910b1", "ascend-910_9391", "ascend-950"):
        assert device(name).pool(UB).owner is Owner.AIV
        assert {device(name).pool(m).owner for m in (L1, L0A, L0B, L0C)} == {Owner.AIC}
    for name in ("ascend-310p3", "ascend-910a"):
        assert {pool.owner for pool in device(name).pools} == {Owner.CORE}


# ---- sources -------------------------------------------------------------------------------


def _source_texts() -> dict[str, str]:
    return tomllib.loads(data_file("sources.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_number_has_a_source_and_a_confidence(name: str) -> None:
    """The source is one of sources.toml: no key is misspelt, nothing is left bare."""
    known = set(_source_texts().values())
    for fact in device(name).facts:
        assert set(fact.source.split("; ")) <= known, fact
        assert fact.confidence in ("high", "medium", "low", "unknown"), fact
        assert (fact.value is not None) or fact.confidence == "unknown" or fact.note, fact


def test_a_source_has_no_separator_inside() -> None:
    """Several sources are joined by a semicolon."""
    assert [text for text in _source_texts().values() if ";" in text] == []


def test_every_source_is_used() -> None:
    used = {s for n in EVERY_NAME for f in device(n).facts for s in f.source.split("; ")}
    used |= {c.source for c in capacities()}
    texts = _source_texts()
    table = tomllib.loads(data_file("matrix.toml").read_text(encoding="utf-8"))
    used |= {texts[key] for rows in table.values() for row in rows for key in row["sources"]}
    assert used == set(texts.values())


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_limit_is_backed_by_a_fact_of_the_same_value(name: str) -> None:
    found = device(name)
    facts = {fact.key: fact.value for fact in found.facts}
    assert len(facts) == len(found.facts)
    for pool in found.pools:
        if pool.memory is not Memory.REGISTERS:
            assert facts[f"{pool.memory}.per_block_bytes"] == pool.per_block_bytes
    for condition in found.conditions:
        key = f"{condition.memory}.per_block_bytes ({condition.code})"
        assert facts[key] == condition.per_block_bytes
    launch = {f.name for f in fields(Device) if f.name.startswith(("max_", "register", "cluster"))}
    for limit in launch | {"warp_size", "subpartitions", "barriers_per_core"}:
        if getattr(found, limit) is not None:
            assert facts[limit] == getattr(found, limit)
    for kind, count in found.cores:
        assert facts[f"cores.{kind}"] == count


def test_every_note_in_the_files_belongs_to_a_number() -> None:
    for path in data_file("devices").glob("*.toml"):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        keys = {fact.key for fact in device(table["name"]).facts}
        assert set(table.get("notes", {})) <= keys, path.name


@pytest.mark.parametrize("name", ["gh200", "b300", "gb300", "r9700"])
def test_recalled_core_counts_are_marked_low(name: str) -> None:
    facts = {fact.key: fact.confidence for fact in device(name).facts}
    assert {c for key, c in facts.items() if key.startswith("cores.")} == {"low"}


# ---- arithmetic of a pool ------------------------------------------------------------------

BLOCK_POOLS = [
    pool
    for name in EVERY_NAME
    if not device(name).product
    for pool in device(name).pools
    if pool.owner is Owner.BLOCK
]


@given(pool=st.sampled_from(BLOCK_POOLS), blocks=st.integers(1, 32))
def test_largest_for_is_the_last_size_at_which_so_many_blocks_are_resident(
    pool: Pool, blocks: int
) -> None:
    size = pool.largest_for(blocks)
    assert blocks * pool.allocated_bytes(size) <= pool.per_core_bytes
    if size < pool.per_block_bytes:
        assert blocks * pool.allocated_bytes(size + 1) > pool.per_core_bytes


@given(pool=st.sampled_from(BLOCK_POOLS), data=st.data())
def test_an_allocation_is_the_smallest_granule_multiple_that_holds_it(
    pool: Pool, data: st.DataObject
) -> None:
    size = data.draw(st.integers(0, pool.per_block_bytes))
    taken = pool.allocated_bytes(size)
    assert taken % pool.granule_bytes == 0
    assert 0 <= taken - (size + pool.reserved_per_block_bytes) < pool.granule_bytes
    assert taken <= pool.per_core_bytes


def test_no_blocks_share_nothing() -> None:
    with pytest.raises(InputError, match="blocks 0 is not above 0"):
        device("h100").pool(SHARED).largest_for(0)


# ---- values that contradict each other -----------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"per_block_bytes": 228 * KIB},
            "shared: per_block_bytes 233472 + reserved_per_block_bytes 1024 = 234496 is above "
            "per_core_bytes 233472",
        ),
        (
            {"physical_bytes": 128 * KIB},
            "shared: per_core_bytes 233472 is above physical_bytes 131072",
        ),
        (
            {"granule_bytes": 1000},
            "shared: per_block_bytes + reserved_per_block_bytes 233472 is no multiple of "
            "granule_bytes 1000",
        ),
        (
            {"default_per_block_bytes": 300 * KIB},
            "shared: default_per_block_bytes 307200 is above per_block_bytes 232448",
        ),
        ({"carveouts_bytes": (8192, 0)}, "shared: carveouts_bytes [8192, 0] are not ascending"),
        (
            {"carveouts_bytes": (0, 256 * KIB)},
            "shared: carveouts_bytes go up to 262144, above per_core_bytes 233472",
        ),
        (
            {"columns": 500},
            "shared: physical_bytes 262144 is no multiple of columns 500",
        ),
        ({"reserved_per_block_bytes": -1}, "shared: reserved_per_block_bytes -1 is below 0"),
        *(
            ({name: 0}, f"shared.{name} 0 is not above 0")
            for name in ("per_block_bytes", "per_core_bytes", "physical_bytes", "granule_bytes")
        ),
        ({"align_bytes": 0}, "shared.align_bytes 0 is not above 0"),
    ],
)
def test_a_pool_with_contradicting_numbers_does_not_construct(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as error:
        replace(device("h100").pool(SHARED), **change)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vendor": "acme"}, "vendor 'acme' is none of nvidia, amd"),
        ({"pools": ()}, "h100 has no memory"),
        ({"cores": (("SM", 0),)}, "cores.SM 0 is not above 0"),
        (
            {"registers_per_block": 70000},
            "registers_per_block 70000 is above registers_per_core 65536",
        ),
        (
            {"max_threads_per_block": 4096},
            "max_threads_per_block 4096 is above max_threads_per_core 2048",
        ),
        (
            {"max_warps_per_core": 48},
            "max_warps_per_core 48 x warp_size 32 = 1536 is not max_threads_per_core 2048",
        ),
        ({"subpartitions": 3}, "registers_per_core 65536 is no multiple of subpartitions 3"),
        ({"cluster_max": 4}, "cluster_portable_max 8 is above cluster_max 4"),
        ({"cluster_portable_max": None}, "cluster_max 16 without a cluster_portable_max"),
    ],
)
def test_a_device_with_contradicting_numbers_does_not_construct(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as error:
        replace(device("h100"), **change)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_condition_may_not_give_more_than_the_memory() -> None:
    found = device("ascend-950")
    (condition,) = found.conditions
    with pytest.raises(InputError, match=r"per_block_bytes 300000 is above ub.* 253952"):
        replace(found, conditions=(replace(condition, per_block_bytes=300000),))


def test_a_device_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        device("h100").name = "h200"  # type: ignore[misc]


# ---- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("H100", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("h100-sxm5", "h100"),
        ("sm90", "sm_90"),
        ("SM_90a", "sm_90"),
        ("9.0", "sm_90"),
        ("cc90", "sm_90"),
        ("cc9.0", "sm_90"),
        ("compute_90", "sm_90"),
        ("hopper", "sm_90"),
        ("A100-80GB", "a100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("Tesla T4", "t4"),
        ("4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("rtx-a6000", "a6000"),
        ("jetson-agx-orin", "orin"),
        ("DGX Spark", "gb10"),
        ("12.1", "sm_121"),
        ("sm_121a", "sm_121"),
        ("MI300X", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("cdna3", "gfx942"),
        ("7900xtx", "rx-7900-xtx"),
        ("Ascend910B1", "ascend-910b1"),
        ("910b1", "ascend-910b1"),
        ("ascend910_9391", "ascend-910_9391"),
        ("ascend-910c", "ascend-910_93"),
        ("Ascend950PR_9599", "ascend-950pr_9599"),
        ("dav-3510", "ascend-950"),
        ("Ascend310P3", "ascend-310p3"),
        (" h100 ", "h100"),
    ],
)
def test_spellings_that_people_use(typed: str, name: str) -> None:
    assert device(typed).name == name


def test_no_name_means_two_things() -> None:
    """Case, dashes, underscores and spaces apart, every name and alias is one device's."""
    owner: dict[str, str] = {}
    for name in EVERY_NAME:
        for spelling in (name, *device(name).aliases):
            folded = "".join(c for c in spelling.lower() if c not in "-_ ")
            assert owner.setdefault(folded, name) == name, spelling
    taken = {"all", "nvidia", "amd", "ascend", "huawei", "apple", "intel", "tpu"}
    refused = tomllib.loads(data_file("capacities.toml").read_text(encoding="utf-8"))
    for spelling in (*taken, *refused["refused"], *refused["capacities"]):
        assert "".join(c for c in spelling if c not in "-_ ") not in owner, spelling


def test_every_name_and_alias_leads_to_its_device() -> None:
    for name in EVERY_NAME:
        for spelling in (name, name.upper(), *device(name).aliases):
            assert device(spelling).name == name


def test_the_index_of_names_is_that_of_the_files() -> None:
    """Remake it with `python -m tilefit._devices.load > src/tilefit/data/device_index.toml`."""
    assert data_file("device_index.toml").read_text(encoding="utf-8") == index_text()


def test_a_file_is_named_like_its_architecture() -> None:
    for path in data_file("devices").glob("*.toml"):
        assert tomllib.loads(path.read_text(encoding="utf-8"))["name"] == path.stem


@pytest.mark.parametrize(
    ("typed", "near"),
    [("h1000", "h100"), ("rtx-4900", "rtx-4090"), ("ascend-910b5", "ascend-910b4")],
)
def test_an_unknown_name_says_what_was_meant(typed: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        device(typed)
    assert near in error.value.near
    assert f"unknown device {typed!r}; did you mean" in str(error.value)


@pytest.mark.parametrize("typed", ["", "zzzz", "nvidia h1", "none", "-", "\n"])
def test_an_unknown_name_without_a_near_one_names_the_list(typed: str) -> None:
    with pytest.raises(UnknownNameError, match="`tilefit devices` lists them"):
        device(typed)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("blackwell", "several: sm_100"),
        ("Ampere", "several: sm_80"),
        ("dav-2201", "ascend-910b .A2. and ascend-910_93"),
        ("ascend910", "ascend-910a, ascend-910b, ascend-910_93"),
        ("A2", "ascend-910b. or the NVIDIA A2"),
        ("nvidia", "is a vendor, not one device"),
        ("all", "is a vendor, not one device"),
    ],
)
def test_a_name_of_several_devices_is_refused_with_the_reason(typed: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        device(typed)


# ---- capacities ----------------------------------------------------------------------------


def test_the_228_kib_capacity() -> None:
    found = capacity("H100-SM-shared-228KB")
    assert found is not None
    assert (found.name, found.bytes) == ("h100-sm-shared-228kb", 228 * KIB)
    assert found.memory is SHARED
    assert found.bytes == device("h100").pool(SHARED).per_core_bytes


@pytest.mark.parametrize("name", ["h100", "", "h100-sm-shared"])
def test_other_names_are_no_capacity(name: str) -> None:
    assert capacity(name) is None


# ---- expand --------------------------------------------------------------------------------


def _names(*specs: str) -> list[str]:
    return [d.name for d in expand(specs)]


def test_expand_keeps_the_order_and_drops_duplicates() -> None:
    assert _names("h100,a100", "H100", "rtx-4090, a100") == ["h100", "a100", "rtx-4090"]
    assert _names("sm_90", "h100") == ["sm_90", "h100"]


def test_a_vendor_means_its_products_and_architectures_without_any() -> None:
    amd = _names("amd")
    assert amd[0] == "mi210"
    assert "gfx942" not in amd
    nvidia = _names("NVIDIA")
    assert "sm_88" in nvidia  # no product of 8.8 is known
    assert "sm_90" not in nvidia
    assert "h100" in nvidia
    assert _names("huawei") == _names("ascend")


def test_all_means_every_vendor_that_a_toolchain_compiles_for() -> None:
    assert _names("all") == [*_names("nvidia"), *_names("amd"), *_names("ascend")]


def test_limits_only_vendors_can_be_named() -> None:
    assert _names("apple", "intel") == ["apple-gpu", *_names("intel")]


@pytest.mark.parametrize("spec", ["", ",", "h100,", "h100,,a100", " "])
def test_an_empty_name_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="has an empty name"):
        expand([spec])


def test_nothing_expands_to_nothing() -> None:
    assert expand([]) == ()


# ---- a user's own file ---------------------------------------------------------------------

OWN = """
name = "lab-chip"
vendor = "nvidia"
[memories.shared]
per_block_bytes = 65536
"""


def test_a_users_file_needs_a_vendor_and_one_number(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(OWN, encoding="utf-8")
    (found,) = expand([str(path)])
    assert found.name == "lab-chip"
    pool = found.pool(SHARED)
    assert pool.per_block_bytes == pool.per_core_bytes == pool.physical_bytes == 65536
    (fact,) = found.facts
    assert (fact.source, fact.confidence) == ("written in lab.toml", "unknown")
    assert found.target("tilelang") is None


def test_a_users_file_may_have_products_targets_and_sources(tmp_path: Path) -> None:
    path = tmp_path / "Lab.TOML"
    path.write_text(
        OWN
        + 'reserved_per_block_bytes = [1024, "low", "measured here"]\n'
        + '[targets]\ntilelang = "sm_90a"\n'
        + "[products.big]\ncores = { SM = 4 }\n[products.small]\ncores = { SM = 2 }\n",
        encoding="utf-8",
    )
    big, small = expand([str(path)])
    assert (big.name, big.arch, big.cores) == ("big", "lab-chip", (("SM", 4),))
    assert small.cores == (("SM", 2),)
    assert big.target("tilelang") == "sm_90a"
    assert big.pool(SHARED).per_core_bytes == 65536 + 1024
    assert big.facts[1].source == "measured here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("this is not toml", "is not TOML"),
        ('name = "x"\n[memories.shared]\nper_block_bytes = 1\n', "vendor is missing"),
        ('vendor = "acme"\n[memories.shared]\nper_block_bytes = 1\n', "vendor: 'acme' is none"),
        ('vendor = "amd"\n', "has no memory"),
        (OWN + "per_blok_bytes = 3\n", "memories.shared.per_blok_bytes: unknown key; did you mean"),
        (OWN + "owner = 3\n", "memories.shared.owner: 3 is not a text"),
        (OWN.replace("65536", '"64K"'), "memories.shared.per_block_bytes: '64K' is not a whole"),
        (OWN.replace("65536", "-1"), "memories.shared.per_block_bytes: -1 is not a whole"),
        (OWN.replace("65536", "1.5"), "memories.shared.per_block_bytes: 1.5 is not a whole"),
        (OWN.replace("65536", "true"), "memories.shared.per_block_bytes: True is not a whole"),
        (OWN.replace("65536", "[1, 2]"), "memories.shared.per_block_bytes: [1, 2] is not one"),
        (OWN.replace("65536", '[1, "high"]'), "memories.shared.per_block_bytes: the source is"),
        (
            OWN.replace("65536", '[1, "sure", "me"]'),
            "shared.per_block_bytes: confidence 'sure' is none of high, medium, low, unknown",
        ),
        (OWN.replace("65536", '"none"'), "memories.shared.per_block_bytes is missing"),
        (OWN + "per_core_bytes = 100\n", "65536 is above per_core_bytes 100"),
        (OWN + "carveouts_bytes = 3\n", "carveouts_bytes: 3 is not a list of whole numbers"),
        (OWN.replace("shared", "smem"), "memories.smem: 'smem' is none of shared"),
        (OWN + "[launch]\nmax_grid = [1, 2]\n", "launch.max_grid: [1, 2] is not three numbers"),
        (OWN + "[launch]\nthreads = 4\n", "launch.threads: unknown key"),
        ("memories = 3\nvendor = 'amd'", "memories is not a table"),
        ("memories.shared = 3\nvendor = 'amd'", "memories.shared is not a table"),
        (OWN + "[products]\nx = 3\n", "products.x is not a table"),
        (OWN + "[[conditions]]\nmemory = 'ub'\n", "conditions[0].code is missing"),
        ("conditions = 3\n" + OWN, "conditions is not a list of tables"),
        ("aliases = 'x'\n" + OWN, "aliases: 'x' is not a list of names"),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_file_and_the_key(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        expand([str(path)])
    assert message in str(error.value)
    assert "bad.toml" in str(error.value)


def test_a_missing_or_unreadable_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"device file '.*gone\.toml' does not exist"):
        expand([str(tmp_path / "gone.toml")])
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        expand([str(tmp_path / "folder.toml")])
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is no UTF-8 text: byte 0 is 0xff"):
        expand([str(tmp_path / "binary.toml")])


# ---- the command ---------------------------------------------------------------------------


def _run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["devices", *args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_list_has_a_line_for_every_device(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys)
    assert code == 0
    first_words = [line.split()[0] for line in out.splitlines() if line.strip()]
    for name in EVERY_NAME:
        assert name in first_words
    (line,) = (line for line in out.splitlines() if line.split()[:1] == ["h100"])
    assert line.split() == ["h100", "sm_90", "232,448", "227", "228", "132", "SM"]
    assert "h100-sm-shared-228kb: 233,472 B, a capacity for budget and footprint" in out


def test_text_is_plain_and_80_columns_wide(capsys: pytest.CaptureFixture[str]) -> None:
    for args in ((), *((name,) for name in EVERY_NAME)):
        code, out, err = _run(capsys, *args)
        assert (code, err) == (0, "")
        assert [line for line in out.splitlines() if len(line) > 80] == [], args
        assert "\x1b" not in out


def test_one_device_shows_every_number_with_source_and_confidence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = _run(capsys, "h100")
    assert "h100   NVIDIA H100 SXM5 80GB" in out
    assert "tilelang sm_90a" in out
    for fact in device("h100").facts:
        (line,) = (line for line in out.splitlines() if line.split()[:1] == [fact.key])
        assert fact.confidence in line.split()
    assert "232,448 B = 227 KiB" in out
    assert "cuda_occupancy.h of CUDA 13.0" in out


def test_a_condition_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "ascend-950")
    assert "ub: 221,184 B = 216 KiB if the kernel has SIMT parts" in out


def test_json_has_the_contracts_keys(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "h100", "--json")
    document = json.loads(out)
    assert (code, document["schema_version"], document["evidence"]) == (0, 1, "declared")
    (entry,) = document["devices"]
    assert entry["name"] == "h100"
    assert entry["vendor"] == "nvidia"
    assert "h100-sxm5" in entry["aliases"]
    shared = entry["memories"]["shared"]
    assert shared["per_block_bytes"] == 227 * KIB
    assert shared["per_core_bytes"] == 228 * KIB
    assert shared["physical_bytes"] == 256 * KIB
    sources = {source["key"]: source for source in entry["sources"]}
    assert sources["shared.per_block_bytes"]["confidence"] == "high"
    assert "CUDA Programming Guide" in sources["shared.per_block_bytes"]["source"]
    assert entry["limits"]["cluster_max"] == 16


def test_json_of_all_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "--json")
    entries = json.loads(out)["devices"]
    assert [entry["name"] for entry in entries] == list(EVERY_NAME)
    assert all(entry["memories"] and entry["sources"] for entry in entries)


def test_json_shows_columns_of_tensor_memory(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "b200", "--json")
    assert json.loads(out)["devices"][0]["memories"]["tensor"]["columns"] == 512


def test_the_filters(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "--memory", "tensor", "--json")
    names = {entry["name"] for entry in json.loads(out)["devices"]}
    assert {"sm_100", "b200", "sm_103", "sm_110", "thor"} <= names
    assert {device(name).arch for name in names} == {"sm_100", "sm_103", "sm_110"}
    _, out, _ = _run(capsys, "--vendor", "Huawei", "--json")
    assert {entry["vendor"] for entry in json.loads(out)["devices"]} == {"ascend"}
    code, out, _ = _run(capsys, "--vendor", "amd", "--memory", "tensor")
    assert (code, out) == (0, "no device is left by these filters\n")
    _, out, _ = _run(capsys, "--memory", "l0c")
    assert "131,072" in out


def test_several_names_are_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "h100", "a100,mi300x")
    assert [w for w in ("h100", "a100", "mi300x") if w in out.split()] == ["h100", "a100", "mi300x"]
    assert "sources" not in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("h1000",), "unknown device 'h1000'; did you mean h100"),
        (("8.1",), "unknown device '8.1'"),
        (("h100-sm-shared-228kb",), "is a capacity, not a device"),
        (("--vendor", "nvida"), "unknown vendor 'nvida'; did you mean nvidia?"),
        (("--memory", "tensr"), "unknown memory 'tensr'; did you mean tensor?"),
        (("--memory", "global"), "unknown memory 'global'"),
        (("rtx-5090", "--memory", "tensor"), "rtx-5090 has no tensor memory; it has shared"),
        (("no/such.toml",), "device file 'no/such.toml' does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...], message: str
) -> None:
    code, out, err = _run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_vendor_names() -> None:
    assert vendor_of("Huawei") == vendor_of("ASCEND") == "ascend"


@pytest.mark.parametrize(
    ("spelling", "name", "kib"),
    [
        # opt-in limits of CUDA's table of compute capabilities, LDS of the CDNA 3 ISA
        ("cuda -arch=sm_90a", "sm_90", 227),
        ("cuda -keys=cuda,gpu -arch=sm_80 -max_num_threads=1024", "sm_80", 163),
        ('{"kind": "cuda", "arch": "sm_120a"}', "sm_120", 99),
        ('{"kind":"hip","tag":"","mcpu":"gfx942"}', "gfx942", 64),
        ("hip -mcpu=gfx942", "gfx942", 64),
        ("NVIDIA H100 80GB HBM3", "h100", 227),
    ],
)
def test_a_target_as_tvm_writes_it_is_a_device(spelling: str, name: str, kib: int) -> None:
    assert device(spelling).name == name
    assert tilefit.limit(spelling) == tilefit.limit(device(name)) == kib * 1024


@pytest.mark.parametrize("spelling", ["cuda -arch=sm_91", "cuda", "march=sm_90", "arch sm_90"])
def test_what_only_looks_like_a_target_is_refused(spelling: str) -> None:
    with pytest.raises(InputError):
        device(spelling)
