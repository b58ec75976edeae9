"""`tilefit explain`: where the text comes from, what is printed, and the exit code."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tilefit.cli import main

PASTED = Path(__file__).parent / "data" / "pasted"
NAMES = sorted(tomllib.loads((PASTED / "expected.toml").read_text(encoding="utf-8")))
MESSAGE = (
    "out of resource: shared memory, Required: 147456, Hardware limit: 101376. "
    "Reducing block sizes or `num_stages` may help."
)


def text_of(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["explain", *arguments]) == code
    return capsys.readouterr().out


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text_of(capsys, *arguments, "--json"))
    return document


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


# ----------------------------------------------------------------------- where the text is from
def test_words_a_log_and_standard_input_say_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(MESSAGE, encoding="utf-8")
    wanted = text_of(capsys, MESSAGE)
    assert "over by   46,080 B = 45 KiB (45 %)" in wanted
    assert text_of(capsys, *MESSAGE.split()) == wanted
    assert text_of(capsys, "--log", str(log)) == wanted
    for arguments in (["-"], []):
        stdin(monkeypatch, MESSAGE.encode())
        assert text_of(capsys, *arguments) == wanted


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_logs_in_other_encodings(
    encoding: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """PowerShell's `>` writes UTF-16."""
    log = tmp_path / "train.log"
    log.write_bytes(f"Fehler: {MESSAGE}".encode(encoding))
    assert "147,456 B" in text_of(capsys, "--log", str(log))


def test_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "core"
    log.write_bytes(bytes(range(256)) * 40 + MESSAGE.encode() + b"\xff\xfe\x80" * 9)
    assert "147,456 B" in text_of(capsys, "--log", str(log))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--log", "/nowhere/train.log"], "'/nowhere/train.log': No such file"),
        (["--log", "/"], "'/': Is a directory"),
        (["words", "--log", "x"], "give a text or --log, not both"),
        ([MESSAGE, "-d", "h101"], "unknown device 'h101'; did you mean h100"),
        ([MESSAGE, "-d", "nvidia"], "name the one it happened on"),
        ([MESSAGE, "--set", "num_stages"], "--set 'num_stages' is not NAME=VALUE"),
        (["nothing at all", "--kernel", "a.py::k"], "name a device for --kernel with -d"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err
    assert captured.err.count("\n") == 1


def test_a_terminal_without_words_is_asked_for_some(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, b"")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["explain"]) == 2
    assert "paste a message" in capsys.readouterr().err


