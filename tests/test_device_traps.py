"""Device numbers that public tables, headers and examples get wrong, one test each.

Expected values are arithmetic in KiB or facts from the vendors' documents.
"""

from __future__ import annotations

import pytest

from tilefit._devices.names import device
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import round_up

KIB = 1024


def shared(name: str):  # type: ignore[no-untyped-def]
    return device(name).pool(Memory.SHARED)


@pytest.mark.parametrize(
    ("name", "per_sm_kib"),
    [("h100", 228), ("a100", 164), ("rtx-3090", 100), ("rtx-4090", 100), ("rtx-5090", 100)],
)
def test_per_sm_is_not_per_block(name: str, per_sm_kib: int) -> None:
    """From 8.0 on one block may use 1 KiB less than its SM has."""
    pool = shared(name)
    assert pool.per_core_bytes == per_sm_kib * KIB
    assert pool.per_block_bytes == (per_sm_kib - 1) * KIB


def test_every_resident_block_pays_the_reserved_kib() -> None:
    """Two blocks on an H100 need at most 228 KiB / 2 - 1 KiB each, not 227.5 KiB / 2."""
    pool = shared("h100")
    assert pool.reserved_per_block_bytes == 1 * KIB
    assert pool.largest_for(2) == 228 * KIB // 2 - 1 * KIB == 115712
    assert 2 * pool.allocated_bytes(115712) == 228 * KIB
    assert 2 * pool.allocated_bytes(115713) > 228 * KIB


def test_the_headers_own_dynamic_answer_is_one_kib_too_much() -> None:
    """228 KiB / 2 = 116736 B a block, as the CUDA header answers, is one block only."""
    pool = shared("h100")
    assert pool.per_core_bytes // pool.allocated_bytes(116736) == 1


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("sm_70", (98304, 49152, 32768, 24576, 16384, 12288)),
        ("sm_72", (98304, 49152, 32768, 24576, 16384, 12288)),
        ("sm_75", (65536, 32768, 21760, 16384, 10752, 8192)),
        ("sm_80", (166912, 82944, 54912, 40960, 26880, 19968)),
        ("sm_87", (166912, 82944, 54912, 40960, 26880, 19968)),
        *(
            (name, (101376, 50176, 33024, 24576, 16000, 11776))
            for name in ("sm_86", "sm_88", "sm_89", "sm_120", "sm_121")
        ),
        *(
            (name, (232448, 115712, 76800, 57344, 37888, 28160))
            for name in ("sm_90", "sm_100", "sm_103", "sm_110")
        ),
    ],
)
def test_largest_shared_size_for_1_2_3_4_6_8_blocks(name: str, largest: tuple[int, ...]) -> None:
    """Read off NVIDIA's cuda_occupancy.h of CUDA 13.0 (one byte more loses a block)."""
    pool = shared(name)
    assert tuple(pool.largest_for(blocks) for blocks in (1, 2, 3, 4, 6, 8)) == largest


