"""``tilefit occupancy``: text at 80 columns, JSON, commands to paste and one-line errors."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from tilefit.cli import main

CALL = ("-d", "h100", "--threads", "256", "--regs", "128", "--smem", "99328")
CASES = (
    CALL,
    ("-d", "h100", "--threads", "256", "--smem", "97KiB"),
    ("-d", "h100", "--threads", "1152", "--regs", "300", "--smem", "240000"),
    ("-d", "h100", "--threads", "128", "--regs", "16", "--smem", "30000", "--carveout", "50"),
    ("-d", "h100", "--threads", "128", "--regs", "16", "--carveout", "0"),
    ("-d", "h100", "--threads", "128", "--regs", "16", "--smem", "60000", "--no-optin"),
    ("-d", "h100", "--threads", "64", "--smem", "300", "--static", "200", "--max-dynamic", "3"),
    ("-d", "h100", "--threads", "256", "--regs", "240", "--role", "128:24", "--role", "128:240"),
    ("-d", "h100", "--threads", "128", "--regs", "40", "--role", "128:256"),
    ("-d", "h100", "--threads", "128", "--barriers", "9", "--cluster", "16"),
    ("-d", "b200", "--threads", "128", "--regs", "60", "--tmem", "544", "--cluster", "17"),
    ("-d", "rtx-5090", "--threads", "32", "--tmem", "32"),
    ("-d", "a100", "--threads", "128", "--cluster", "2"),
    ("-d", "mi300x", "--threads", "256", "--regs", "100", "--smem", "20000"),
    ("-d", "rx-7900-xtx", "--threads", "256", "--regs", "100", "--smem", "66000", "--wave", "64"),
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the command; return the exit code and what it printed."""
    code = main(["occupancy", *arguments])
    captured = capsys.readouterr()
    return code, captured.out if code != 2 else captured.err


def test_the_screen(capsys):
    code, out = run(capsys, *CALL)
    assert code == 0
    assert out.splitlines() == [
        "NVIDIA H100 SXM5 80GB   sm_90",
        "2 blocks per SM, held by registers and shared",
        "16 of 64 warps active, 25 %",
        "",
        "limit      blocks  one block takes",
        "registers       2  32,768 of 65,536: 8 warps x 4,096",
        "shared          2  100,352 of 233,472 B: 99,328 + 1,024 reserved",
        "warps           8  8 of 64 warps",
        "blocks         32",
        "barriers       64  1 of 64",
        "",
        "3 blocks need all of this",
        "  registers  at most 80 per thread  now 128",
        "  shared     at most 76,800 B       now 99,328 B",
        "  tilefit occupancy -d h100 --threads 256 --regs 80 --smem 76800",
        "",
        "- exact for a carveout of 233,472 B, which is a hint to the driver",
    ]


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_at_most_80_columns_and_a_command_that_does_what_it_says(arguments, capsys):
    """The command runs, fits, and has as many blocks as the line above it promised."""
    code, out = run(capsys, *arguments)
    assert max(map(len, out.splitlines())) <= 80
    assert code == (1 if "DOES NOT FIT" in out else 0)
    command = out.partition("  tilefit occupancy ")[2].partition("\n\n")[0]
    if not command:
        assert "No more: " in out
        return
    words = shlex.split(command.replace("\\\n", " "))
    code, text = run(capsys, *words, "--json")
    assert code == 0
    promised = [line for line in out.splitlines() if " need" in line and "block" in line]
    if promised:
        document = json.loads(text)
        assert document["blocks_per_core"] == int(promised[0].split()[0])


def test_json_has_the_keys_of_the_contract(capsys):
    code, out = run(capsys, *CALL, "--json")
    document = json.loads(out)
    expected = {
        "schema_version": 1,
        "evidence": "declared",
        "blocks_per_core": 2,
        "limiters": ["registers", "shared"],
        "allocated_registers_per_block": 256 * 128,
        "allocated_shared_bytes_per_block": 99328 + 1024,
    }
    assert code == 0
    assert {key: document[key] for key in expected} == expected
    assert [(c["resource"], c["at_most"], c["blocks_per_core"]) for c in document["next"]] == [
        ("registers", 80, 3),
        ("shared", 76800, 3),
    ]
    assert document["upper_bound"] is False
    assert document["active_clusters"] is None


