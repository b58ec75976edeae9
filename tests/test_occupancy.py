"""Occupancy: the tutorial's call, cliffs proven by brute force, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefit import InputError, Occupancy, device, occupancy, occupancy_arrays

KIB = 1024
NVIDIA = ("t4", "v100", "a100", "rtx-3090", "rtx-4090", "h100", "b200", "sm_110", "rtx-5090")
AMD = ("mi250x", "mi300x", "mi355x", "rx-7900-xtx", "rx-9070-xt")
TWO_HOLD = {"threads": 256, "registers": 128, "dynamic_smem": 99328}

# Largest dynamic bytes of a block for k resident blocks without static ones
LARGEST = {
    "sm_70": {1: 98304, 2: 49152, 3: 32768, 4: 24576, 6: 16384, 8: 12288},
    "sm_75": {1: 65536, 2: 32768, 3: 21760, 4: 16384, 6: 10752, 8: 8192},
    "sm_80": {1: 166912, 2: 82944, 3: 54912, 4: 40960, 6: 26880, 8: 19968},
    "sm_86": {1: 101376, 2: 50176, 3: 33024, 4: 24576, 6: 16000, 8: 11776},
    "sm_90": {1: 232448, 2: 115712, 3: 76800, 4: 57344, 6: 37888, 8: 28160},
}


def cliffs(answer: Occupancy) -> dict[str, int | None]:
    return {cliff.resource: cliff.at_most for cliff in answer.next}


# ---- the call of the issue ---------------------------------------------------------------------


def test_registers_and_shared_memory_both_hold_two_blocks():
    answer = occupancy("h100", **TWO_HOLD)
    assert answer.blocks_per_core == 2
    assert answer.limiters == ("registers", "shared")
    assert dict(answer.blocks_by) == {
        "warps": 64 // 8,
        "registers": 65536 // (128 * 256),
        "shared": 228 * KIB // (99328 + 1024),
        "blocks": 32,
        "barriers": 64,
    }
    assert answer.active_warps == 2 * 256 // 32
    assert answer.percent == 100 * 16 / 64
    assert answer.allocated_registers_per_block == 256 * 128
    assert answer.allocated_shared_bytes_per_block == 99328 + 1024
    assert cliffs(answer) == {"registers": 80, "shared": 76800}
    assert answer.step.blocks == 3
    assert answer.fits


def test_those_cliffs_are_the_only_way_to_three():
    """Of all registers and bytes, 3 blocks have exactly those with at most both."""
    registers = np.arange(1, 256)[:, None]
    sizes = np.arange(232449)[None, :]
    for rows in (registers[70:90], registers[[0, 126, 254]]):
        three = occupancy_arrays("h100", threads=256, registers=rows, dynamic_smem=sizes)
        expected = (rows <= 80) & (sizes <= 76800)
        np.testing.assert_array_equal(three.blocks_per_core >= 3, expected)


def test_either_of_them_alone_stays_at_two():
    assert occupancy("h100", **TWO_HOLD | {"registers": 80}).blocks_per_core == 2
    assert occupancy("h100", **TWO_HOLD | {"dynamic_smem": 76800}).blocks_per_core == 2


def test_rounding_is_of_the_warp_and_of_the_granule():
    """33 threads are 2 warps; 33 registers are 1056 and take 1280; 1 byte + 1 KiB takes 1152."""
    answer = occupancy("h100", threads=33, registers=33, static_smem=1)
    assert answer.warps_per_block == 2
    assert answer.allocated_registers_per_block == 2 * 1280
    assert answer.allocated_shared_bytes_per_block == 1024 + 128


def test_registers_come_from_sub_partitions():
    """168 registers: each of 4 parts holds 16384 // 5376 = 3 warps, so 12 of 3 x 12 are 1 block."""
    answer = occupancy("h100", threads=384, registers=168)
    assert answer.warps_per_subpartition == 16384 // (168 * 32)
    assert answer.blocks_per_core == 4 * 3 // 12
    assert 65536 // (9 * 224 * 32) == 1  # one pool would hold 9 warps of 224 registers each,
    assert occupancy("h100", threads=288, registers=224).blocks_per_core == 0  # 4 x 2 do not


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_size_for_each_number_of_blocks(name):
    """One byte more and it is one block fewer, and the cliff says which size it was."""
    for blocks, size in LARGEST[name].items():
        at = occupancy(name, threads=64, registers=16, dynamic_smem=size)
        above = occupancy(name, threads=64, registers=16, dynamic_smem=size + 1)
        assert at.blocks_per_core == blocks
        assert above.blocks_per_core == blocks - 1
        assert cliffs(above) == {"shared": size}


