"""`plan --watch`: each save is answered by the same child, also after a broken one."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tilefit._devices.names import expand
from tilefit._planning.question import Options
from tilefit._planning.watch import watch
from tilefit._reading.child import Child, Limits

pytestmark = pytest.mark.tilelang

# one tile of 64 rows x WIDTH float32: 256 x WIDTH bytes
KERNEL = """
import tilelang
import tilelang.language as T
from helper import WIDTH

@tilelang.jit
def copy(width=WIDTH):
    @T.prim_func
    def kernel(A: T.Tensor((64, width), "float32"), B: T.Tensor((64, width), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, width), "float32")
            T.copy(A, tile)
            T.copy(tile, B)
    return kernel
"""


def save(path: Path, text: str) -> None:
    """Write as editors do: a new file that takes the old one's place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def watched(path: Path, edits: list[Callable[[], object]]) -> tuple[list[int | None], list[str]]:
    """Watch through some edits; return the total of each answer, and the lines beside them."""
    answers: list[int | None] = []
    lines: list[str] = []
    times = len(edits) + 1

    def say(line: str) -> None:
        lines.append(line)
        if line.startswith("--") and edits:
            threading.Timer(0.3, edits.pop(0)).start()

    watch(
        f"{path}::copy",
        expand(["h100"]),
        [{}],
        Options(),
        Limits(seconds=60),
        sys.executable,
        lambda report: answers.append(report.results[0].uses[0].total_bytes),
        say,
        times=times,
    )
    return answers, lines


def test_saves_are_answered_by_one_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    make = Child.__init__

    def counted(self: Child, *words: Any, **more: Any) -> None:
        started.append(1)
        make(self, *words, **more)

    monkeypatch.setattr(Child, "__init__", counted)
    path, helper = tmp_path / "kernel.py", tmp_path / "helper.py"
    helper.write_text("WIDTH = 32\n")
    path.write_text(KERNEL)
    edits: list[Callable[[], object]] = [
        lambda: save(helper, "WIDTH = 48\n"),  # what the kernel imports
        lambda: save(path, KERNEL.replace("64", "128")),  # the kernel itself
        lambda: save(path, "def broken(:\n"),
        lambda: save(path, KERNEL),
    ]
    answers, lines = watched(path, edits)
    # 64 x 32 x 4; 64 x 48 x 4; 128 x 48 x 4; broken; 64 x 48 x 4
    assert answers == [8_192, 12_288, 24_576, 12_288]
    assert [line for line in lines if "syntax error" in line]
    assert started == [1]


def test_a_repair_is_seen_wherever_it_is(tmp_path: Path) -> None:
    path, helper = tmp_path / "kernel.py", tmp_path / "helper.py"
    path.write_text(KERNEL)
    edits: list[Callable[[], object]] = [
        lambda: save(helper, "WIDTH = 32\n"),  # it was missing
        lambda: save(helper, "import os; os.abort()\n"),
        lambda: save(helper, "WIDTH = 48\n"),
        path.unlink,
        lambda: path.write_text(KERNEL),
    ]
    answers, lines = watched(path, edits)
    assert answers == [64 * 32 * 4, 64 * 48 * 4, 64 * 48 * 4]
    said = [line for line in lines if line.startswith("tilefit")]
    assert len(said) == 3
    for line, word in zip(
        said, ("No module named 'helper'", "SIGABRT", "no such file"), strict=True
    ):
        assert word in line


def test_a_helper_that_is_saved_while_it_is_first_read_is_read_again(tmp_path: Path) -> None:
    path, helper = tmp_path / "kernel.py", tmp_path / "helper.py"
    helper.write_text("WIDTH = 32\n")
    time.sleep(0.05)
    saves = f"open({str(helper)!r}, 'w').write('WIDTH = 48\\n')\n\n@tilelang.jit"
    path.write_text(KERNEL.replace("@tilelang.jit", saves))
    time.sleep(0.05)
    # no edit comes from outside: the second answer is owed to the save inside
    answers, _ = watched(path, [lambda: None])
    assert answers == [64 * 32 * 4, 64 * 48 * 4]


def test_a_save_is_answered_though_the_one_before_hangs(tmp_path: Path) -> None:
    path, helper = tmp_path / "kernel.py", tmp_path / "helper.py"
    helper.write_text("WIDTH = 32\n")
    path.write_text(f"{KERNEL}\nwhile True:\n    pass\n")
    threading.Timer(4, save, (path, KERNEL)).start()
    # the answer is the first: what hung is nobody's question any more
    answers, lines = watched(path, [])
    assert answers == [64 * 32 * 4]
    assert not [line for line in lines if line.startswith("tilefit")]


def test_each_answer_leaves_at_once_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WIDTH = 32\n")
    (tmp_path / "kernel.py").write_text(KERNEL)
    command = [sys.executable, "-m", "tilefit", "plan", "kernel.py::copy", "-d", "h100", "--watch"]
    with subprocess.Popen(
        [*command, "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stderr.readline()  # comes once the first answer is there
        ready, _, _ = select.select([process.stdout], [], [], 5)
        used = sum(psutil.Process(process.pid).cpu_times()[:2])
        time.sleep(2)
        idle = sum(psutil.Process(process.pid).cpu_times()[:2]) - used
        process.send_signal(signal.SIGINT)
    assert ready
    assert idle < 0.4  # seconds of 2 while nothing happens


def test_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WIDTH = 32\n")
    (tmp_path / "kernel.py").write_text(KERNEL)
    command = [sys.executable, "-m", "tilefit", "plan", "kernel.py::copy", "-d", "h100", "--watch"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()  # comes once the first answer is there
    assert "waiting for an edit" in line
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "8,192" in out
    assert err == ""