def test_unknown_registers_in_words_and_in_json(capsys):
    arguments = ("-d", "h100", "--threads", "256", "--smem", "99328")
    code, out = run(capsys, *arguments)
    assert code == 0
    assert "at most 2 blocks per SM (registers unknown), held by shared" in out
    assert "unknown: 2 blocks if a thread has at most 128 (--regs N)" in out
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert document["upper_bound"] is True
    assert document["registers"] is None
    assert document["allocated_registers_per_block"] is None


def test_smem_is_static_and_dynamic_together(capsys):
    document = json.loads(
        run(
            capsys, "-d", "h100", "--threads", "32", "--smem", "3000", "--static", "1000", "--json"
        )[1]
    )
    assert (document["static_bytes"], document["dynamic_bytes"]) == (1000, 2000)


def test_what_does_not_fit_says_every_reason(capsys):
    code, out = run(capsys, *CASES[2])
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("DOES NOT FIT")] == [
        "DOES NOT FIT   threads 1,152, limit 1,024: over by 128",
        "DOES NOT FIT   registers 300 per thread, limit 255",
        "DOES NOT FIT   shared 240,000 B, limit 232,448 B: over by 7,552 B",
    ]


def _written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_device_file_of_ones_own(capsys, tmp_path, root):
    own = tmp_path / "my gpu.toml"
    text = (root / "src/tilefit/data/devices/sm_90.toml").read_text(encoding="utf-8")
    text = text.partition("[products.")[0]
    # its names are taken, as they are tilefit's own
    assert run(capsys, "-d", str(_written(own, text)), *CALL[2:])[0] == 2
    text = re.sub(r'(?m)^(name = "sm_90"|aliases = .*)$', "", text)
    code, out = run(capsys, "-d", str(_written(own, text)), *CALL[2:])
    assert code == 0
    assert "2 blocks per SM, held by registers and shared" in out
    assert shlex.quote(str(own)) in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--threads", "3"), "name a device with -d: h100"),
        (("-d", "h100"), "required: --threads"),
        (("-d", "h101", "--threads", "3"), "h100"),
        (("-d", "h100,a100", "--threads", "3"), "names 2 devices"),
        (("-d", "h100", "-d", "a100", "--threads", "3"), "names 2 devices"),
        (("-d", "ascend-910b1", "--threads", "1"), "one block at a time"),
        (("-d", "h100-sm-shared-228kb", "--threads", "1"), "is a capacity, not a device"),
        (("-d", "h100", "--threads", "0"), "'0'"),
        (("-d", "h100", "--threads", "1.5"), "'1.5'"),
        (("-d", "h100", "--threads", "3", "--regs", "-1"), "'-1'"),
        (("-d", "h100", "--threads", "3", "--regs", "x"), "'x'"),
        (("-d", "h100", "--threads", "3", "--smem", "48K"), "ambiguous"),
        (("-d", "h100", "--threads", "3", "--smem", "4", "--static", "5"), "--static 5"),
        (("-d", "h100", "--threads", "3", "--carveout", "101"), "carveout 101"),
        (("-d", "h100", "--threads", "3", "--role", "128"), "THREADS:REGS, as in 128:240"),
        (("-d", "h100", "--threads", "3", "--role", "a:b"), "'a:b'"),
        (("-d", "h100", "--threads", "3", "--role", "2:25"), "multiples of 8"),
        (("-d", "h100", "--threads", "3", "--no-optin", "--max-dynamic", "1"), "optin"),
        (("-d", "b200", "--threads", "3", "--tmem", "33"), "so this is 64"),
        (("-d", "mi300x", "--threads", "3", "--cluster", "2"), "mi300x has no clusters"),
        (("-d", "no.toml", "--threads", "3"), "no.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_errors_are_one_line_that_names_the_value(arguments, named, capsys):
    code, err = run(capsys, *arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("tilefit: ")
    assert named in err


def test_it_starts_without_numpy_and_rich():
    code = (
        "import sys\nfrom tilefit.cli import main\n"
        f"assert main(['occupancy', *{CALL!r}]) == 0\n"
        "assert not {'numpy', 'rich', 'tilelang', 'torch', 'psutil'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
