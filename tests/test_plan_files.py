"""`plan FILE` and `plan FOLDER`: counts add up, a bad file costs only itself, the store is safe."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import tilefit
from tilefit._planning.plan import Options, plan_below
from tilefit._planning.report import Report
from tilefit._reading.child import Child, Limits
from tilefit._render import table as _table
from tilefit._verdict.judge import Status

pytestmark = pytest.mark.tilelang

# one tile of 64 rows x WIDTH float32 that is copied in and out: 256 x WIDTH bytes
COPY = """
import tilelang
import tilelang.language as T
{imports}

@tilelang.jit
def copy(width={width}):
    @T.prim_func
    def kernel(A: T.Tensor((64, width), "float32"), B: T.Tensor((64, width), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, width), "float32")
            T.copy(A, tile)
            T.copy(tile, B)
    return kernel

if __name__ == "__main__":
    copy()
"""


def kernel(folder: Path, name: str, width: object = 64, imports: str = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(COPY.format(width=width, imports=imports))
    return path


def below(folder: Path, device: str = "h100", **options: object) -> Report:
    return plan_below(
        str(folder),
        device,
        {},
        limits=Limits(seconds=60),
        options=Options(**options),  # type: ignore[arg-type]
        workers=2,
    )


def totals(report: Report) -> dict[str, int | None]:
    return {Path(r.file).name: r.uses[0].total_bytes for r in report.results if r.uses}


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the child processes that are started from now on."""
    started: list[int] = []
    make = Child.__init__

    def counted(self: Child, *words: Any, **more: Any) -> None:
        started.append(1)
        make(self, *words, **more)

    monkeypatch.setattr(Child, "__init__", counted)
    return started


@pytest.fixture(autouse=True)
def _fresh_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-of-the-user"))


def test_a_crashing_file_costs_only_itself_and_counts_add_up(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    kernel(folder, "good.py", 64)  # 64 x 64 x 4 = 16,384
    kernel(folder, "deep/wide.py", 1024)  # 64 x 1024 x 4 = 262,144 > 232,448
    (folder / "dies.py").write_text("import os, tilelang\nos.abort()\n")
    (folder / "raises.py").write_text("import tilelang\nraise RuntimeError('no luck')\n")
    (folder / "syntax.py").write_text("import tilelang\ndef f(:\n")
    (folder / "plain.py").write_text("print('nothing to do with kernels')\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.py").write_text("import tilelang; raise SystemExit(3)\n")
    report = below(folder)
    seen = {Path(one.file).name: one for one in report.files}
    assert sorted(seen) == ["dies.py", "good.py", "plain.py", "raises.py", "syntax.py", "wide.py"]
    assert totals(report) == {"good.py": 16_384, "wide.py": 262_144}
    assert (seen["good.py"].planned, seen["wide.py"].planned) == (1, 1)
    assert seen["plain.py"].seen == 0
    reasons = {name: [f.reason for f in seen[name].failures] for name in seen}
    assert "SIGABRT" in reasons["dies.py"][0]
    assert "no luck" in reasons["raises.py"][0]
    assert "syntax" in reasons["syntax.py"][0].casefold()
    for one in report.files:
        assert one.seen == one.planned + one.refused + one.failed
    assert sum(one.failed for one in report.files) == 3
    assert report.exit_code == 1  # one does not fit


def test_a_failing_file_without_a_misfit_is_exit_2(tmp_path: Path) -> None:
    kernel(tmp_path / "k", "good.py")
    (tmp_path / "k" / "raises.py").write_text("import tilelang\n1 / 0\n")
    assert below(tmp_path / "k").exit_code == 2


def test_a_folder_without_python_files_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(tilefit.InputError, match="no Python file"):
        below(tmp_path / "empty")


def test_a_folder_without_kernels_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "a.py").write_text("print('no kernel')\n")
    with pytest.raises(tilefit.InputError, match="1 Python file, and no TileLang kernel"):
        below(tmp_path / "k")


def test_a_second_run_starts_no_child(tmp_path: Path, children: list[int]) -> None:
    folder = tmp_path / "kernels"
    for number in range(6):
        kernel(folder, f"k{number}.py", 16 * (number + 1))
    (folder / "raises.py").write_text("import tilelang\nraise RuntimeError('no luck')\n")
    first = below(folder)
    assert children
    children.clear()
    second = below(folder)
    assert children == []
    assert second == first
    assert totals(second) == {f"k{n}.py": 64 * 16 * (n + 1) * 4 for n in range(6)}


