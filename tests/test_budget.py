"""The multi-buffered GEMM: the tutorial's table, exact limits, and every wrong input."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilefit
from tilefit._tiles.gemm import budget, max_stages
from tilefit.cli import main

KIB = 1024
H100_BLOCK = 227 * KIB
H100_SM = 228 * KIB

blocks = st.integers(1, 300)
dtypes = st.sampled_from(["int4", "float8_e4m3fn", "float16", "float32", "float6_e2m3fn", "uint1"])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run ``tilefit budget``; return the exit code and what it printed."""
    code = main(["budget", *arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out if code != 2 else captured.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    code, out = run(capsys, *arguments, "--json")
    return code, json.loads(out)


TUTORIAL = ("--bm", "256", "--bn", "256", "--bk", "64", "--stages", "2", "3", "4")


def test_tutorial_table_in_text(capsys):
    """256 x 256 x 64 fp16 against the 228 KiB of an H100 SM."""
    code, out = run(capsys, *TUTORIAL, "-d", "h100-sm-shared-228kb")
    stage = (256 * 64 + 64 * 256) * 2
    assert stage == 65536
    assert code == 0
    assert f"= {stage} B" in out
    assert f"budget: {H100_SM} B (228 KiB)" in out
    assert "largest stage count that fits: 3 " in out
    rows = [line.split() for line in out.splitlines() if "%" in line]
    assert [row[:7] for row in rows] == [
        ["2", str(2 * stage), "B", "128.0", "56", "%", "fits"],
        ["3", str(3 * stage), "B", "192.0", "84", "%", "fits"],
        ["4", str(4 * stage), "B", "256.0", "112", "%", "DOES"],
    ]
    assert f"over by {4 * stage - H100_SM} B" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_keys_of_the_contract(capsys):
    def row(stages, *, fits):
        total = stages * 65536
        margin = H100_SM - total
        return {"num_stages": stages, "total_bytes": total, "margin_bytes": margin, "fits": fits}

    code, document = run_json(capsys, *TUTORIAL, "-d", "h100-sm-shared-228kb")
    expected = {
        "schema_version": 1,
        "evidence": "declared",
        "stage_bytes": 65536,
        "limit_bytes": H100_SM,
        "rows": [
            row(2, fits=True),
            row(3, fits=True),
            row(4, fits=False),
        ],
        "max_stages": 3,
    }
    assert {key: document[key] for key in expected} == expected
    assert code == 0


def test_defaults_are_the_tutorials_but_for_the_device(capsys):
    """128 x 128 x 32 fp16, stages 1 to 6, and one block of an H100, not one SM."""
    code, document = run_json(capsys)
    stage = (128 * 32 + 32 * 128) * 2
    assert code == 0
    assert document["stage_bytes"] == stage
    assert document["limit_bytes"] == H100_BLOCK
    assert [row["num_stages"] for row in document["rows"]] == [1, 2, 3, 4, 5, 6]
    assert document["max_stages"] == H100_BLOCK // stage
    _, out = run(capsys)
    assert "not 228 KiB: 233472 B is the whole SM" in out
    assert "1024 B" in out
    assert "it is not in the table" in out


def test_it_says_what_it_is_worth(capsys):
    """An estimate, with the command that gives the compiled answer."""
    _, out = run(capsys, "-d", "rtx-4090")
    assert "estimate, not a bound" in out
    assert "tilefit plan FILE.py::KERNEL -d rtx-4090" in out
    _, out = run(capsys, "-d", "ascend-910b1")
    assert "-d ascend-910b1" not in out  # TileLang compiles for Ascend 950 only


def test_a_small_budget(capsys):
    """The tutorial's 32678 B hold one stage of 16384 B, and neither 2 nor 3."""
    code, out = run(capsys, "--capacity", "32678", "--stages", "2", "3")
    assert code == 1
    assert "largest stage count that fits: 1 " in out
    program, command, *arguments = out.splitlines()[-1].split()
    assert (program, command) == ("tilefit", "budget")
    assert run(capsys, *arguments)[0] == 0


def test_a_command_that_fits_even_where_no_stage_does(capsys):
    arguments = ("--capacity", "100", "--dtype-a", "fp16", "--dtype-b", "int4", "--reserve", "9")
    code, out = run(capsys, *arguments)
    assert code == 1
    assert "not even one stage does" in out
    command = out.splitlines()[-1].split()
    assert "int4" in command
    assert "9" in command
    assert run(capsys, *command[2:])[0] == 0


def test_a_reserve_above_the_limit_leaves_nothing(capsys):
    code, document = run_json(capsys, "--capacity", "1000", "--reserve", "1001")
    assert (code, document["max_stages"]) == (1, 0)
    assert "No tile fits at all" in run(capsys, "--capacity", "1000", "--reserve", "1001")[1]


def test_two_dtypes_and_a_reserve(capsys):
    """A in 2 bytes an element, B in half a byte, 1 KiB kept."""
    _, document = run_json(
        capsys,
        *("--dtype-a", "fp16", "--dtype-b", "int4", "--reserve", "1KiB", "--capacity", "40000"),
    )
    stage = 128 * 32 * 2 + 32 * 128 // 2
    assert document["stage_bytes"] == stage
    assert [row["total_bytes"] for row in document["rows"]] == [
        1024 + n * stage for n in range(1, 7)
    ]
    assert document["max_stages"] == (40000 - 1024) // stage


def test_sweep(capsys):
    """256 x 256 with BK 64 allows 3 stages on 228 KiB, as in the tutorial."""
    code, document = run_json(capsys, "--sweep", "-d", "h100-sm-shared-228kb")
    rows = {(r["block_m"], r["block_n"], r["block_k"]): r["max_stages"] for r in document["sweep"]}
    assert code == 0
    assert rows[256, 256, 64] == 3
    assert rows == {(m, n, k): H100_SM // (2 * k * (m + n)) for m, n, k in rows}
    _, out = run(capsys, "--sweep", "-d", "h100-sm-shared-228kb")
    head = next(line.split() for line in out.splitlines() if line.startswith("block_m x"))
    row = next(line.split() for line in out.splitlines() if line.strip().startswith("256 x 256"))
    assert head[3:] == ["BK", "16", "BK", "32", "BK", "64", "BK", "128"]
    assert row[3:] == [str(H100_SM // (2 * k * 512)) for k in (16, 32, 64, 128)]


def test_csv(capsys):
    code, out = run(capsys, *TUTORIAL, "-d", "h100-sm-shared-228kb", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(r["num_stages"], r["total_bytes"], r["fits"]) for r in rows] == [
        ("2", str(2 * 65536), "true"),
        ("3", str(3 * 65536), "true"),
        ("4", str(4 * 65536), "false"),
    ]
    assert {r["limit_bytes"] for r in rows} == {str(H100_SM)}
    _, out = run(capsys, "--sweep", "--csv")
    sweep = list(csv.DictReader(io.StringIO(out)))
    assert all(
        int(r["max_stages"])
        == H100_BLOCK // (2 * int(r["block_k"]) * (int(r["block_m"]) + int(r["block_n"])))
        for r in sweep
    )
    assert len(sweep) > 6


def test_exit_code_is_1_in_every_format_when_no_listed_count_fits(capsys):
    for form in ((), ("--json",), ("--csv",), ("--sweep",), ("--sweep", "--csv")):
        assert run(capsys, *TUTORIAL, "--capacity", "131071", *form)[0] == 1
        assert run(capsys, *TUTORIAL, "--capacity", "131072", *form)[0] == 0


def test_ascend_stages_its_operands_in_l1(capsys):
    """A2: 512 KiB of L1 on the chip, 256 B less for a kernel; UB if asked for."""
    assert budget(device="ascend-910b1").limit_bytes == 512 * KIB - 256
    assert budget(device="ascend-910b1", memory="l1").limit_bytes == 512 * KIB - 256
    assert budget(device="ascend-910b1", memory="ub").limit_bytes == 192 * KIB - 256
    _, out = run(capsys, "-d", "ascend-910b1")
    assert "l1 memory of ascend-910b1, per AIC" in out


def test_containers_only_where_tcgen05_mixes_small_floats():
    """fp6 beside fp8 is read from containers; beside fp16 it is converted first, and packed."""
    packed, container, wide = 128 * 32 * 6 // 8, 128 * 32, 128 * 32 * 2
    fp6 = "float6_e2m3fn"

    def stage(device: str, dtype_b: str) -> int:
        return budget(device=device, dtype_a=fp6, dtype_b=dtype_b).stage_bytes

    assert stage("b200", "float8_e4m3fn") == container + 32 * 128
    assert stage("b200", fp6) == 2 * container
    assert stage("b200", "float16") == packed + wide
    assert stage("b200", "int8") == packed + 32 * 128
    assert stage("h100", fp6) == 2 * packed
    both = budget(device="b200", dtype=fp6)
    assert (both.charged_as, both.packed_stage_bytes) == ("containers", 2 * packed)


@given(blocks, blocks, blocks, dtypes, dtypes, st.integers(0, 5000), st.integers(0, 300000))
def test_max_stages_is_the_largest_that_fits(m, n, k, dtype_a, dtype_b, reserve, capacity):
    """It fits, one more does not, and it does not depend on the counts asked about."""
    options = {
        "dtype_a": dtype_a,
        "dtype_b": dtype_b,
        "reserve_bytes": reserve,
        "capacity_bytes": capacity,
    }
    largest = max_stages(m, n, k, **options)
    asked = budget(m, n, k, (largest + 1, max(1, largest)), **options)
    above, at = asked.rows
    assert asked.max_stages == largest
    assert not above.fits
    assert at.fits is (largest > 0)


@given(blocks, blocks, blocks, dtypes, st.integers(1, 9), st.integers(0, 5000))
def test_the_verdict_flips_exactly_at_the_limit(m, n, k, dtype, stages, reserve):
    options = {"dtype": dtype, "reserve_bytes": reserve}
    (row,) = budget(m, n, k, [stages], capacity_bytes=0, **options).rows
    total = row.total_bytes
    a, b = tilefit.footprint((m, k), dtype), tilefit.footprint((k, n), dtype)
    assert total == reserve + stages * (a.total_bytes + b.total_bytes)
    assert budget(m, n, k, [stages], capacity_bytes=total, **options).rows[0].fits is True
    assert budget(m, n, k, [stages], capacity_bytes=total - 1, **options).rows[0].fits is False


@given(blocks, blocks, blocks, dtypes, st.integers(0, 5000), st.integers(0, 300000))
def test_the_smaller_budget_fits(m, n, k, dtype, reserve, capacity):
    options = {"dtype": dtype, "reserve_bytes": reserve, "capacity_bytes": capacity}
    smaller = budget(m, n, k, **options).smaller()
    if smaller is None:
        assert max_stages(1, 1, 1, **options) == 0
    else:
        assert smaller.fits
        assert smaller.block_m <= m
        assert smaller.block_n <= n
        assert smaller.block_k <= k


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--bm", "0"), "'0'"),
        (("--bn", "-1"), "--bn"),
        (("--bk", "1.5"), "'1.5'"),
        (("--bk", "x"), "'x'"),
        (("--stages", "0"), "'0'"),
        (("--stages", "2", "-3"), "--stages"),
        (("--stages",), "--stages"),
        (("--stages", "2.0"), "'2.0'"),
        (("--stages", "9" * 30), "larger than any memory"),
        (("--dtype", "float17"), "float16"),
        (("--dtype-b", "fp8"), "ambiguous"),
        (("--reserve", "48KB"), "48KiB"),
        (("--reserve", "-1"), "-1"),
        (("--capacity", "ten"), "ten"),
        (("--capacity", "1", "-d", "h100"), "not both"),
        (("--capacity", "1", "--memory", "l1"), "l1"),
        (("-d", "h10"), "h100"),
        (("-d", "h100", "--memory", "l1"), "shared"),
        (("-d", "nvidia"), "devices"),
        (("--json", "--csv"), "--csv"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(capsys, arguments, named):
    code, err = run(capsys, *arguments)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert err.startswith("tilefit: ")
    assert named in err


@pytest.mark.parametrize(
    "options",
    [
        {"block_m": 0},
        {"block_k": 1.5},
        {"stages": ()},
        {"stages": (0,)},
        {"reserve_bytes": -1},
        {"capacity_bytes": -1},
        {"dtype": "nope"},
        {"device": "nope"},
    ],
)
def test_wrong_input_to_the_function(options):
    with pytest.raises(tilefit.InputError):
        budget(**options)
