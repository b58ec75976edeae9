"""User files that crash, hang, flood or flee: one line, exit 2, and no process left behind."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tilefit.cli import main

pytestmark = pytest.mark.tilelang

MARKER = "TILEFIT_WORKER"


def left_behind(folder: Path) -> list[str]:
    """Return the command lines of live processes of a worker that was started in a folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.cwd() == str(folder) and MARKER in process.environ():
                found.append(" ".join(process.cmdline()))
    return found


def run(root: Path, folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilefit", "plan", str(root / "tests" / "hostile" / name)]
    return subprocess.run(
        [*command, "-d", "h100", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("raises.py", [], "raises.py:2 raised RuntimeError: the weather is bad and will stay so"),
        ("raises_in_kernel.py", [], "raises_in_kernel.py:8 raised ValueError: M must not be 128"),
        ("hangs.py", ["--timeout", "6"], "did not finish within 6 s and was stopped"),
        ("exits_zero.py", [], "ended the process (exit code 0)"),
        ("sys_exit.py", [], "called sys.exit(0)"),
        ("segfaults.py", [], "signal 11 (SIGSEGV)"),
        ("forks.py", ["--timeout", "20"], "and was stopped"),
        ("huge_allocation.py", [], "asked for more memory"),
        ("slow_leak.py", ["--memory-limit", "2GiB", "--timeout", "60"], "memory"),
        # the worker and its fork hold about 0.6 GiB each, four more take 0.9 GiB each
        ("many_leak.py", ["--memory-limit", "2GiB", "--timeout", "40"], "used more than 2 GiB"),
        ("syntax.py", [], "syntax.py:1: syntax error"),
        ("nothing.py", [], "no TileLang kernel in nothing.py"),
        ("absent.py", [], "no such file"),
        ("exits_103.py", [], "ended the process (exit code 103)"),
        ("writes_descriptors.py", [], "wrote to a file descriptor that it did not open"),
        ("writes_junk.py", [], "wrote to a file descriptor that it did not open"),
        ("prints_escapes.py", [], "RuntimeError: \ufffd[31mred\ufffd[0m <script> |=cmd()\ufffd"),
    ],
)
def test_a_kernel_of_a_bad_file_is_one_line_and_exit_2_and_leaves_nothing(
    root: Path, tmp_path: Path, name: str, arguments: list[str], said: str
) -> None:
    done = run(root, tmp_path, f"{name}::kernel", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises.py", "raises.py:2 raised RuntimeError: the weather is bad and will stay so"),
        ("exits_zero.py", "ended the process (exit code 0)"),
        ("exits_103.py", "ended the process (exit code 103)"),
        ("writes_junk.py", "wrote to a file descriptor that it did not open"),
        ("segfaults.py", "was killed by signal 11 (SIGSEGV)"),
        ("huge_allocation.py", "asked for more memory than user code may have"),
    ],
)
def test_a_main_that_ends_before_any_kernel_is_one_line_and_exit_2(
    root: Path, tmp_path: Path, name: str, said: str
) -> None:
    done = run(root, tmp_path, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert left_behind(tmp_path) == []


def test_a_kernel_that_main_cannot_build_is_one_failure_with_its_reason(
    root: Path, tmp_path: Path
) -> None:
    done = run(root, tmp_path, "raises_in_kernel.py")
    assert (done.returncode, done.stderr) == (2, "")
    assert "1 seen = 0 planned + 0 refused + 1 failed" in done.stdout
    said = "raises_in_kernel.py:8 raised ValueError: M must not be 128"
    assert said in " ".join(done.stdout.split())
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("name", ["sys_exit.py", "nothing.py"])
def test_a_main_without_a_kernel_says_so(root: Path, tmp_path: Path, name: str) -> None:
    done = run(root, tmp_path, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"no TileLang kernel in {name}" in done.stderr


@pytest.mark.parametrize(
    "name", ["daemon.py", "forks_in_factory.py", "prints_much.py", "prints_json.py"]
)
def test_a_noisy_or_careless_file_is_still_answered(root: Path, tmp_path: Path, name: str) -> None:
    done = run(root, tmp_path, name, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    result = json.loads(done.stdout)["results"][0]
    assert result["toolchain"]["name"] == "tilelang"
    # not the version that prints_json.py claims
    assert result["toolchain"]["version"] != "9.9.9"
    # a 128x64 fp16 tile
    assert result["memories"][0]["total_bytes"] == 128 * 64 * 2
    assert left_behind(tmp_path) == []


def test_an_interrupted_plan_leaves_nothing(root: Path, tmp_path: Path) -> None:
    file = root / "tests" / "hostile" / "hangs.py"
    with subprocess.Popen(
        [sys.executable, "-m", "tilefit", "plan", str(file), "-d", "h100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        time.sleep(4)
        process.send_signal(2)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "tilefit: interrupted\n"
    assert left_behind(tmp_path) == []


def test_a_killed_plan_takes_its_worker_along(root: Path, tmp_path: Path) -> None:
    file = root / "tests" / "hostile" / "hangs.py"
    with subprocess.Popen(
        [sys.executable, "-m", "tilefit", "plan", str(file), "-d", "h100"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    ) as process:
        time.sleep(4)
        process.kill()
    for _ in range(50):
        if not left_behind(tmp_path):
            break
        time.sleep(0.1)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tilelang/__init__.py", "raise ImportError('a checkout that was not built')"),
        ("torch.py", "raise ImportError('not this one')"),
        ("json.py", "x = 1"),
        ("runpy.py", "raise ImportError('not this one')"),
    ],
)
def test_the_folder_that_one_stands_in_shadows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, name: str, text: str
) -> None:
    """As with ``python FILE``; but a helper that lies there is found, behind all else."""
    kernel = (root / "examples" / "gemm.py").read_text(encoding="utf-8")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "gemm.py").write_text(f"import beside_the_user\n{kernel}")
    (tmp_path / "beside_the_user.py").write_text("")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "kernels/gemm.py::matmul", "-d", "rtx-4090"]) == 0