# ---- cliffs in general -------------------------------------------------------------------------


def asked(name: str) -> st.SearchStrategy[dict[str, Any]]:
    block = device(name).main_pool.per_block_bytes
    values: dict[str, Any] = {
        "threads": st.integers(1, 1100),
        "registers": st.integers(1, 300),
        "static_smem": st.one_of(st.just(0), st.integers(0, 40 * KIB)),
        "dynamic_smem": st.one_of(st.just(0), st.integers(0, block + 2 * KIB)),
    }
    if device(name).vendor == "nvidia":
        values["carveout"] = st.one_of(st.none(), st.integers(0, 100))
        values["barriers"] = st.integers(0, 20)
        values["optin"] = st.booleans()
        values["max_dynamic_smem"] = st.one_of(st.none(), st.integers(0, block))
    return st.fixed_dictionaries(values).map(consistent)


def consistent(values: dict[str, Any]) -> dict[str, Any]:
    """Without an opt-in there are no bytes opted in to."""
    return values if values.get("optin", True) else values | {"max_dynamic_smem": None}


def changed(values: dict[str, Any], changes: dict[str, int]) -> dict[str, Any]:
    """The request with what the cliffs ask for; bytes come out of the dynamic part first."""
    moved = dict(values)
    for resource, value in changes.items():
        if resource in ("shared", "lds"):
            moved["static_smem"] = min(values["static_smem"], value)
            moved["dynamic_smem"] = value - moved["static_smem"]
        else:
            moved[resource] = value
    return moved


@pytest.mark.parametrize("name", [*NVIDIA, *AMD])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_all_cliffs_together_reach_more_blocks_and_one_unit_more_does_not(name, data):
    values = data.draw(asked(name))
    answer = occupancy(name, **values)
    have = answer.blocks_per_core
    if not answer.next:
        assert have == dict(answer.blocks_by)["blocks"]
        return
    steps = {
        c.resource: (c.at_least, -1) if c.at_most is None else (c.at_most, 1) for c in answer.next
    }
    reached = {resource: value for resource, (value, _) in steps.items()}
    assert occupancy(name, **changed(values, reached)).blocks_per_core == answer.step.blocks
    assert answer.step.blocks > have
    for resource, (value, unit) in steps.items():
        if resource == "registers" and value == device(name).max_registers_per_thread:
            continue  # NVIDIA's calculator takes one more, which no compiler gives
        worse = changed(values, reached | {resource: value + unit})
        assert occupancy(name, **worse).blocks_per_core <= have, (resource, value)


def test_a_smaller_carveout_is_named_with_the_one_that_would_do():
    """Half of 228 KiB is 114, the next size 132 KiB: 4 blocks of 31104 B; 164 KiB hold 5."""
    values = {"threads": 128, "registers": 16, "dynamic_smem": 30000, "carveout": 50}
    answer = occupancy("h100", **values)
    assert answer.shared_bytes_per_core == 132 * KIB
    assert answer.blocks_per_core == 132 * KIB // (30000 + 1024 + 80) == 4
    (cliff,) = answer.next
    assert cliff.at_most == 132 * KIB // 5 // 128 * 128 - 1024
    assert cliff.or_carveout == next(p for p in range(101) if 228 * p / 100 > 132)
    instead = occupancy("h100", **values | {"carveout": cliff.or_carveout})
    before = occupancy("h100", **values | {"carveout": cliff.or_carveout - 1})
    assert (before.blocks_per_core, instead.blocks_per_core) == (4, 5)


def test_without_shared_memory_the_carveout_itself_is_the_limit():
    """Carveout 0: the 1 KiB that is reserved for every block comes out of 8 KiB."""
    answer = occupancy("h100", threads=128, registers=16, carveout=0)
    assert answer.shared_bytes_per_core == 8 * KIB
    assert answer.blocks_per_core == 8
    (cliff,) = answer.next
    assert (cliff.resource, cliff.at_most, cliff.at_least) == ("carveout", None, 4)