def command(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tilefit", "plan", str(folder), "-d", "h100", *more],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_printed_answer_is_kept_until_something_changes(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    path = kernel(folder, "a.py", 16)
    first = command(folder)
    assert "4,096" in first.stdout  # 64 x 16 x 4
    second = command(folder)
    assert (second.stdout, second.returncode) == (first.stdout, first.returncode)
    path.write_text(path.read_text().replace("16", "24"))
    assert "6,144" in command(folder).stdout  # 64 x 24 x 4
    kernel(folder, "b.py", 2048)  # 64 x 2048 x 4 = 524,288 > 232,448
    third = command(folder)
    assert "524,288" in third.stdout
    assert third.returncode == 1
    assert command(folder, "--fail-on", "none").returncode == 0
    assert command(folder).returncode == 1
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    path.unlink()
    assert "a.py" not in command(folder).stdout


def test_an_answer_with_other_wishes_is_another_one(tmp_path: Path) -> None:
    """64 x 16 x 4 = 4,096 B fit beside 228,352 B of headroom in 232,448, not beside one more."""
    folder = tmp_path / "kernels"
    kernel(folder, "a.py", 16)
    asked = [(), ("--headroom", "228352"), ("--headroom", "228353"), ("--blocks", "33"), ()]
    # an SM of an H100 holds 32 blocks at most
    assert [command(folder, *more).returncode for more in asked] == [0, 0, 1, 1, 0]


def test_a_crash_is_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    flag = tmp_path / "flag"
    (folder / "sometimes.py").write_text(
        f"import os, tilelang\nos.path.exists({str(flag)!r}) or os.abort()\n"
    )
    assert "SIGABRT" in command(folder).stdout
    flag.touch()
    assert "SIGABRT" not in command(folder).stdout


def test_no_cache_reads_everything_again(tmp_path: Path, children: list[int]) -> None:
    kernel(tmp_path / "k", "a.py")
    below(tmp_path / "k", cache=False)
    children.clear()
    below(tmp_path / "k", cache=False)
    assert children
    assert not list((tmp_path / "cache-of-the-user").rglob("*.sqlite"))


def test_an_edit_of_a_helper_two_folders_away_misses(tmp_path: Path) -> None:
    helper = tmp_path / "one" / "two" / "sizes.py"
    helper.parent.mkdir(parents=True)
    helper.write_text("WIDTH = 32\n")
    imports = f"import sys; sys.path.insert(0, {str(helper.parent)!r}); from sizes import WIDTH"
    kernel(tmp_path / "k", "a.py", "WIDTH", imports)
    assert totals(below(tmp_path / "k")) == {"a.py": 64 * 32 * 4}
    helper.write_text("WIDTH = 48\n")  # the same size in bytes, and perhaps the same second
    assert totals(below(tmp_path / "k")) == {"a.py": 64 * 48 * 4}


def test_a_helper_that_comes_later_misses(tmp_path: Path) -> None:
    tuned = "try:\n    from tuned import WIDTH\nexcept ImportError:\n    WIDTH = 32"
    path = kernel(tmp_path / "k", "a.py", "WIDTH", tuned)
    assert totals(tilefit.plan(f"{path}::copy", "h100")) == {"a.py": 64 * 32 * 4}
    (tmp_path / "k" / "tuned.py").write_text("WIDTH = 48\n")
    assert totals(tilefit.plan(f"{path}::copy", "h100")) == {"a.py": 64 * 48 * 4}


def test_an_answer_about_what_was_saved_over_meanwhile_is_not_kept(tmp_path: Path) -> None:
    helper = tmp_path / "k" / "sizes.py"
    # as an editor could at that moment: the file is saved after it was imported
    saves = f"from sizes import WIDTH; open({str(helper)!r}, 'w').write('WIDTH = 48\\n')"
    path = kernel(tmp_path / "k", "a.py", "WIDTH", saves)
    helper.write_text("WIDTH = 32\n")
    assert totals(tilefit.plan(f"{path}::copy", "h100")) == {"a.py": 64 * 32 * 4}
    assert totals(tilefit.plan(f"{path}::copy", "h100")) == {"a.py": 64 * 48 * 4}


def test_too_little_memory_is_no_answer_for_a_larger_limit(tmp_path: Path) -> None:
    path = kernel(tmp_path, "a.py", 16, "TABLE = bytes(4 << 30)")
    source = f"{path}::copy"
    with pytest.raises(tilefit.KernelError, match="more memory than user code may have"):
        tilefit.plan(source, "h100", limits=Limits(memory_bytes=3 << 30))
    found = tilefit.plan(source, "h100", limits=Limits(memory_bytes=8 << 30))
    assert totals(found) == {"a.py": 64 * 16 * 4}


def test_a_main_that_was_ended_in_time_is_asked_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    busy = f"import os\nwhile not os.path.exists({str(flag)!r}): pass"
    path = kernel(tmp_path / "k", "a.py", 16, busy)
    with pytest.raises(tilefit.KernelError, match="was ended after"):
        tilefit.plan(str(path), "h100", limits=Limits(seconds=12))
    flag.touch()
    assert totals(tilefit.plan(str(path), "h100")) == {"a.py": 64 * 16 * 4}


def test_an_import_inside_the_factory_counts_too(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    (folder / "lazy").mkdir(parents=True)
    path = kernel(folder, "a.py")
    (folder / "lazy" / "late.py").write_text("WIDTH = 16\n")
    text = path.read_text().replace(
        "def copy(width=64):", "def copy():\n    from lazy.late import WIDTH as width"
    )
    path.write_text(text)
    source = f"{path}::copy"
    assert totals(tilefit.plan(source, "h100")) == {"a.py": 64 * 16 * 4}
    (folder / "lazy" / "late.py").write_text("WIDTH = 80\n")
    assert totals(tilefit.plan(source, "h100")) == {"a.py": 64 * 80 * 4}


def test_configured_targets_that_change_are_answered_anew(tmp_path: Path) -> None:
    """Also where the file of a target changes, which nothing else names."""
    kernel(tmp_path / "k", "a.py", 16)
    (tmp_path / "pyproject.toml").write_text('[tool.tilefit]\ntargets = ["card.toml"]\n')
    plan = [sys.executable, "-m", "tilefit", "plan", "k"]
    for shared in (102_400, 81_920):
        (tmp_path / "card.toml").write_text(
            f'base = "h100"\n[memories.shared]\nper_block_bytes = {shared}\n'
        )
        done = subprocess.run(plan, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert f"{shared:,}" in done.stdout, done.stderr
    (tmp_path / "pyproject.toml").write_text('[tool.tilefit]\ntargets = ["t4"]\n')
    done = subprocess.run(plan, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "65,536" in done.stdout  # 64 KiB: CUDA programming guide, compute capability 7.5


def test_names_that_are_no_plain_files_are_told_or_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    kernel(folder, "good.py", 16)
    kernel(folder, "with space/a::b.py", 24)
    os.mkfifo(folder / "pipe.py")  # whoever reads it waits for a writer
    (folder / "gone.py").symlink_to("nowhere.py")
    (folder / "loop").symlink_to(folder)
    (folder / "loop.py").symlink_to("loop.py")
    report = below(folder)
    assert totals(report) == {"good.py": 64 * 16 * 4, "a::b.py": 64 * 24 * 4}
    failed = {Path(one.file).name: one.failures[0].reason for one in report.files if one.failures}
    assert sorted(failed) == ["gone.py", "loop.py"]
    assert failed["gone.py"] == "cannot be read: No such file or directory"
    named = tilefit.plan(f"{folder / 'with space' / 'a::b.py'}::copy", "h100")
    assert totals(named) == {"a::b.py": 64 * 24 * 4}


def test_a_crash_is_not_blamed_on_what_the_file_before_printed(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    kernel(folder, "a.py", 16, "print('of the first file')")
    (folder / "b.py").write_text(
        "import os, time, tilelang\nos.killpg(os.getpgid(os.getppid()), 9)\ntime.sleep(60)\n"
    )
    report = plan_below(str(folder), "h100", {}, limits=Limits(seconds=60), workers=1)
    (failure,) = next(one.failures for one in report.files if one.failures)
    assert "ended early" in failure.reason
    assert "first" not in failure.reason


def test_a_file_that_kills_the_worker_and_survives_costs_only_itself(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    kernel(folder, "b.py", 16)
    (folder / "a.py").write_text(
        "import ctypes, os, tilelang\n"
        "ctypes.CDLL(None).prctl(1, 0)\n"  # PR_SET_PDEATHSIG: outlive the parent
        "os.kill(os.getppid(), 9)\n"
    )
    report = plan_below(str(folder), "h100", {}, limits=Limits(seconds=60), workers=1)
    assert totals(report) == {"b.py": 64 * 16 * 4}
    assert [one.failures for one in report.files] == [(), ()]


def test_a_parameter_that_no_kernel_has_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    kernel(folder, "a.py", 16)
    two = kernel(folder, "b.py", 24)
    twice = two.read_text().replace("    copy()", "    copy()\n    copy(width=8)")
    two.write_text(twice.replace("width=24", "width=24, threads=128"))
    assert len(tilefit.plan(str(two), "h100").results) == 2
    for source in (str(two), str(two) + "::copy"):
        with pytest.raises(tilefit.InputError, match="'widht'; did you mean width"):
            tilefit.plan(source, "h100", widht=3)
    with pytest.raises(tilefit.InputError, match="unknown parameter 'widht'; did you mean width"):
        plan_below(str(folder), "h100", {"widht": 3})
    report = plan_below(str(folder), "h100", {"threads": 64})  # one of them has it
    assert [(one.planned, one.failed) for one in report.files] == [(1, 0), (2, 0)]


def test_ctrl_c_ends_a_folder_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    folder.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (folder / name).write_text(
            "import signal, subprocess, time, tilelang\n"
            "signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
            "subprocess.Popen(['setsid', 'sleep', '1000'], env={'PATH': '/usr/bin:/bin'})\n"
            "open(__file__ + '.started', 'w'); time.sleep(1000)\n"
        )
    with subprocess.Popen(
        [sys.executable, "-m", "tilefit", "plan", str(folder), "-d", "h100", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        while len(list(folder.glob("*.started"))) < 2:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=20)  # a file may run for 120 s
    assert (process.returncode, out, errors) == (130, "", "tilefit: interrupted\n")
    assert not [one for one in psutil.process_iter() if "1000" in of(one) and "sleep" in of(one)]


def of(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline() if process.status() != psutil.STATUS_ZOMBIE else []
    return []


def test_parallel_runs_share_one_store(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    for number in range(4):
        kernel(folder, f"k{number}.py", 16 * (number + 1))
    command = [sys.executable, "-m", "tilefit", "plan", str(folder), "-d", "h100", "--json"]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "shared-cache")}
    runs = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    answers = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], answers
    first, second = (json.loads(out) for out, _ in answers)
    assert first == second
    counts = {"seen": 4, "planned": 4, "refused": 0, "failed": 0}
    assert counts.items() <= first["seen"].items()


def test_devices_that_differ_in_what_the_code_may_ask(tmp_path: Path) -> None:
    path = kernel(
        tmp_path,
        "asks.py",
        "WIDTH",
        "import torch\nWIDTH = 64 if torch.cuda.get_device_capability()[0] >= 9 else 32",
    )
    report = tilefit.plan(str(path), ["h100", "a100"])
    found = {r.device: r.uses[0].total_bytes for r in report.results}
    assert found == {"h100": 64 * 64 * 4, "a100": 64 * 32 * 4}
    assert report.files[0].planned == 2


def test_a_kernel_that_only_main_makes_can_be_named(tmp_path: Path) -> None:
    path = kernel(tmp_path, "inner.py")
    text = path.read_text()
    head, tail = text.split("@tilelang.jit")
    body = "def main():\n" + "".join(
        f"    {line}\n" for line in ("@tilelang.jit" + tail.split("if __name__")[0]).splitlines()
    )
    path.write_text(f"{head}{body}    copy(width=96)\n\nif __name__ == '__main__':\n    main()\n")
    assert totals(tilefit.plan(str(path), "h100")) == {"inner.py": 64 * 96 * 4}
    assert totals(tilefit.plan(f"{path}::copy", "h100")) == {"inner.py": 64 * 96 * 4}
    # also where one of almost its name stands at module level
    with path.open("a") as file:
        file.write((head + "@tilelang.jit" + tail.split("if __name__")[0]).replace("copy", "copyy"))
    assert totals(tilefit.plan(f"{path}::copy", "h100")) == {"inner.py": 64 * 96 * 4}
    with pytest.raises(tilefit.InputError, match="unknown kernel 'copy#2'; did you mean copy"):
        tilefit.plan(f"{path}::copy#2", "h100")


def test_an_interpreter_without_tilefit(tmp_path: Path) -> None:
    """As the user's other environment: it has the toolchain, by a path, and no tilefit."""
    import venv

    import tilelang

    venv.create(tmp_path / "other", with_pip=False)
    python = tmp_path / "other" / "bin" / "python"
    (packages,) = (tmp_path / "other").glob("lib/python*/site-packages")
    mine = Path(tilelang.__file__).parent.parent
    for entry in mine.iterdir():
        if "tilefit" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    has_tilefit = subprocess.run([python, "-c", "import tilefit"], capture_output=True, check=False)
    assert has_tilefit.returncode != 0
    path = kernel(tmp_path, "a.py", 48)
    report = tilefit.plan(f"{path}::copy", "h100", python=str(python))
    assert totals(report) == {"a.py": 64 * 48 * 4}


def test_the_command_prints_counts_and_reasons(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    kernel(folder, "good.py", 64)
    (folder / "raises.py").write_text("import tilelang\nraise RuntimeError('no luck')\n")
    done = subprocess.run(
        [sys.executable, "-m", "tilefit", "plan", "kernels", "-d", "h100"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == ""
    assert "2 seen = 1 planned + 0 refused + 1 failed." in done.stdout
    assert "kernels/raises.py: raises.py:2 raised RuntimeError: no luck" in done.stdout
    assert "16,384  232,448  216,064" in done.stdout


@pytest.mark.parametrize(
    "flag", [["--watch"], ["--list"], ["--ladder", "width"], ["--assemble"], ["--suggest"]]
)
def test_flags_about_one_file_are_refused_for_a_folder(tmp_path: Path, flag: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilefit", "plan", str(tmp_path), "-d", "h100", *flag],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is a folder" in done.stderr


def test_a_lowering_that_hangs_in_the_stage_search_costs_only_the_search(tmp_path: Path) -> None:
    path = kernel(tmp_path, "hangs.py")
    text = path.read_text()
    text = text.replace("width=64", "width=64, num_stages=2")
    text = text.replace("    @T.prim_func", "    while num_stages > 2: pass\n    @T.prim_func")
    text = text.replace(
        "            T.copy(A, tile)\n            T.copy(tile, B)",
        "            for i in T.Pipelined(4, num_stages=num_stages):\n"
        "                T.copy(A[i * 16, 0], tile)\n"
        "                T.copy(tile, B[i * 16, 0])",
    ).replace("alloc_shared((64,", "alloc_shared((16,")
    path.write_text(text)
    report = tilefit.plan(f"{path}::copy", ["a100", "t4"], limits=Limits(seconds=12))
    assert [r.status for r in report.results] == [Status.FITS, Status.FITS]
    for result in report.results:
        assert result.stages.largest is None
        assert "did not finish within 12 s" in str(result.stages.reason)


def test_rows_of_a_folder_name_file_and_kernel_and_failures(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    kernel(folder, "narrow.py", 16)
    kernel(folder, "wide.py", 32)
    (folder / "raises.py").write_text("import tilelang\nraise RuntimeError('no luck')\n")
    report = below(folder)
    lines = list(csv.DictReader(_table.render_csv(report).splitlines()))
    found = {Path(row["file"]).name: row for row in lines}
    assert found["narrow.py"]["total_bytes"] == str(64 * 16 * 4)
    assert found["wide.py"]["params"] == "width=32"
    assert found["raises.py"]["verdict"] == "failed"
    assert "no luck" in found["raises.py"]["reason"]
    header = _table.render_csv(report).splitlines()[0].split(",")
    assert len(set(header)) == len(header)
    page = _table.render_md(report)
    assert f"| {folder}/narrow.py | copy | h100 |" in page
    assert f"- {folder}/raises.py: raises.py:2 raised RuntimeError: no luck" in page
