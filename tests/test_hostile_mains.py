"""Mains that crash, flood, flee or break their process: one line each, and the next is answered."""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.opened import Session, ask
from tilefit._devices.facts import facts_of
from tilefit._devices.names import device
from tilefit._errors import KernelError, WorkerError
from tilefit._reading.child import Limits

pytestmark = pytest.mark.tilelang

KERNEL = """
import builtins, os, signal, subprocess, sys, threading, time, warnings
import tilelang
import tilelang.language as T
import torch

@tilelang.jit(out_idx=[1])
def copy(rows, columns=64):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), "float16")
            T.copy(A, tile)
            T.copy(tile, B)
    return main

class Unheard(BaseException):
    pass

if __name__ == "__main__":
    copy(32)
"""
TILE_BYTES = 32 * 64 * 2
LINE = KERNEL.count("\n") + 2  # the body's second line; its first changes the folder
FACTS = facts_of(device("h100"))


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(Path("main.py"), limits=Limits(seconds=60)) as opened:
        yield opened


def written(folder: Path, body: str, name: str = "main.py") -> Path:
    path = folder / name
    path.write_text(KERNEL + textwrap.indent(textwrap.dedent(body), "    "), encoding="utf-8")
    return path


def answers_as_before(session: Session, folder: Path) -> None:
    session.path = written(folder, "pass", "harmless.py")
    ran = session.run(FACTS)
    assert [kernel.name for kernel in ran.kernels] == ["copy"]
    assert (ran.ended, ran.unbuilt) == (None, ())


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("raise Unheard('of')", rf"main\.py:{LINE} raised Unheard: of"),
        ("raise KeyboardInterrupt", rf"main\.py:{LINE} raised KeyboardInterrupt"),
        ("raise GeneratorExit", rf"main\.py:{LINE} raised GeneratorExit"),
        ("sys.exit('out of\\ncards')", r"main\.py exited with 'out of\\ncards'"),
        ("sys.exit(0)", None),
        ("sys.stdout.close(); sys.stderr.close(); os.close(1); os.close(2)", None),
        ("for _ in range(1 << 14): print('x' * 1023)", None),
        ("sys.modules.clear()", None),
        ("sys.setrecursionlimit(60)", None),
        ("for name in list(sys.modules): del sys.modules[name]", None),
        ("del sys.modules['__main__']; sys.path.clear(); sys.meta_path.clear()", None),
        ("signal.signal(signal.SIGALRM, signal.SIG_IGN); signal.alarm(1)", None),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pthread_sigmask(0, {2, 15})", None),
        ("warnings.simplefilter('error')", None),
        ("threading.Thread(target=time.sleep, args=(1000,)).start()", None),
        ("subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])", None),
        ("os.setsid() if os.fork() == 0 else None", None),
        ("os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')", None),
        ("torch.set_default_device('cuda'); torch.zeros(3) + torch.zeros(3, device='cuda')", None),
        ("builtins.open = builtins.print = None", None),
        ("os.environ.clear()", None),
        ("torch.cuda.set_device(7); torch.cuda.synchronize(); torch.cuda.empty_cache()", None),
    ],
)
def test_what_main_compiled_is_answered_whatever_it_does_next(
    session: Session, tmp_path: Path, body: str, ended: str | None
) -> None:
    session.path = written(tmp_path, f"os.chdir(os.path.dirname(__file__))\n{body}")
    ran = session.run(FACTS)
    assert [kernel.name for kernel in ran.kernels] == ["copy"]
    (found,) = session.read(ask("copy", {}, "sm_90a"))
    assert found.staged.dynamic_bytes == TILE_BYTES
    if ended is None:
        assert ran.ended is None
    else:
        assert re.fullmatch(ended, ran.ended or "")
        assert "\n" not in (ran.ended or "")
    answers_as_before(session, tmp_path)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os._exit(3)", r"main\.py ended the process \(exit code 3\)"),
        ("os._exit(0)", r"main\.py ended the process \(exit code 0\)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"main\.py was killed by signal 9 \(SIGKILL\)"),
        ("os.abort()", r"main\.py was killed by signal 6 \(SIGABRT\)"),
        ("os.closerange(3, 1024)", r"main\.py ended the process"),
    ],
)
def test_a_main_that_ends_its_process_is_one_line_and_costs_only_itself(
    session: Session, tmp_path: Path, body: str, said: str
) -> None:
    session.path = written(tmp_path, body)
    with pytest.raises(WorkerError, match=said) as caught:
        session.run(FACTS)
    assert "\n" not in str(caught.value)
    answers_as_before(session, tmp_path)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        # its own handler takes the alarm that would have ended it in time
        ("signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass", "within 8 s"),
        # and this one swallows it
        ("while True:\n  try: time.sleep(9)\n  except BaseException: pass", "within 8 s"),
        (
            "for _ in range(20): subprocess.Popen(['sleep', '1000'])\ntime.sleep(99)",
            "more than 12 processes",
        ),
    ],
)
def test_a_main_that_will_not_end_is_stopped_with_all_that_it_started(
    tmp_path: Path, body: str, said: str
) -> None:
    limits = Limits(seconds=60, processes=12)
    with Session(written(tmp_path, "pass", "harmless.py"), limits=limits) as session:
        session.run(FACTS)  # the toolchain is imported by then
        session.limits = Limits(seconds=8, processes=12)
        session.path = written(tmp_path, f"os.chdir(os.path.dirname(__file__))\n{body}")
        with pytest.raises(WorkerError, match=said) as caught:
            session.run(FACTS)
    assert "\n" not in str(caught.value)
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.cwd() == str(tmp_path):
                left.append(process.cmdline())
    assert left == []


@pytest.mark.parametrize("body", ["os.fork()", "sys.modules.clear()", "sys.meta_path.clear()"])
def test_a_file_that_breaks_its_process_while_it_is_imported_is_read(
    session: Session, tmp_path: Path, body: str
) -> None:
    session.path = tmp_path / "imported.py"
    session.path.write_text(f"{KERNEL.partition('if __name__')[0]}\n{body}\n", encoding="utf-8")
    assert [kernel.name for kernel in session.load()] == ["copy"]
    (found,) = session.read(ask("copy", {"rows": 32}, "sm_90a"))
    assert found.staged.dynamic_bytes == TILE_BYTES


@pytest.mark.parametrize("kind", ["Unheard", "KeyboardInterrupt", "GeneratorExit"])
def test_whatever_a_file_raises_while_it_is_imported_is_told_in_a_line(
    session: Session, tmp_path: Path, kind: str
) -> None:
    text = f"{KERNEL.partition('if __name__')[0]}raise {kind}('of it')\n"
    session.path = tmp_path / "imported.py"
    session.path.write_text(text, encoding="utf-8")
    line = text.count("\n")
    with pytest.raises(KernelError) as caught:
        session.load()
    assert str(caught.value) == f"imported.py:{line} raised {kind}: of it"


def test_a_factory_that_raises_anything_is_told_in_a_line(session: Session, tmp_path: Path) -> None:
    text = KERNEL.partition("if __name__")[0]
    text = text.replace("    @T.prim_func", "    raise Unheard\n\n    @T.prim_func")
    session.path = tmp_path / "imported.py"
    session.path.write_text(text, encoding="utf-8")
    session.load()
    with pytest.raises(KernelError, match=r"imported\.py:\d+ raised Unheard"):
        session.read(ask("copy", {"rows": 32}, "sm_90a"))