def test_a_core_keeps_no_more_blocks_than_it_can():
    answer = occupancy("rtx-5090", threads=32, registers=16)
    assert answer.blocks_per_core == 24
    assert answer.limiters == ("blocks", "barriers")
    assert answer.next == ()
    assert "24 blocks are the most that one SM keeps" in answer.step.reason


# ---- unknown registers -------------------------------------------------------------------------


def test_without_registers_the_answer_is_an_upper_bound():
    """It holds for every count, and is reached up to the count that is named."""
    unknown = occupancy("h100", threads=256, dynamic_smem=99328)
    assert not unknown.registers_known
    assert unknown.allocated_registers_per_block is None
    assert unknown.limiters == ("shared",)
    blocks = occupancy_arrays(
        "h100", threads=256, registers=np.arange(256), dynamic_smem=99328
    ).blocks_per_core
    assert blocks.max() == unknown.blocks_per_core == 2
    assert np.flatnonzero(blocks == 2).max() == unknown.registers_for_blocks == 128
    assert cliffs(unknown) == {"registers": 80, "shared": 76800}
    assert unknown.next[0].now is None


# ---- blocks that cannot run --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "limiter", "words"),
    [
        ({"threads": 1152}, "warps", "threads 1,152, limit 1,024: over by 128"),
        ({"registers": 257}, "registers", "registers 257 per thread, limit 255"),
        ({"threads": 1024, "registers": 65}, "registers", "32 warps of 2,304"),
        ({"dynamic_smem": 232449}, "shared", "limit 232,448 B: over by 1 B"),
        ({"static_smem": 1, "dynamic_smem": 232448}, "shared", "over by 1 B"),
        ({"dynamic_smem": 49153, "optin": False}, "shared", "with the opt-in the limit is 232,448"),
        ({"dynamic_smem": 9, "max_dynamic_smem": 8}, "shared", "opted in to 8 dynamic bytes"),
        ({"barriers": 65}, "barriers", "barriers 65, limit 64"),
    ],
)
def test_no_block_at_all_is_an_answer_with_a_reason(values, limiter, words):
    answer = occupancy("h100", **{"threads": 128, "registers": 32} | values)
    assert answer.blocks_per_core == 0
    assert answer.limiters == (limiter,)
    assert not answer.fits
    (problem,) = answer.problems
    assert words in problem.text
    assert answer.step.blocks >= 1


def test_256_registers_take_the_room_of_255():
    """NVIDIA's calculator accepts them; a thread cannot have them, and a note says so."""
    answer = occupancy("h100", threads=128, registers=256)
    assert answer.blocks_per_core == occupancy("h100", threads=128, registers=255).blocks_per_core
    assert "256 registers take the room of 255" in answer.notes[0]


def test_static_shared_memory_above_48_kib_is_noted():
    """ptxas refuses it below 9.0 and takes it for sm_90a; nobody said whether that launches."""
    for name, words in (("a100", "ptxas refuses"), ("h100", "nobody published")):
        notes = occupancy(name, threads=128, static_smem=48 * KIB + 1).notes
        assert words in notes[0]
        assert "static" not in "".join(occupancy(name, threads=128, static_smem=48 * KIB).notes)


def test_the_carveout_is_said_to_be_a_hint():
    assert "exact for a carveout of 233,472 B" in occupancy("h100", threads=128).notes[-1]


def test_a_device_whose_block_may_not_have_all_registers():
    """9 warps of 3584 are 32256 of 32768, but are counted as 12 in the check at launch."""
    half = replace(device("h100"), registers_per_block=32768)
    assert occupancy(half, threads=256, registers=128).blocks_per_core == 2
    refused = occupancy(half, threads=288, registers=112)
    assert refused.blocks_per_core == 0
    assert occupancy("h100", threads=288, registers=112).blocks_per_core == 1
    assert cliffs(refused) == {"registers": 80}
    assert occupancy(half, threads=288, registers=80).blocks_per_core == 2
    assert 12 * 80 * 32 <= 32768 < 12 * 88 * 32


# ---- tensor memory, clusters, roles ------------------------------------------------------------


