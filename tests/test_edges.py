"""What surrounds the answer: closed streams, odd widths, names that would steer a terminal."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_source_frontend import factory
from tilefit import cli
from tilefit._render.visible import cell, markdown, visible
from tilefit.cli import main


def run(*words: str, shell_ends: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = 'exec "$0" -m tilefit "$@" ' + shell_ends
    return subprocess.run(
        ["bash", "-c", command, sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_closed_standard_output_is_one_line_and_2() -> None:
    done = run("devices", shell_ends=">&-")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "standard output is closed" in done.stderr


def test_a_closed_standard_error_changes_no_exit_code() -> None:
    assert run("devices", "nope", shell_ends="2>&-").returncode == 2
    assert run("devices", "h100", shell_ends="2>&-").returncode == 0


@pytest.mark.parametrize("columns", ["0", "1", "-3", "x", "9" * 50])
def test_a_width_that_holds_nothing_is_no_width(columns: str) -> None:
    done = run("plan", "--help", COLUMNS=columns)
    assert done.returncode == 0
    assert "--set" in done.stdout


def test_a_fault_of_our_own_is_one_line_that_says_how_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Any) -> int:
        raise ZeroDivisionError("by\nnothing")

    monkeypatch.setattr(cli, "_dispatch", broken)
    monkeypatch.delenv("TILEFIT_TRACEBACK", raising=False)
    assert main(["devices"]) == 2  # never 1, which means that something does not fit
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "ZeroDivisionError: by" in line
    assert "TILEFIT_TRACEBACK=1" in line
    monkeypatch.setenv("TILEFIT_TRACEBACK", "1")
    assert main(["devices"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ['base="rtx-4090"\ncores={SM=' + "9" * 5000 + "}", "a=" + "[" * 5000 + "]" * 5000],
    ids=["digits", "nested"],
)
def test_a_toml_that_no_parser_takes_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert main(["devices", str(path)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "mine.toml" in line
    assert "fault of tilefit" not in line


LONG = "0x" + "f" * 5000
PASTED = "Entry function 'k' uses too much shared data (0x20000 bytes, 0xc000 max)"


@pytest.mark.parametrize(
    "words",
    [
        ("occupancy", "-d", "sm_120", "--threads", LONG),
        ("occupancy", "-d", "b200", "--threads", "2", "--role", f"4:{LONG}"),
        ("footprint", "--tile", LONG, "4", "--dtype", "float32", "--json"),
        ("explain", PASTED, "--set", f"BLOCK_N={LONG}", "--json"),
    ],
    ids=lambda words: words[0],
)
def test_a_number_of_too_many_digits_is_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert main(list(words)) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "fault of tilefit" not in line


KERNEL = "import tilelang\nimport tilelang.language as T\n" + factory("", "(64, 64)")
NAMES = ("\x1b[31mred\x1b[0m.py", "cr\rx.py", "=cmd()|x.py", "bad\udcff.py", "<b>&.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("form", ["text", "csv", "md", "json"])
def test_no_name_steers_what_shows_it(
    folder: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    words = ["plan", str(folder), "-d", "h100", "--estimate", "--format", form]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert all(c == "\n" or c.isprintable() for c in out)
    assert "red" in out
    if form == "csv":
        rows = list(csv.reader(out.splitlines()))
        assert len({len(row) for row in rows}) == 1
        assert not any(c.startswith(("=", "+", "-", "@")) for row in rows for c in row)
    if form == "md":
        assert "<b>" not in out
        assert "&lt;b&gt;&amp;" in out
    target = folder / f"answer.{form}"
    assert main([*words, "-o", str(target)]) == 0
    written = target.read_text(encoding="utf-8")
    assert all(c == "\n" or c.isprintable() for c in written)
    assert "red" in written


def test_a_complaint_about_a_name_does_not_steer_either(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "\x1b[31mno.py", "-d", "h100"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_what_is_replaced_is_replaced_one_for_one() -> None:
    text = "a\x1b[0m\tb\nc\x7f\udc80"
    assert len(visible(text)) == len(text)
    assert visible("plain ü 字 \t\n") == "plain ü 字 \t\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-32768, -32768), (None, None), ("-1", "'-1"), ("@x", "'@x"), ("a-b", "a-b"), ("=1", "'=1")],
)
def test_text_is_no_formula_and_numbers_are_numbers(value: object, shown: object) -> None:
    assert cell(value) == shown


def test_markdown_holds_no_markup() -> None:
    assert markdown("<img src=x>|&\n") == "&lt;img src=x&gt;\\|&amp; "
