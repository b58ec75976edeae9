"""The bytes of one tile: the tutorial's numbers, exact limits, and every wrong input."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilefit
from tilefit._kernel.dtype import DTYPES
from tilefit._tiles.footprint import Footprint, footprint
from tilefit._tiles.limit import limit_of_size
from tilefit.cli import main

KIB = 1024

extents = st.lists(st.integers(1, 300), min_size=1, max_size=4).map(tuple)
dtypes = st.sampled_from(sorted(DTYPES))
copies = st.integers(1, 12)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run ``tilefit footprint``; return the exit code and what it printed."""
    code = main(["footprint", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out if code != 2 else captured.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    code, out = run(capsys, *arguments, "--json")
    return code, json.loads(out)


@pytest.mark.parametrize("flag", ["--versions", "--copies"])
def test_tutorial_tile_in_text(capsys, flag):
    """128 x 256 fp32, twice: 256 KiB, which 192 KiB do not hold."""
    code, out = run(
        capsys,
        *("--tile", "128", "256", "--dtype", "float32", flag, "2", "--capacity", "196608"),
    )
    lines = out.splitlines()
    assert lines[:6] == [
        "shape        = (128, 256)",
        "dtype        = float32 (32 bit)",
        "copies       = 2 (versions)",
        f"elements     = {128 * 256}",
        f"bytes / copy = {128 * 256 * 4} (128 KiB)",
        f"bytes total  = {128 * 256 * 4 * 2} (256 KiB)",
    ]
    assert lines[6].startswith(f"fits in {192 * KIB} B: False")
    assert f"over by {(256 - 192) * KIB} B" in lines[6]
    assert code == 1


def test_a_tile_that_does_not_fit_ends_with_a_command_that_fits(capsys):
    """The last line, pasted back, exits 0."""
    _, out = run(capsys, "--tile", "128", "256", "--copies", "2", "--capacity", "192KiB")
    program, command, *arguments = out.splitlines()[-1].split()
    assert (program, command) == ("tilefit", "footprint")
    assert "--copies 1" in out.splitlines()[-1]
    assert run(capsys, *arguments)[0] == 0


@pytest.mark.parametrize("capacity", ["196608", "0x30000", "192KiB", "196_608"])
def test_json_keys_of_the_contract(capsys, capacity):
    code, document = run_json(
        capsys, "--tile", "128", "256", "--copies", "2", "--capacity", capacity
    )
    expected = {
        "schema_version": 1,
        "evidence": "declared",
        "shape": [128, 256],
        "dtype": "float32",
        "copies": 2,
        "elements": 128 * 256,
        "bytes_per_copy": 128 * 256 * 4,
        "total_bytes": 128 * 256 * 4 * 2,
        "limit_bytes": 192 * KIB,
        "fits": False,
    }
    assert {key: document[key] for key in expected} == expected
    assert code == 1


def test_without_a_limit_nothing_is_judged(capsys):
    code, document = run_json(capsys, "--tile", "128", "256")
    assert (code, document["limit_bytes"], document["fits"]) == (0, None, None)


@given(extents, dtypes, copies)
def test_bytes_are_rounded_up_once_per_copy(shape, dtype, count):
    """A copy has the fewest whole bytes that hold elements x bits; copies share no byte."""
    tile = footprint(shape, dtype, count)
    bits = DTYPES[dtype].bits
    elements = 1
    for extent in shape:
        elements *= extent
    assert tile.elements == elements
    assert 0 <= 8 * tile.bytes_per_copy - elements * bits < 8
    assert tile.total_bytes == count * tile.bytes_per_copy


@given(extents, dtypes, copies)
def test_the_verdict_flips_exactly_at_the_limit(shape, dtype, count):
    total = footprint(shape, dtype, count).total_bytes
    assert footprint(shape, dtype, count, capacity_bytes=total).fits is True
    assert footprint(shape, dtype, count, capacity_bytes=total - 1).fits is False


@given(extents, dtypes, copies, st.integers(0, 2**20))
def test_the_smaller_tile_fits_with_as_many_copies_as_possible(shape, dtype, count, capacity):
    tile = footprint(shape, dtype, count, capacity_bytes=capacity)
    smaller = tile.smaller()
    if smaller is None:
        one_byte_each = Footprint((1,) * len(shape), tile.dtype, count)
        assert one_byte_each.total_bytes > capacity
        return
    assert smaller.fits
    if smaller.shape == shape and smaller.copies < count:
        assert (smaller.copies + 1) * tile.bytes_per_copy > capacity
    elif smaller.shape != shape:
        assert tile.bytes_per_copy > capacity


def test_sub_byte_tiles_by_hand():
    """9 elements of 4 bit are 4.5 bytes, so 5; of 6 bit 6.75, so 7; of 1 bit 1.125, so 2."""
    assert footprint((3, 3), "int4", 2).total_bytes == 2 * 5
    assert footprint((3, 3), "float6_e2m3fn", 2).total_bytes == 2 * 7
    assert footprint((3, 3), "uint1", 2).total_bytes == 2 * 2
    assert footprint((3, 3), "bool", 2).total_bytes == 2 * 9


def test_a_number_is_per_block_not_per_sm():
    """H100: 228 KiB per SM, less 1 KiB reserved for each block."""
    tile = footprint((227 * KIB,), "int8", device="h100")
    assert (tile.limit_bytes, tile.fits) == (227 * KIB, True)
    assert footprint((227 * KIB + 1,), "int8", device="h100").fits is False
    assert tile.limit.memory is tilefit.Memory.SHARED


def test_the_named_capacity_is_the_whole_sm(capsys):
    code, out = run(capsys, "--tile", "233472", "--dtype", "int8", "-d", "h100-sm-shared-228kb")
    assert code == 0
    assert "fits in 233472 B: True" in out
    assert "SM" in out
    code, out = run(capsys, "--tile", "233473", "--dtype", "int8", "-d", "h100-sm-shared-228kb")
    assert code == 1


def test_amd_has_one_main_memory():
    tile = footprint((64 * KIB,), "int8", device="mi300x")
    assert (tile.limit.memory, tile.limit_bytes) == ("lds", 64 * KIB)


def test_ascend_needs_the_memory_and_lists_them(capsys):
    code, err = run(capsys, "--tile", "128", "256", "-d", "ascend-910b1")
    assert code == 2
    assert all(name in err for name in ("ub", "l1", "l0a", "l0b", "l0c"))


def test_ascend_usable_is_less_than_physical(capsys):
    """A2: 196608 B of UB on the chip, 196352 for a kernel."""
    arguments = ("--dtype", "int8", "-d", "ascend-910b1", "--memory", "ub")
    code, out = run(capsys, "--tile", str(196608 - 256), *arguments)
    assert code == 0
    assert "196608" in out
    assert run(capsys, "--tile", str(196608 - 255), *arguments)[0] == 1


def test_fp6_is_budgeted_in_containers_where_tcgen05_reads_it():
    """128 x 512 fp6: 48 KiB packed, 64 KiB in 8-bit containers; four of these pass 227 KiB."""
    packed, containers = 128 * 512 * 6 // 8, 128 * 512
    for device, charged in (("b200", containers), ("h100", packed), ("rtx-5090", packed)):
        tile = footprint((128, 512), "float6_e3m2fn", 4, device=device)
        assert tile.total_bytes == 4 * packed
        assert tile.container_bytes == 4 * containers
        assert tile.charged_bytes == 4 * charged
    b200 = footprint((128, 512), "float6_e3m2fn", 4, device="b200")
    assert b200.total_bytes < 227 * KIB < b200.container_bytes
    assert b200.fits is False


def test_fp4_shows_both_figures_and_which_is_budgeted(capsys):
    """8 tiles of 128 x 256 fp4: 128 KiB packed, 256 KiB in containers."""
    arguments = ("--tile", "128", "256", "--dtype", "float4_e2m1fn", "--copies", "8")
    code, out = run(capsys, *arguments, "-d", "b200")
    assert code == 1
    assert f"bytes total  = {128 * KIB} " in out
    assert f"containers   = {256 * KIB} " in out
    assert "containers compared" in out
    assert "packed, as the kinds mxf4 and mxf4nvf4 read it, it would fit" in out
    code, out = run(capsys, *arguments, "-d", "h100")
    assert code == 0
    assert "packed compared" in out


def test_int4_has_no_containers(capsys):
    _, out = run(capsys, "--tile", "128", "256", "--dtype", "int4", "-d", "b200")
    assert "containers" not in out


@pytest.mark.parametrize(
    ("shape", "dtype", "count", "columns"),
    [
        ((128, 256), "float32", 1, 256),
        ((128, 256), "float32", 2, 256 * 2),
        ((64, 256), "float32", 1, 256),  # the upper lanes stay empty
        ((256, 128), "float32", 1, 2 * 128),  # two bands of 128 lanes beside each other
        ((128, 256), "bfloat16", 1, 256 // 2),
        ((128, 8), "float32", 1, 32),  # 32 is the smallest allocation
    ],
)
def test_tensor_memory_is_counted_in_columns(shape, dtype, count, columns):
    """A column is 32 bit in each of 128 lanes; there are 512."""
    tile = footprint(shape, dtype, count, device="b200", memory="tensor")
    assert tile.tensor_columns == columns
    assert tile.charged_bytes == columns * 128 * 4
    assert tile.fits is (columns <= 512)


def test_half_empty_lanes_count():
    """64 x 1024 fp32 has the bytes of all tensor memory's 256 KiB, but needs 1024 columns."""
    tile = footprint((64, 1024), "float32", device="b200", memory="tensor")
    assert tile.total_bytes == 256 * KIB == tile.limit_bytes
    assert tile.fits is False


def test_tour_text(capsys):
    """The tutorial's six cases, and its fragment per thread."""
    code, out = run(capsys)
    assert code == 0
    assert f"{192 * KIB} B (192 KiB)" in out
    tiles = [line.split("  ") for line in out.splitlines() if "  x1  " in line or "  x2  " in line]
    cells = [[c.strip() for c in line if c.strip()] for line in tiles]
    assert [row[1:] for row in cells] == [
        ["(128, 128)", "float16", "x1", "32 KiB", "fits"],
        ["(128, 128)", "float16", "x2", "64 KiB", "fits"],
        ["(128, 128)", "float32", "x1", "64 KiB", "in registers"],
        ["(128, 256)", "float32", "x1", "128 KiB", "fits"],
        ["(128, 256)", "float32", "x2", "256 KiB", "DOES NOT FIT"],
        ["(128, 256)", "float16", "x2", "128 KiB", "fits"],
    ]
    assert "64 KiB fragment / 128 threads = 512 B = 128 fp32 registers per thread" in out
    assert max(map(len, out.splitlines())) <= 80


def test_tour_json(capsys):
    """The tutorial's eleven scopes, with the memory each one is."""
    code, document = run_json(capsys)
    assert code == 0
    scopes = {(r["dialect"], r["function"]): (r["scope"], r["memory"]) for r in document["scopes"]}
    assert scopes == {
        ("tilelang", "alloc_shared"): ("shared.dyn", "shared"),
        ("tilelang.ascend", "alloc_shared"): ("shared.dyn", "ub"),
        ("tilelang", "alloc_fragment"): ("local.fragment", "registers"),
        ("tilelang", "alloc_local"): ("local", "registers"),
        ("tilelang", "alloc_var"): ("local.var", "registers"),
        ("tilelang", "alloc_global"): ("global", "global"),
        ("tilelang", "alloc_tmem"): ("shared.tmem", "tensor"),
        ("tilelang.ascend", "alloc_l1"): ("shared.l1", "l1"),
        ("tilelang.ascend", "alloc_l0a"): ("shared.l0a", "l0a"),
        ("tilelang.ascend", "alloc_l0b"): ("shared.l0b", "l0b"),
        ("tilelang.ascend", "alloc_l0c"): ("shared.l0c", "l0c"),
    }
    assert document["fragment"] == {
        "total_bytes": 128 * 128 * 4,
        "threads": 128,
        "bytes_per_thread": 128 * 128 * 4 // 128,
        "registers_per_thread": 128,
    }
    assert [case["fits"] for case in document["cases"]] == [True, True, None, True, False, True]


def test_tour_against_another_limit(capsys):
    _, document = run_json(capsys, "--capacity", str(64 * KIB - 1))
    assert [case["fits"] for case in document["cases"]] == [True, False, None, False, False, False]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--tile", "0", "256"), "'0'"),
        (("--tile", "-128", "256"), "--tile"),
        (("--tile", "12.5"), "'12.5'"),
        (("--tile", "x"), "'x'"),
        (("--tile",), "--tile"),
        (("--tile", "9" * 5000), "--tile"),
        (("--tile", "8", "8", "8", str(2**62)), "larger than any memory"),
        (("--tile", "8", "--copies", "0"), "'0'"),
        (("--tile", "8", "--copies", str(2**80)), "larger than any memory"),
        (("--tile", "8", "--dtype", "float31"), "float32"),
        (("--tile", "8", "--dtype", "fp8"), "ambiguous"),
        (("--tile", "8", "--capacity", "48K"), "48KiB"),
        (("--tile", "8", "--capacity", "-1"), "-1"),
        (("--tile", "8", "--capacity", "9" * 400), "2**63"),
        (("--tile", "8", "--capacity", "1", "-d", "h100"), "not both"),
        (("--tile", "8", "-d", "h101"), "h100"),
        (("--tile", "8", "-d", "h100,a100"), "2 devices"),
        (("--tile", "8", "-d", "h100", "-d", "a100"), "2 devices"),
        (("--tile", "8", "-d", "h100", "--memory", "ub"), "shared"),
        (("--tile", "8", "-d", "h100", "--memory", "registers"), "plan"),
        (("--tile", "8", "-d", "h100-sm-shared-228kb", "--memory", "ub"), "shared"),
        (("--tile", "8", "-d", "missing.toml"), "missing.toml"),
        (("--tile", "8", "--memory", "ub"), "ub"),
        (("--dtype", "float16"), "--tile"),
        (("--copies", "2"), "--tile"),
        (("--nonsense",), "--nonsense"),
        (("128", "256"), "128"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(capsys, arguments, named):
    code, err = run(capsys, *arguments)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert err.startswith("tilefit: ")
    assert named in err


@pytest.mark.parametrize(
    "arguments",
    [((), "float32"), ((8, 0), "float32"), ((8.5,), "int8"), ((8,), "nope"), ((8,), "int8", 0)],
)
def test_wrong_input_to_the_function(arguments):
    with pytest.raises(tilefit.InputError):
        footprint(*arguments)


def test_results_cannot_be_changed():
    tile = footprint((8, 8), "float16")
    with pytest.raises(AttributeError):
        tile.copies = 2
    with pytest.raises(tilefit.InputError):
        Footprint((8, -8), DTYPES["float16"])
    with pytest.raises(tilefit.InputError):
        limit_of_size(-1)