def test_tensor_memory_holds_blocks_back_but_limits_no_residency():
    values = {"threads": 128, "registers": 32}
    without = occupancy("b200", **values)
    answer = occupancy("b200", **values, tmem_columns=256)
    assert answer.tensor_blocks == 512 // 256
    assert answer.blocks_per_core == without.blocks_per_core == 64 // 4
    assert "2 blocks hold it at once" in answer.notes[0]
    assert without.tensor_blocks is None


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [
        ("h100", 64, "h100 (sm_90) has no tensor memory"),
        ("rtx-5090", 64, "no tensor memory"),
        ("b200", 544, "limit 512: over by 32"),
    ],
)
def test_tensor_memory_that_is_not_there(name, columns, words):
    answer = occupancy(name, threads=128, tmem_columns=columns)
    assert answer.tensor_blocks == 0
    assert not answer.fits
    assert words in answer.problems[0].text


@pytest.mark.parametrize(
    ("name", "size", "fits", "words"),
    [
        ("h100", 8, True, "a portable size; how many clusters are active is unknown"),
        ("h100", 16, True, "needs the non-portable attribute"),
        ("h100", 17, False, "limit 16"),
        ("rtx-5090", 16, True, "no larger size is known"),
        ("a100", 2, False, "has no clusters"),
        ("a100", 1, True, ""),
    ],
)
def test_the_size_of_a_cluster_is_checked(name, size, fits, words):
    answer = occupancy(name, threads=128, cluster=size)
    assert answer.fits is fits
    assert words in "".join([*answer.notes, *(problem.text for problem in answer.problems)])
    assert answer.blocks_per_core == occupancy(name, threads=128).blocks_per_core


def test_a_register_cliff_brings_the_roles_down_with_it():
    """240 at launch hold 24/240; 128 x 256 threads are 32768, and 24/232 is what they hold."""
    values = {"threads": 256, "registers": 240}
    roles = ((128, 24), (128, 240))
    answer = occupancy("h100", **values, roles=roles)
    assert answer.fits
    assert cliffs(answer) == {"registers": 128}
    lowered = [(role.threads, role.registers) for role in answer.next[0].roles]
    assert lowered == [(128, 24), (128, 232)]
    assert 128 * (24 + 232) <= 128 * 256 < 128 * (24 + 240)
    assert occupancy("h100", threads=256, registers=128, roles=lowered).fits
    assert not occupancy("h100", threads=256, registers=128, roles=roles).fits


def test_roles_that_fit_the_smaller_pool_stay():
    """80 x 384 = 30720 hold 24 and 2 x 104; a role of 40 stays."""
    answer = occupancy("h100", threads=384, registers=168, roles=[(128, 24), (256, 104)])
    assert cliffs(answer) == {"registers": 80}
    assert 128 * 24 + 256 * 104 <= 80 * 384
    assert answer.next[0].roles == ()


def test_no_register_cliff_where_the_roles_cannot_follow():
    """16 blocks of 128 threads would have 32 registers each, and 17 blocks 24 and less."""
    answer = occupancy("h100", threads=128, registers=32, roles=[(128, 24)])
    assert answer.blocks_per_core == 16
    assert answer.next == ()
    assert "roles" in answer.step.reason


def test_roles_larger_than_the_pool_wait_for_ever():
    answer = occupancy("h100", threads=128, registers=40, roles=[(128, 256)])
    (problem,) = answer.problems
    assert "32,768 registers and the launch brings 5,120" in problem.text
    assert [(role.threads, role.registers) for role in problem.value] == [(128, 40)]


# ---- AMD ---------------------------------------------------------------------------------------


