"""Whatever a kernel's code reads, a kept answer is that of the code as it would run now."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.executing import EXECUTING
from tests.opened import ask
from tilefit._frontends import registry
from tilefit._reading.opener import OpenedFile, Opener
from tilefit._reading.store import Store

Change = Callable[[Path], None]


@pytest.fixture(autouse=True)
def _executing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.OWN, "executing", "tests.executing:Executing")
    monkeypatch.chdir(Path(__file__).parent.parent)  # where the child finds the frontend
    monkeypatch.delenv("OURS", raising=False)


class Asker:
    """Asks a file for the bytes of its kernel, and counts how often it was executed."""

    def __init__(self, cache: Path, python: str = sys.executable) -> None:
        self.cache, self.python, self.executed = cache, python, 0

    def __call__(self, path: Path, *, keep: bool = True) -> int | None:
        store = Store(self.cache) if keep else None
        with Opener(store=store, python=self.python, started=self._count) as opener:
            file = OpenedFile(path, EXECUTING, opener)
            (kernel,) = file.read(ask("k", {}, "sm_90a"))
        return kernel.memories[0].dynamic_bytes

    def _count(self, _: object) -> None:
        self.executed += 1


def write(name: str, text: str) -> Change:
    """Write a file."""

    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return change


def several(*changes: Change) -> Change:
    """Make several changes."""

    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def remove(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def variable(value: str) -> Change:
    """Set the variable; the test takes it back."""
    return lambda _: os.environ.__setitem__("OURS", value)


def archive(text: str) -> Change:
    def change(folder: Path) -> None:
        with zipfile.ZipFile(folder / "lib.zip", "w") as file:
            file.writestr("inside.py", text)

    return change


def link(to: str) -> Change:
    def change(folder: Path) -> None:
        (folder / "sizes").unlink(missing_ok=True)
        (folder / "sizes").symlink_to(folder / to)

    return change


HERE = "import os, pathlib\nHERE = pathlib.Path(__file__).parent\n"
# code that sets BYTES; what is there at first; what changes
SCENARIOS: dict[str, tuple[str, Change, Change]] = {
    "environ-get": ('BYTES = int(os.environ.get("OURS", "1"))', several(), variable("2")),
    "environ-item": ('BYTES = int(os.environ["OURS"])', variable("1"), variable("2")),
    "environ-in": ('BYTES = 2 if "OURS" in os.environ else 1', several(), variable("x")),
    "environ-all": ("BYTES = dict(os.environ).get('OURS', 1)", several(), variable("2")),
    "getenv-when-built": (
        'def BYTES(): return int(os.getenv("OURS", "1"))',
        *(several(), variable("2")),
    ),
    "helper-environ": (
        "from helper import BYTES",
        several(write("helper.py", "import os\nBYTES = int(os.environ.get('OURS', 1))\n")),
        variable("2"),
    ),
    "json": (
        'import json\nBYTES = json.load(open(HERE / "c.json"))["b"]',
        *(write("c.json", '{"b": 1}'), write("c.json", '{"b": 2}')),
    ),
    "read-text": (
        'BYTES = int((HERE / "n.txt").read_text())',
        *(write("n.txt", "1"), write("n.txt", "2")),
    ),
    "opened-when-built": (
        'def BYTES(): return int((HERE / "n.txt").read_text())',
        *(write("n.txt", "1"), write("n.txt", "2")),
    ),
    "numpy": (
        'import numpy\nBYTES = int(numpy.loadtxt(HERE / "n.txt"))',
        *(write("n.txt", "1"), write("n.txt", "2")),
    ),
    "os-open": (
        'f = os.open(HERE / "n.txt", os.O_RDONLY)\nBYTES = int(os.read(f, 9))',
        *(write("n.txt", "1"), write("n.txt", "2")),
    ),
    "exec": (
        'exec(open(HERE / "more.inc").read())',
        *(write("more.inc", "BYTES = 1"), write("more.inc", "BYTES = 2")),
    ),
    "runpy": (
        'import runpy\nBYTES = runpy.run_path(str(HERE / "other.py"))["B"]',
        *(write("other.py", "B = 1"), write("other.py", "B = 2")),
    ),
    "by-spec": (
        "import importlib.util as u\n"
        's = u.spec_from_file_location("other", HERE / "other.py")\n'
        "m = u.module_from_spec(s)\ns.loader.exec_module(m)\nBYTES = m.B",
        *(write("other.py", "B = 1"), write("other.py", "B = 2")),
    ),
    "glob": (
        'import glob\nBYTES = len(glob.glob(str(HERE / "tables" / "*.csv")))',
        *(write("tables/a.csv", ""), write("tables/b.csv", "")),
    ),
    "iterdir": (
        'BYTES = len(list((HERE / "tables").iterdir()))',
        *(write("tables/a.csv", ""), write("tables/b.csv", "")),
    ),
    "walk-of-a-new-folder": (
        'BYTES = 1 + sum(len(f) for _, _, f in os.walk(HERE / "tables"))',
        *(several(), write("tables/b.csv", "")),
    ),
    "exists-then": (
        'BYTES = 2 if os.path.exists(HERE / "tuned") else 1',
        *(several(), write("tuned", "")),
    ),
    "exists-no-more": (
        'BYTES = 1 if (HERE / "tuned").is_file() else 2',
        *(write("tuned", ""), remove("tuned")),
    ),
    "size-of-a-file": (
        'BYTES = os.path.getsize(HERE / "weights")',
        *(write("weights", "x"), write("weights", "xx")),
    ),
    "try-open": (
        'try:\n    BYTES = int(open(HERE / "n.txt").read())\nexcept OSError:\n    BYTES = 1',
        *(several(), write("n.txt", "2")),
    ),
    "new-module": (
        "try:\n    from tuned import BYTES\nexcept ImportError:\n    BYTES = 1",
        *(several(), write("tuned.py", "BYTES = 2")),
    ),
    "zip": (
        'import sys\nsys.path.insert(0, str(HERE / "lib.zip"))\nfrom inside import BYTES',
        *(archive("BYTES = 1"), archive("BYTES = 2")),
    ),
    "link": (
        'BYTES = int((HERE / "sizes").read_text())',
        several(write("one", "1"), write("two", "2"), link("one")),
        link("two"),
    ),
    "installed-module": (
        'import sys\nsys.path.insert(0, str(HERE / "site-packages"))\nfrom ours import BYTES',
        write("site-packages/ours.py", "BYTES = 1"),
        write("site-packages/ours.py", "BYTES = 1 + 1"),
    ),
    "data-of-an-installed-package": (
        'BYTES = int((HERE / "site-packages" / "n.txt").read_text())',
        *(write("site-packages/n.txt", "1"), write("site-packages/n.txt", " 2")),
    ),
    "another-program": (
        "import subprocess, sys\n"
        'code = f"print(open({str(HERE / chr(110))!r}).read())"\n'
        "BYTES = int(subprocess.check_output([sys.executable, '-c', code]))",
        *(write("n", "1"), write("n", "2")),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_answer_is_that_of_the_code_as_it_would_run_now(name: str, tmp_path: Path) -> None:
    code, first, change = SCENARIOS[name]
    home, ask_for = tmp_path / "home", Asker(tmp_path / "cache")
    home.mkdir()
    path = home / "k.py"
    path.write_text(f"{HERE}{code}\n", encoding="utf-8")
    try:
        first(home)
        assert ask_for(path) == 1
        assert ask_for(path) == 1
        change(home)
        assert ask_for(path) == ask_for(path, keep=False) == 2
    finally:
        os.environ.pop("OURS", None)


def test_a_line_of_a_pth_file(tmp_path: Path) -> None:
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for name, value in (("one", 1), ("two", 2)):
        write(f"{name}/chosen.py", f"BYTES = {value}\n")(tmp_path)
    path = tmp_path / "k.py"
    path.write_text("from chosen import BYTES\n", encoding="utf-8")
    ask_for = Asker(tmp_path / "cache", python=str(home / "bin" / "python"))
    (packages / "ours.pth").write_text(f"{tmp_path / 'one'}\n")
    assert ask_for(path) == 1
    (packages / "ours.pth").write_text(f"{tmp_path / 'two'}\n")
    assert ask_for(path) == ask_for(path, keep=False) == 2


KEPT = {
    "nothing": "BYTES = 1",
    "what-it-read": 'BYTES = int((HERE / "n.txt").read_text()) if os.environ["HOME"] else 0',
    "its-own-file": 'p = HERE / "own"\np.write_text("1")\nBYTES = int(p.read_text())',
    "a-temporary-file": (
        "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n"
        '    p = pathlib.Path(d, "x")\n    p.write_text("1")\n    BYTES = int(p.read_text())'
    ),
    "its-own-variable": 'os.environ["OURS"] = "1"\nBYTES = int(os.environ["OURS"])',
    "what-the-machine-says": 'BYTES = len(open("/proc/self/stat").read()) and 1',
}


@pytest.mark.parametrize("name", KEPT)
def test_an_answer_is_kept_where_nothing_changed(name: str, tmp_path: Path) -> None:
    home, ask_for = tmp_path / "home", Asker(tmp_path / "cache")
    write("n.txt", "1")(home)
    path = home / "k.py"
    path.write_text(f"{HERE}{KEPT[name]}\n", encoding="utf-8")
    time.sleep(0.05)  # what is saved while it is read is not kept, by a coarse clock
    assert ask_for(path) == 1
    (home / "notes.txt").write_text("beside it, and read by nobody", encoding="utf-8")
    assert ask_for(path) == 1
    assert ask_for.executed == 1


@pytest.mark.parametrize(
    "code", ["import subprocess\nsubprocess.run(['true'])", "os.system('true')"]
)
def test_what_rests_on_another_program_is_not_kept(code: str, tmp_path: Path) -> None:
    path, ask_for = tmp_path / "k.py", Asker(tmp_path / "cache")
    path.write_text(f"{HERE}{code}\nBYTES = 1\n", encoding="utf-8")
    assert (ask_for(path), ask_for(path), ask_for.executed) == (1, 1, 2)


def test_the_store_holds_no_value_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "a-secret-of-ours")
    path, ask_for = tmp_path / "k.py", Asker(tmp_path / "cache")
    path.write_text(f"{HERE}BYTES = len(os.environ['OURS'])\n", encoding="utf-8")
    time.sleep(0.05)
    assert ask_for(path) == len("a-secret-of-ours")
    held = b"".join(one.read_bytes() for one in (tmp_path / "cache").iterdir())
    assert b"OURS" in held
    assert b"a-secret-of-ours" not in held
    shutil.rmtree(tmp_path / "cache")


def test_what_is_watched_is_still_what_others_ask_for(tmp_path: Path) -> None:
    """Functions of os that are replaced can do what they could, and say so."""
    path, ask_for = tmp_path / "k.py", Asker(tmp_path / "cache")
    path.write_text(
        f"{HERE}import shutil\n"
        "assert os.stat in os.supports_follow_symlinks and os.stat in os.supports_dir_fd\n"
        "assert os.stat in os.supports_fd and os.access in os.supports_dir_fd\n"
        "fd = os.open(HERE, os.O_RDONLY)\n"
        "assert os.stat('k.py', dir_fd=fd, follow_symlinks=False).st_size and os.stat(fd)\n"
        "os.makedirs(HERE / 'a' / 'b', exist_ok=True)\nshutil.rmtree(HERE / 'a')\n"
        "BYTES = 1\n",
        encoding="utf-8",
    )
    assert ask_for(path) == 1
