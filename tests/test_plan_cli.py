"""`tilefit plan` refuses bad input in one line, exits with 2, and needs no toolchain for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilefit
from tests.stand_in import StandIn, use
from tilefit._errors import InterpreterError
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import Listing
from tilefit._kernel.naming import split_source
from tilefit._kernel.request import Request
from tilefit._planning.shapes import parse_value
from tilefit._reading import opener as _reading
from tilefit.cli import main

KERNEL = "def matmul():\n    return None\n"
Error = Callable[..., str]


@pytest.fixture
def error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Error:
    """Run ``tilefit plan`` on bad input in a folder with ``gemm.py``; return what it says."""
    (tmp_path / "gemm.py").write_text(KERNEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        code = main(["plan", *arguments])
        captured = capsys.readouterr()
        assert code == 2
        assert captured.out == ""
        line: str = captured.err
        assert line.startswith("tilefit: ")
        assert line.endswith("\n")
        assert line.count("\n") == 1
        assert "Traceback" not in line
        return line

    return run


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no child process start: what is tested here is refused before user code runs."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a child process was started")

    monkeypatch.setattr(_reading, "Child", started)


# ---- the file -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_child")
class TestRefusedBeforeAnythingRuns:
    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("missing.py", "no such file: missing.py"),
            ("missing.py::matmul", "no such file: missing.py"),
            ("folder", "folder: no Python file in this folder"),
            ("folder::matmul", "folder is a folder: name one file, as in folder/FILE.py"),
            ("folder/::matmul", "as in folder/FILE.py"),
            ("notes.txt", "notes.txt is no Python file: its name does not end in .py"),
            ("pipe.py", "pipe.py is no regular file"),
            ("gemm.py/matmul", "cannot read gemm.py/matmul: Not a directory"),
            ("", "names no file"),
            ("::matmul", "names no file"),
            ("x" * 5000, "File name too long"),
        ],
    )
    def test_a_file_that_cannot_be_read(self, error: Error, source: str, said: str) -> None:
        Path("folder").mkdir()
        Path("notes.txt").write_text("words\n", encoding="utf-8")
        os.mkfifo("pipe.py")
        assert said in error(source, "-d", "h100")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (b"a = 1\nb = (\nc = 3\n", "bad.py:2: syntax error: '(' was never closed"),
            (b"x = 1\n  y = 2\n", "bad.py:2: syntax error: unexpected indent"),
            (b"x = '\xff'\n", "bad.py:1: syntax error"),
            (b"x = 1\0\n", "null bytes"),
            (b"# coding: klingon\n", "klingon"),
            (b"-" * 200_000 + b"1", "bad.py"),
        ],
    )
    def test_a_file_that_is_no_python(self, error: Error, text: bytes, said: str) -> None:
        Path("bad.py").write_bytes(text)
        assert said in error("bad.py", "-d", "h100")

    def test_listing_a_missing_file(self, error: Error) -> None:
        assert "no such file: missing.py" in error("missing.py", "--list")

    # ---- the device -----------------------------------------------------------------------------

    def test_no_device_names_five(self, error: Error) -> None:
        line = error("gemm.py")
        assert "-d" in line
        for name in ("h100", "a100", "rtx-4090", "b200", "rtx-5090"):
            assert name in line

    @pytest.mark.parametrize(
        ("name", "near"),
        [("h10O", "h100"), ("rtx4900", "rtx-4090"), ("a1000", "a100"), ("sm_81", "sm_8")],
    )
    def test_an_unknown_device_names_its_neighbours(
        self, error: Error, name: str, near: str
    ) -> None:
        line = error("gemm.py", "-d", name)
        assert f"unknown device {name!r}" in line
        assert "did you mean" in line
        assert near in line

    def test_one_unknown_device_among_others(self, error: Error) -> None:
        assert "'h10O'" in error("gemm.py", "-d", "a100,h10O", "-d", "h100")

    def test_a_capacity_is_no_device(self, error: Error) -> None:
        """228 KiB is what a whole SM has; one block may use 227 KiB = 232,448 B."""
        line = error("gemm.py", "-d", "h100-sm-shared-228kb")
        assert "is a capacity, not a device" in line
        assert "SM" in line
        assert "232448" in line

    @pytest.mark.parametrize(
        ("spec", "name", "vendor"),
        [
            ("apple", "apple-gpu", "apple"),
            ("tpu-v5e,apple", "tpu-v5e", "tpu"),
        ],
    )
    def test_a_device_that_plan_has_no_compiler_for(
        self, error: Error, spec: str, name: str, vendor: str
    ) -> None:
        line = error("gemm.py", "-d", spec)
        assert f"{name}: plan reads" in line
        assert f"not for {vendor} yet" in line
        assert "NVIDIA" in line
        assert "tilefit budget" in line

    @pytest.mark.parametrize("spec", ["", "h100,,a100", "h100,"])
    def test_an_empty_device_name(self, error: Error, spec: str) -> None:
        assert "empty name" in error("gemm.py", "-d", spec)

    def test_a_device_file_that_is_missing(self, error: Error) -> None:
        assert "mine.toml" in error("gemm.py", "-d", "mine.toml")

    # ---- the other arguments --------------------------------------------------------------------

    @pytest.mark.parametrize("text", ["num_stages", "=3", "3=4", "block-M=128", "a b=1", ""])
    def test_a_setting_that_is_none(self, error: Error, text: str) -> None:
        line = error("gemm.py", "-d", "h100", f"--set={text}")
        assert f"--set {text!r} is not NAME=VALUE" in line

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--timeout", "0"], "'0' is not a whole number from 1"),
            (["--timeout", "soon"], "'soon' is not a whole number from 1"),
            (["--memory-limit", "48K"], "48000"),
            (["--memory-limit", "much"], "'much' is not a size"),
            (["--fail-on", "some"], "'some'"),
            (["--sett", "a=1"], "--sett"),
            (["-d"], "expected one argument"),
            (["another.py"], "another.py"),
        ],
    )
    def test_an_argument_that_is_none(self, error: Error, arguments: list[str], said: str) -> None:
        assert said in error("gemm.py", "-d", "h100", *arguments)

    def test_no_file_at_all(self, error: Error) -> None:
        assert "FILE[::KERNEL]" in error("-d", "h100")


def test_what_python_warns_about_is_no_error(tmp_path: Path) -> None:
    """As in a docstring with a backslash; Python 3.12 warns when such a file is parsed."""
    file = tmp_path / "escape.py"
    file.write_text('x = "\\d"\n', encoding="utf-8")
    assert split_source(f"{file}::matmul") == (file, "matmul")


# ---- what --set means ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0x80", 128),
        ("1.5", 1.5),
        ("True", True),
        ("None", None),
        ("inf", float("inf")),
        ("-inf", float("-inf")),
        ("1e999", float("inf")),
        ("(128, 64)", (128, 64)),
        ("'3'", "3"),
        ("fp16", "float16"),
        ("T.bfloat16", "bfloat16"),
        ("half", "float16"),
        ("full", "full"),
        ("fp8", "fp8"),  # ambiguous as a dtype: the kernel decides
        ("", ""),
        ("9" * 5000, "9" * 5000),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_a_value_is_a_literal_or_a_dtype_or_text(text: str, value: object) -> None:
    found = parse_value(text)
    assert (type(found), found) == (type(value), value)


class Echo(StandIn):
    """Stands for the child process; takes any parameter and says which it was given."""

    toolchain, version = replace(TILELANG, name="echo"), "0"

    def load(self, _: object = ()) -> tuple[Listing, ...]:
        return (Listing(name="matmul", style="factory", line=1, parameters=()),)

    def read(self, request: Request) -> tuple[()]:
        raise tilefit.KernelError(f"{request.params!r} for {request.target}")


RESERVED = ("source", "device", "limits", "options", "blocks", "python", "progress", "params")


@pytest.mark.parametrize("name", RESERVED)
def test_a_parameter_may_have_the_name_of_one_of_ours(
    error: Error, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """``blocks`` is a usual one; here ``python`` even named a program to run."""
    use(monkeypatch, Echo)
    assert repr({name: 1}) in error("gemm.py::matmul", "-d", "h100", "--set", f"{name}=1")


# ---- an environment without TileLang ------------------------------------------------------------


def without_tilelang(folder: Path, text: str) -> str:
    """Write a package ``tilelang`` that fails to import; return the folder that holds it."""
    (folder / "tilelang").mkdir(parents=True)
    (folder / "tilelang" / "__init__.py").write_text(text, encoding="utf-8")
    return str(folder)


def test_without_tilelang_the_error_names_the_extra(
    error: Error, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = "raise ModuleNotFoundError(\"No module named 'tilelang'\")"
    monkeypatch.setenv("PYTHONPATH", without_tilelang(tmp_path / "site", missing))
    for more in (["-d", "h100"], ["--list"]):
        line = error("gemm.py", *more)
        assert "TileLang is not installed" in line
        assert "pip install 'tilefit[tilelang]', or add --estimate" in line


def test_a_tilelang_that_cannot_be_imported_says_why(
    error: Error, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = "raise OSError('libcudart.so.13:\\n  cannot open shared object file')"
    monkeypatch.setenv("PYTHONPATH", without_tilelang(tmp_path / "site", broken))
    line = error("gemm.py", "-d", "h100")
    assert "importing TileLang failed: libcudart.so.13: cannot open shared object file" in line


def test_an_interpreter_without_any_package_is_named(tmp_path: Path) -> None:
    """Not even tilefit is installed there; the child brings its own, and needs no extra of it."""
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    file = tmp_path / "gemm.py"
    file.write_text(KERNEL, encoding="utf-8")
    with pytest.raises(tilefit.ToolchainError) as missing:
        tilefit.plan(str(file), "h100", python=str(bare))
    line = str(missing.value)
    assert f"TileLang is not installed for {bare} (" in line
    assert f"{bare} -m pip install tilelang, or add --estimate" in line
    assert "tilefit[" not in line


def test_an_interpreter_that_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "gemm.py"
    file.write_text(KERNEL, encoding="utf-8")
    with pytest.raises(tilefit.InputError, match="cannot run /nowhere/python"):
        tilefit.plan(str(file), "h100", python="/nowhere/python")


def test_a_program_that_is_no_interpreter(tmp_path: Path) -> None:
    file = tmp_path / "gemm.py"
    file.write_text(KERNEL, encoding="utf-8")
    with pytest.raises(InterpreterError, match="true does not run as a Python interpreter"):
        tilefit.plan(str(file), "h100", python=str(shutil.which("true")))


def test_a_kernel_object_without_tilelang_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tilelang", None)
    with pytest.raises(tilefit.ToolchainError, match=r"tilefit\[tilelang\]"):
        tilefit.plan(object(), "h100")


# ---- flags and the place where the answer goes ---------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "M=1", "--set", "M=2"), "--set M is given twice: 1 and 2"),
        (("--json", "--format", "csv"), "--json and --format csv contradict each other"),
        (("--list", "--watch"), "--list and --watch contradict each other"),
        (("--estimate", "--assemble"), "--estimate compiles nothing"),
    ],
)
def test_what_cannot_be_meant_together(error: Error, flags: tuple[str, ...], said: str) -> None:
    assert said in error("gemm.py::matmul", "-d", "h100", *flags)


def tilefit_into(where: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -m tilefit footprint --tile 2 2 --dtype float32 > {where}'
    env = {**os.environ, **environment}
    return subprocess.run(command, shell=True, env=env, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line_and_exit_2() -> None:
    done = tilefit_into("/dev/full")
    assert done.returncode == 2
    assert done.stderr == "tilefit: cannot write the answer: No space left on device\n"


def test_a_terminal_that_is_not_utf_8_costs_a_character() -> None:
    script = "import sys, tilefit.cli as c; c.main([]); print('\u2014')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.endswith(b"?\n")