def test_waves_per_simd_come_from_the_rounded_vgprs():
    """100 VGPR take 104; 512 // 104 = 4 waves on each of 4 SIMDs, of 4 waves a block."""
    answer = occupancy("mi300x", threads=256, registers=100)
    assert answer.warps_per_subpartition == 512 // 104 == 4
    assert answer.blocks_per_core == 4 * 4 // 4
    assert answer.limiters == ("registers",)
    assert answer.allocated_registers_per_block == 4 * 104 * 64
    assert cliffs(answer) == {"registers": 512 // 5 // 8 * 8}


def test_the_unified_file_gives_one_wave_512_registers():
    assert occupancy("mi300x", threads=64, registers=512).warps_per_subpartition == 1
    assert not occupancy("mi300x", threads=64, registers=513).fits
    assert not occupancy("rx-7900-xtx", threads=64, registers=257).fits


@pytest.mark.parametrize(
    ("name", "size", "taken", "per_core"),
    [
        ("mi300x", 20000, 40 * 512, 64 * KIB),
        ("mi355x", 24000, 19 * 1280, 160 * KIB),
        ("rx-7900-xtx", 20000, 20 * 1024, 128 * KIB),
    ],
)
def test_lds_is_given_out_in_granules(name, size, taken, per_core):
    answer = occupancy(name, threads=256, registers=32, dynamic_smem=size)
    assert answer.allocated_shared_bytes_per_block == taken
    assert answer.blocks_per_core == per_core // taken
    assert answer.limiters == ("lds",)


def test_a_work_group_has_less_lds_than_a_wgp():
    """RDNA: 128 KiB a WGP, 64 KiB a work-group."""
    assert occupancy("rx-7900-xtx", threads=64, dynamic_smem=64 * KIB).blocks_per_core == 2
    answer = occupancy("rx-7900-xtx", threads=64, dynamic_smem=64 * KIB + 1)
    assert "lds 65,537 B, limit 65,536 B: over by 1 B" in answer.problems[0].text


def test_only_work_groups_of_several_waves_take_barrier_slots():
    """CDNA: 16 of two waves, 32 of one; RDNA: 32 of two waves on a WGP."""
    assert occupancy("mi300x", threads=128, registers=8).blocks_per_core == 16
    assert occupancy("mi300x", threads=64, registers=8).blocks_per_core == 8 * 4
    assert occupancy("rx-7900-xtx", threads=64, registers=8).blocks_per_core == 32
    assert occupancy("rx-7900-xtx", threads=32, registers=8).blocks_per_core == 16 * 4


def test_wave64_has_half_the_vgprs():
    """100 VGPR: wave32 takes 120 of 1536, wave64 takes 108 of 768."""
    wave32 = occupancy("rx-7900-xtx", threads=256, registers=100)
    wave64 = occupancy("rx-7900-xtx", threads=256, registers=100, wave=64)
    assert wave32.warps_per_subpartition == 1536 // 120 == 12
    assert wave64.warps_per_subpartition == 768 // 108 == 7
    assert (wave32.warps_per_block, wave64.warps_per_block) == (8, 4)
    assert "LLVM's model for waves of 64 lanes, in WGP mode" in wave64.notes[0]


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ascend-910b1", "runs one block at a time.*rounds.*tilefit budget"),
        ("tpu-v4", "no occupancy rule is known for tpu-v4"),
        ("apple-gpu", "no occupancy rule is known"),
        ("sm_81", "unknown device"),
        ("h100,a100", "names 2 devices and one is needed"),
        ("", "empty name"),
    ],
)
def test_devices_without_occupancy(name, words):
    with pytest.raises(InputError, match=words):
        occupancy(name, threads=128)
    with pytest.raises(InputError, match=words):
        occupancy_arrays(name, threads=[128])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"threads": 0}, "threads 0 is not a whole number from 1"),
        ({"threads": 32.0}, "threads 32.0"),
        ({"threads": True}, "threads True"),
        ({"threads": "32"}, "threads '32'"),
        ({"registers": -1}, "registers -1 is not a whole number from 0"),
        ({"static_smem": -1}, "static_smem -1"),
        ({"dynamic_smem": 0.5}, "dynamic_smem 0.5"),
        ({"carveout": 101}, "carveout 101 is not a percentage"),
        ({"carveout": -2}, "carveout -2"),
        ({"barriers": -1}, "barriers -1"),
        ({"cluster": 0}, "cluster 0"),
        ({"optin": False, "max_dynamic_smem": 0}, "needs optin"),
        ({"wave": 64}, "h100 has waves of 32 lanes"),
        ({"roles": [(128, 25)]}, "multiples of 8 from 24 to 256"),
        ({"roles": [(128, 16)]}, "multiples of 8 from 24 to 256"),
        ({"roles": [(128, 264)]}, "multiples of 8 from 24 to 256"),
        ({"roles": [(96, 24), (64, 24)]}, "roles have 160 threads, the block 128"),
    ],
)
def test_bad_values_are_named(values, words):
    with pytest.raises(InputError, match=words):
        occupancy("h100", **{"threads": 128} | values)


def test_tensor_memory_comes_by_32_columns():
    with pytest.raises(InputError, match="by 32 columns, so this is 128"):
        occupancy("b200", threads=128, tmem_columns=100)