# --------------------------------------------------------------------------------- what is said
def test_nothing_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert text_of(capsys, "it does not work", code=1).startswith("nothing known here\n")
    assert main(["explain", "it does not work", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "schema_version": 1,
        "evidence": "declared",
        "findings": [],
        "more": 0,
    }


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    """The keys of the contract, with numbers that anyone can check."""
    document = json_of(capsys, MESSAGE)
    assert (document["schema_version"], document["evidence"]) == (1, "declared")
    (finding,) = document["findings"]
    assert finding["message"] == MESSAGE.partition(". Reducing")[0]
    assert finding["toolchain"] == "triton"
    assert finding["memory"] == "shared"
    assert finding["required_bytes"] == 144 * 1024
    assert finding["limit_bytes"] == 99 * 1024
    assert finding["over_bytes"] == (144 - 99) * 1024
    assert {"sm_86", "sm_89", "sm_120", "sm_121", "rtx-4090", "gb10"} <= set(finding["devices"])
    assert not {"sm_80", "sm_90", "h100"} & set(finding["devices"])
    assert all(isinstance(sentence, str) for sentence in finding["advice"])


def test_bits_are_converted_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text_of(capsys, "ub overflow, requires 3072000 bits while 1572864 bits available!")
    assert "needs     384,000 B = 375 KiB, from 3,072,000 bits" in shown
    assert "the message counts bits: 3,072,000 / 8 = 384,000 B" in shown
    assert "over by   187,392 B = 183 KiB (95 %)" in shown  # 187392 / 196608


def test_a_size_of_a_whole_sm_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    """102,400 B is an SM's of sm_86; a block may use 101,376 B of it."""
    shown = text_of(
        capsys, "out of resource: shared memory, Required: 163840, Hardware limit: 102400."
    )
    assert "what a whole SM has; one block may use 101,376 B: sm_86" in shown


def test_the_48_kib_default_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text_of(capsys, "Shared memory size limit exceeded: requested 65536, available: 49152")
    assert "what one block may use without the opt-in to more: sm_70" in shown


def test_a_limit_that_nobody_has_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text_of(
        capsys, "out of resource: shared memory, Required: 163840, Hardware limit: 100000."
    )
    assert "no device in tilefit's tables has a limit of 100,000 B there" in shown
    assert "it is 1,376 B below the" in " ".join(shown.split())


def test_a_simt_kernels_ub_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text_of(
        capsys, 'scope "shared" capacity 221184 is insufficient for minimum buffer usage 294912'
    )
    assert "what is left if the kernel has SIMT parts" in " ".join(shown.split())


def test_a_named_device_supplies_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    message = "Failed to set the allowed dynamic shared memory size to 196608"
    (finding,) = json_of(capsys, message, "-d", "rtx-4090")["findings"]
    assert (finding["limit_bytes"], finding["over_bytes"]) == (101376, 196608 - 101376)
    assert finding["limit_from"] == "rtx-4090"
    (finding,) = json_of(capsys, message, "-d", "h100")["findings"]
    assert (finding["limit_bytes"], finding["over_bytes"]) == (232448, None)
    assert any("within the limit of h100, 35,840 spare" in note for note in finding["notes"])


def test_static_bytes_are_not_held_against_dynamic_limits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """80,000 B of static data are refused on an A100, though a block may use 166,912 B."""
    message = "Entry function 'f' uses too much shared data (0x13880 bytes"
    for arguments in ([message], [message, "-d", "a100"]):
        (finding,) = json_of(capsys, *arguments)["findings"]
        assert (finding["required_bytes"], finding["limit_bytes"]) == (0x13880, None)
        assert finding["fits_on"] == []


def test_without_a_limit_every_limit_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    message = "Failed to set the allowed dynamic shared memory size to 196608"
    (finding,) = json_of(capsys, message)["findings"]
    assert finding["limit_bytes"] is None
    assert {row["limit_bytes"]: row["fits"] for row in finding["fits_on"]} == {
        232448: True,
        166912: False,
        101376: False,
        98304: False,
        65536: False,
    }


def test_another_device_than_the_messages_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(text_of(capsys, MESSAGE, "-d", "h100").split())
    assert "on h100 the limit is 232,448 bytes: fits, 84,992 spare" in shown


def test_causes_name_the_command_that_decides(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text_of(capsys, "RuntimeError: CUDA error: invalid argument", "-d", "rtx-4090")
    assert "likely    1. dynamic shared memory above what a block may use" in shown
    assert shown.count("tilefit plan FILE::KERNEL -d rtx-4090") == 1  # it decides four of them


def test_many_messages_are_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"out of resource: shared memory, Required: {n}, Hardware limit: 101376."
        for n in range(110_000, 110_250)
    ]
    text = "\n".join(lines)
    assert "and 240 other messages" in text_of(capsys, text)
    document = json_of(capsys, text)
    assert (len(document["findings"]), document["more"]) == (100, 150)


@pytest.mark.parametrize("name", NAMES)
def test_the_text_fits_a_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At most 80 columns, but for commands and names that must not be broken."""
    main(["explain", "--log", str(PASTED / f"{name}.txt")])
    for line in capsys.readouterr().out.splitlines():
        assert len(line) <= 80 or "tilefit " in line or " " not in line.strip()
        assert line.isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_is_printed_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "--log", str(PASTED / f"{name}.txt"), "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    commands = [finding["command"] for finding in findings]
    commands += [cause["command"] for finding in findings for cause in finding["causes"]]
    for command in filter(None, commands):
        first, *words = shlex.split(command)
        assert first == "tilefit"
        if "FILE::KERNEL" in words:
            assert words[0] == "plan"
            words[words.index("FILE::KERNEL")] = "/nowhere/a.py::k"
            assert main(words) == 2
            assert "/nowhere/a.py" in capsys.readouterr().err
        else:
            assert main(words) in (0, 1)
            assert capsys.readouterr().err == ""


def test_what_does_not_fit_ends_with_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    last = text_of(capsys, MESSAGE).splitlines()[-1]
    assert last.startswith("next      tilefit ")


# -------------------------------------------------------------------------------------- weight
def test_explain_needs_no_toolchain_and_loads_none() -> None:
    code = (
        "import sys\nfrom tilefit.cli import main\n"
        f"assert main(['explain', {MESSAGE!r}, '--set', 'num_stages=3']) == 0\n"
        "heavy = {'numpy', 'rich', 'tilelang', 'torch', 'psutil', 'triton'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.tilelang
def test_with_a_kernel_the_plan_follows(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    """The bundled GEMM at eight stages: 262,144 B dynamic, and a KiB of static on top."""
    dynamic = 8 * (128 * 64 + 64 * 128) * 2
    message = f"Failed to set the allowed dynamic shared memory size to {dynamic}"
    kernel = f"{root}/examples/gemm.py::matmul"
    shown = text_of(capsys, message, "-d", "h100", "--kernel", kernel, "--set", "num_stages=8")
    assert shown.startswith("TileLang: shared memory does not fit")
    assert f"DOES NOT FIT   shared {dynamic + 1024:,} B, limit 232,448 B" in shown
    assert "Tried, each lowered again" in shown


@pytest.mark.tilelang
def test_with_a_kernel_the_document_has_the_plan(
    capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    """The device is the message's own: 232,448 B leads to an H100 first."""
    message = "out of resource: shared memory, Required: 262144, Hardware limit: 232448."
    document = json_of(capsys, message, "--kernel", f"{root}/examples/gemm.py::matmul")
    assert document["plan"]["results"][0]["verdict"] == "fits"
    assert document["plan"]["results"][0]["device"] == "h100"