@pytest.mark.parametrize("name", ["v100", "t4", "a100", "h100", "b200", "thor", "rtx-5090"])
def test_without_an_opt_in_a_block_gets_48_kib(name: str) -> None:
    assert shared(name).default_per_block_bytes == 48 * KIB


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("v100", (0, 8, 16, 32, 64, 96)),
        ("t4", (32, 64)),
        ("a100", (0, 8, 16, 32, 64, 100, 132, 164)),
        ("orin", (0, 8, 16, 32, 64, 100, 132, 164)),
        ("rtx-4090", (0, 8, 16, 32, 64, 100)),
        ("h100", (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
        ("b200", (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
        ("rtx-5090", (0, 8, 16, 32, 64, 100)),
    ],
)
def test_shared_memory_is_carved_out_in_certain_sizes(name: str, kib: tuple[int, ...]) -> None:
    assert shared(name).carveouts_bytes == tuple(size * KIB for size in kib)


def test_no_shared_memory_still_costs_the_reserved_kib_from_8_0_on() -> None:
    """On a V100 it costs nothing; on an H100 228 blocks would fill the SM."""
    assert shared("v100").allocated_bytes(0) == 0
    h100 = shared("h100")
    assert h100.per_core_bytes // h100.allocated_bytes(0) == 228


def test_registers_belong_to_four_partitions() -> None:
    """96 registers: 3072 a warp, so 4 x floor(16384 / 3072) = 20 warps, not 65536 // 3072 = 21."""
    h100 = device("h100")
    assert (h100.registers_per_core, h100.subpartitions) == (64 * 1024, 4)
    per_warp = round_up(96 * 32, h100.register_granule or 0)
    assert per_warp == 3072
    assert 65536 // per_warp == 21
    assert 4 * (65536 // 4 // per_warp) == 20


def test_a_thread_has_255_registers_not_256() -> None:
    """The CUDA header accepts 256; the instruction set has no 256th."""
    assert {device(n).max_registers_per_thread for n in ("v100", "a100", "h100", "gb10")} == {255}


@pytest.mark.parametrize(
    ("name", "warps", "blocks"),
    [
        ("sm_70", 64, 32),
        ("sm_75", 32, 16),
        ("sm_80", 64, 32),
        ("sm_86", 48, 16),
        ("sm_87", 48, 16),
        ("sm_88", 48, 16),
        ("sm_89", 48, 24),
        ("sm_90", 64, 32),
        ("sm_100", 64, 32),
        ("sm_103", 64, 32),
        ("sm_110", 48, 24),
        ("sm_120", 48, 24),
        ("sm_121", 48, 24),
    ],
)
def test_consumer_chips_hold_1536_threads_and_fewer_blocks(
    name: str, warps: int, blocks: int
) -> None:
    found = device(name)
    assert (found.max_warps_per_core, found.max_blocks_per_core) == (warps, blocks)
    assert found.max_threads_per_core == warps * 32


def test_orin_has_the_memory_of_an_a100_and_the_threads_of_an_rtx() -> None:
    """8.7: 164 KiB an SM and 163 a block as 8.0, but 48 warps and 16 blocks as 8.6."""
    orin = device("orin")
    assert orin.arch == "sm_87"
    assert shared("orin").per_core_bytes == 164 * KIB
    assert shared("orin").per_block_bytes == 163 * KIB
    assert shared("orin").physical_bytes == 192 * KIB
    assert (orin.max_warps_per_core, orin.max_blocks_per_core) == (48, 16)


@pytest.mark.parametrize("name", ["sm_120", "sm_121", "rtx-5090", "gb10"])
def test_consumer_blackwell_has_99_kib_and_no_tensor_memory(name: str) -> None:
    """12.x is not 10.x: no 227 KiB, no tcgen05 (CUTLASS and some crates say otherwise)."""
    found = device(name)
    assert shared(name).per_block_bytes == 99 * KIB
    assert not found.has(Memory.TENSOR)
    with pytest.raises(InputError, match="has no tensor memory; it has shared, registers"):
        found.pool(Memory.TENSOR)


@pytest.mark.parametrize("name", ["sm_100", "sm_103", "sm_110", "b200", "b300", "thor"])
def test_datacenter_blackwell_has_512_columns_of_tensor_memory(name: str) -> None:
    """512 columns x 128 lanes x 4 B = 256 KiB, given out in units of 32 columns = 16 KiB."""
    pool = device(name).pool(Memory.TENSOR)
    assert pool.columns == 512
    assert pool.per_block_bytes == 512 * 128 * 4 == 256 * KIB
    assert pool.granule_bytes == 32 * 128 * 4 == 16 * KIB


def test_128_kib_of_the_blackwell_tuning_guide_is_the_unified_array() -> None:
    """12.0: L1 and shared memory together have 128 KiB, shared memory at most 100."""
    pool = shared("rtx-5090")
    assert (pool.physical_bytes, pool.per_core_bytes) == (128 * KIB, 100 * KIB)


@pytest.mark.parametrize("name", ["8.1", "sm_81", "8.4", "9.9", "11.1", "11.3", "sm_130", "cc91"])
def test_unknown_minors_are_refused(name: str) -> None:
    """The CUDA header answers for 8.1, 9.9 and 11.1 as if they existed; nothing is guessed here."""
    with pytest.raises(UnknownNameError, match="not guessed"):
        device(name)


@pytest.mark.parametrize("name", ["10.7", "sm_107"])
def test_10_7_is_refused_because_its_numbers_are_second_hand(name: str) -> None:
    with pytest.raises(InputError, match="second-hand"):
        device(name)


def test_10_1_is_the_old_name_of_11_0() -> None:
    assert device("10.1") == device("sm_101") == device("11.0") == device("sm_110")


def test_resident_blocks_are_not_limited_by_tensor_memory() -> None:
    """tcgen05.alloc waits for columns; the block limit of the SM is what it is without them."""
    assert device("b200").max_blocks_per_core == device("h100").max_blocks_per_core == 32


@pytest.mark.parametrize(
    ("name", "barriers"),
    [("sm_80", None), ("sm_89", None), ("sm_90", 64), ("sm_100", 64), ("sm_110", 24)],
)
def test_block_barriers_are_a_limit_from_9_0_on(name: str, barriers: int | None) -> None:
    assert device(name).barriers_per_core == barriers


@pytest.mark.parametrize("name", ["sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89"])
def test_there_are_no_clusters_below_9_0(name: str) -> None:
    assert device(name).cluster_portable_max is None
    assert device(name).cluster_max is None


@pytest.mark.parametrize(
    ("name", "largest"),
    [("h100", 16), ("b200", 16), ("b300", 16), ("thor", None), ("rtx-5090", None), ("gb10", None)],
)
def test_clusters_of_8_are_portable_and_16_is_known_for_some(
    name: str, largest: int | None
) -> None:
    """The non-portable size of 11.0 and 12.x is not published: unknown, not 8 and not 16."""
    found = device(name)
    assert (found.cluster_portable_max, found.cluster_max) == (8, largest)
    fact = next(f for f in found.facts if f.key == "cluster_max")
    assert (fact.confidence == "unknown") is (largest is None)


def test_ascend_sizes_in_bits_are_not_bytes() -> None:
    """AscendNPU-IR writes 1572864 and 2031616: bits, so 192 KiB and 248 KiB."""
    assert device("ascend-910b1").pool(Memory.UB).physical_bytes == 1572864 // 8 == 192 * KIB
    assert device("ascend-950").pool(Memory.UB).per_block_bytes == 2031616 // 8 == 248 * KIB


@pytest.mark.parametrize("name", ["ascend-910b1", "ascend-910b4", "ascend-910_9391"])
def test_a2_and_a3_keep_256_bytes_of_ub_and_l1(name: str) -> None:
    """196608 B of UB exist and 196352 may be used; L1 524288 and 524032."""
    for memory, kib in ((Memory.UB, 192), (Memory.L1, 512)):
        pool = device(name).pool(memory)
        assert pool.physical_bytes == kib * KIB
        assert pool.per_block_bytes == kib * KIB - 256
        assert pool.reserved_per_block_bytes == 256


@pytest.mark.parametrize(
    ("name", "kib"),
    [("ascend-910b1", 184), ("ascend-910_9362", 184), ("ascend-310p3", 248), ("ascend-910a", 248)],
)
def test_some_apis_take_the_top_8_kib_of_ub(name: str, kib: int) -> None:
    """TMP_UB_OFFSET: 184 KiB on A2 and A3, 248 KiB on 310P and 910A."""
    (condition,) = device(name).conditions
    assert (condition.memory, condition.code) == (Memory.UB, "api-scratch")
    assert condition.per_block_bytes == kib * KIB
    assert device(name).pool(Memory.UB).physical_bytes == (kib + 8) * KIB


def test_simt_parts_leave_216_kib_of_ub_on_950() -> None:
    """256 KiB less 8 KiB for the compiler and 32 KiB of data cache."""
    (condition,) = device("ascend-950").conditions
    assert (condition.memory, condition.code) == (Memory.UB, "simt")
    assert condition.per_block_bytes == (256 - 8 - 32) * KIB


def test_950_keeps_8_kib_of_its_256_kib_of_ub() -> None:
    """The adapter's code generator says 262144; the compiler and its stack keep 8 KiB of it."""
    pool = device("ascend-950").pool(Memory.UB)
    assert (pool.physical_bytes, pool.per_block_bytes) == (256 * KIB, 248 * KIB)
    assert device("ascend-950").pool(Memory.L1).per_block_bytes == 512 * KIB  # not 524032


def test_910b_has_half_a_mib_of_l1_and_128_kib_of_l0c() -> None:
    """The adapter's table says 1 MiB and 512 KiB."""
    found = device("ascend-910b")
    assert found.pool(Memory.L1).physical_bytes == 512 * KIB
    assert found.pool(Memory.L0C).per_block_bytes == 128 * KIB


def test_310p_has_one_mib_of_l1() -> None:
    """The adapter's table says 512 KiB."""
    assert device("ascend-310p3").pool(Memory.L1).per_block_bytes == 1024 * KIB


def test_the_fixpipe_query_reports_the_first_of_four_parts() -> None:
    """GetCoreMemSize(FB) gives 2048 B on A2; the buffer has 2 + 1 + 2 + 2 KiB."""
    found = device("ascend-910b")
    assert found.pool(Memory.FIXPIPE).per_block_bytes == (2 + 1 + 2 + 2) * KIB
    assert {f.key: f.value for f in found.facts}["fixpipe_fb0_bytes"] == 2 * KIB


@pytest.mark.parametrize("name", ["rx-7900-xtx", "rx-9070-xt"])
def test_rdna_lds_is_per_wgp_and_a_work_group_gets_half(name: str) -> None:
    """128 KiB are shared by the two CUs of a WGP; one work-group may use 64 KiB."""
    pool = device(name).pool(Memory.LDS)
    assert pool.core == "WGP"
    assert (pool.per_core_bytes, pool.per_block_bytes) == (128 * KIB, 64 * KIB)


def test_a_7900_xtx_has_96_cus_which_torch_counts_as_48() -> None:
    assert device("rx-7900-xtx").cores == (("WGP", 48), ("CU", 96))


def test_gfx950_has_163840_bytes_in_units_of_1280() -> None:
    """160 KiB, not 160000 B, and an allocation is rounded to 1280 B, not to 512."""
    pool = device("mi355x").pool(Memory.LDS)
    assert pool.per_block_bytes == pool.per_core_bytes == 160 * KIB == 128 * 1280
    assert pool.allocated_bytes(1) == 1280
    assert pool.allocated_bytes(1281) == 2 * 1280


def test_xe_hpg_gives_a_work_group_half_of_the_core() -> None:
    """128 KiB an Xe-core, 64 KiB a work-group; PVC gives all 128."""
    hpg, hpc = (device(n).pool(Memory.SLM) for n in ("intel-xe-hpg", "intel-xe-hpc"))
    assert (hpg.per_core_bytes, hpg.per_block_bytes) == (128 * KIB, 64 * KIB)
    assert (hpc.per_core_bytes, hpc.per_block_bytes) == (128 * KIB, 128 * KIB)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a100", 108), ("a30", 56)),
        (("b200", 148), ("gb200", 152)),
        (("a10", 72), ("a10g", 80)),
        (("h100", 132), ("h20", 78)),
        (("h100", 132), ("h100-pcie", 114)),
    ],
)
def test_products_of_one_architecture_differ_in_cores(
    one: tuple[str, int], other: tuple[str, int]
) -> None:
    assert device(one[0]).arch == device(other[0]).arch
    assert device(one[0]).cores == (("SM", one[1]),)
    assert device(other[0]).cores == (("SM", other[1]),)


def test_an_architecture_has_no_core_count() -> None:
    """Only a product has: 9.0 alone is an H100, an H200 or an H20."""
    assert device("sm_90").cores == ()
    assert device("sm_100").cores == ()


def test_228_kib_of_an_h100_is_a_capacity_and_no_device() -> None:
    with pytest.raises(InputError, match=r"is a capacity, not a device: .* one block .* 232448 B"):
        device("h100-sm-shared-228kb")