@pytest.mark.parametrize(
    "values",
    [
        {"carveout": 50},
        {"barriers": 1},
        {"cluster": 1},
        {"tmem_columns": 32},
        {"max_dynamic_smem": 0},
        {"roles": [(64, 24)]},
        {"wave": 32},
    ],
)
def test_amd_has_no_such_thing(values):
    (name,) = values
    with pytest.raises(InputError, match=f"{name}.*mi300x has"):
        occupancy("mi300x", threads=128, **values)


@pytest.mark.parametrize("name", ["subpartitions", "register_granule", "max_blocks_per_core"])
def test_a_device_of_ones_own_needs_every_number(name):
    lacking = replace(device("h100"), **{name: None})
    with pytest.raises(InputError, match=f"h100 lacks {name}, which occupancy needs"):
        occupancy(lacking, threads=128)


# ---- arrays ------------------------------------------------------------------------------------


def test_arrays_keep_the_common_shape():
    answer = occupancy_arrays(
        "h100", threads=[[64], [128], [256]], registers=[32, 64], dynamic_smem=1000
    )
    assert answer.blocks_per_core.shape == answer.limiter_bits.shape == (3, 2)
    for i, threads in enumerate((64, 128, 256)):
        for j, registers in enumerate((32, 64)):
            one = occupancy("h100", threads=threads, registers=registers, dynamic_smem=1000)
            assert answer.blocks_per_core[i, j] == one.blocks_per_core


def test_single_values_and_empty_arrays():
    single = occupancy_arrays("h100", threads=256, registers=128, dynamic_smem=99328)
    assert single.blocks_per_core.shape == ()
    assert int(single.blocks_per_core) == 2
    assert int(single.limiter_bits) == 2 + 4
    assert occupancy_arrays("h100", threads=[]).blocks_per_core.shape == (0,)


def test_views_in_any_layout_and_any_integer_type():
    threads = np.arange(1, 1201).reshape(30, 40)
    expected = occupancy_arrays("a100", threads=threads, registers=40).blocks_per_core
    for view in (np.asfortranarray(threads), threads.astype(np.uint16), threads.astype(">i4")):
        found = occupancy_arrays("a100", threads=view, registers=40).blocks_per_core
        np.testing.assert_array_equal(found, expected)
    halved = occupancy_arrays("a100", threads=threads[::-2, ::3], registers=40)
    np.testing.assert_array_equal(halved.blocks_per_core, expected[::-2, ::3])


def test_arrays_longer_than_a_chunk_are_one_answer():
    threads = np.resize(np.arange(1, 1100), 50_000)
    answer = occupancy_arrays("h100", threads=threads, registers=64).blocks_per_core
    period = [occupancy("h100", threads=t, registers=64).blocks_per_core for t in range(1, 1100)]
    np.testing.assert_array_equal(answer, np.resize(period, 50_000))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"threads": [32, 0]}, "threads 0 is not a whole number from 1"),
        ({"threads": [32.0]}, "threads: float64 values"),
        ({"threads": [True]}, "threads: bool values"),
        ({"threads": ["32"]}, "threads"),
        ({"threads": [[1, 2], [3]]}, "threads: the rows of a list have different lengths"),
        ({"registers": [-1]}, "registers -1"),
        ({"dynamic_smem": [2**31]}, "dynamic_smem 2147483648"),
        ({"carveout": [101]}, "carveout 101"),
        ({"threads": [1, 2], "registers": [1, 2, 3]}, "shapes do not go together"),
    ],
)
def test_bad_arrays_are_named(values, words):
    with pytest.raises(InputError, match=words):
        occupancy_arrays("h100", **{"threads": [128]} | values)


def test_the_largest_values_do_not_overflow():
    most = 2**31 - 1
    answer = occupancy_arrays(
        "h100", threads=[most], registers=[most], static_smem=[most], dynamic_smem=[most]
    )
    assert answer.blocks_per_core.tolist() == [0]
    assert answer.limiter_bits.tolist() == [1 + 2 + 4]


def test_amd_in_arrays_is_the_same_rule():
    threads, registers = np.arange(1, 1025), np.resize(np.arange(1, 513), 1024)
    for name in AMD:
        found = occupancy_arrays(name, threads=threads, registers=registers, dynamic_smem=9000)
        expected = [
            occupancy(name, threads=t, registers=r, dynamic_smem=9000).blocks_per_core
            for t, r in zip(threads.tolist(), registers.tolist(), strict=True)
        ]
        np.testing.assert_array_equal(found.blocks_per_core, expected)
