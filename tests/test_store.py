"""The store: an answer counts only while everything that it depends on is unchanged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from tests.values import kernel
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import KERNEL_VERSION
from tilefit._kernel.request import Request
from tilefit._reading.opener import Opener
from tilefit._reading.question import question_of
from tilefit._reading.rests import Rests
from tilefit._reading.store import Store, clock, default_folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def asked(**changes: Any) -> str:
    given: dict[str, Any] = {"kernel": "matmul", "target": "sm_90a", "params": {"num_stages": 3}}
    return Request(**{**given, **changes}).key


def ask(file: Path, **changes: object) -> str:
    given: dict[str, object] = {
        "file": file,
        "what": ["tilelang", "load", []],
        "asked": asked(),
        "python": "/usr/bin/python3",
        "memory_bytes": 2**33,
    }
    return question_of(**{**given, **changes})  # type: ignore[arg-type]


def test_an_answer_is_found_again_by_another_process(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], {"kernels": [1, 2]})
    assert store.get(ask(file)) == {"kernels": [1, 2]}
    assert Store(tmp_path / "cache").get(ask(file)) == {"kernels": [1, 2]}


def test_an_edit_of_any_file_it_depends_on_misses(store: Store, tmp_path: Path) -> None:
    file, helper = tmp_path / "kernel.py", tmp_path / "far" / "away" / "helper.py"
    helper.parent.mkdir(parents=True)
    file.write_text("a")
    helper.write_text("b")
    store.put(ask(file), [str(file), str(helper)], "answer")
    assert store.get(ask(file)) == "answer"
    helper.write_text("c")
    assert store.get(ask(file)) is None
    helper.write_text("b")
    assert store.get(ask(file)) == "answer"
    helper.unlink()
    assert store.get(ask(file)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"what": ["another frontend", "load", []]},
        {"what": ["tilelang", "run", []]},
        {"what": ["tilelang", "load", [("name", "h100")]]},
        {"asked": None},
        {"asked": asked(kernel="other")},
        {"asked": asked(params={"num_stages": 4})},
        {"asked": asked(params={"num_stages": "3"})},
        {"asked": asked(target="sm_80")},
        {"asked": asked(signature="*fp16:16")},
        {"asked": asked(options={"tl.disable_tma_lower": True})},
        {"asked": asked(want_build=True)},
        {"python": "/other/python"},
        {"memory_bytes": 2**30},
    ],
)
def test_every_part_of_the_question_counts(
    store: Store, tmp_path: Path, change: dict[str, object]
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], "answer")
    assert store.get(ask(file, **change)) is None


def test_the_environment_of_the_toolchain_counts(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], "answer")
    for name in ("TL_SOMETHING", "TRITON_CACHE_DIR", "CUDA_VISIBLE_DEVICES", "PYTHONPATH"):
        with monkeypatch.context() as changed:
            changed.setenv(name, "/somewhere/else")
            assert store.get(ask(file)) is None
    monkeypatch.setenv("EDITOR", "vi")
    assert store.get(ask(file)) == "answer"


@pytest.mark.parametrize("column", ["depends", "answer", "digest"])
def test_a_corrupted_row_is_ignored(store: Store, tmp_path: Path, column: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], {"kernels": []})
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(f"UPDATE reading SET {column} = '{{\"x\": 1}}'")
    assert Store(tmp_path / "cache").get(ask(file)) is None


def test_a_file_that_is_no_database_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    first = Store(tmp_path / "cache")
    first.close()
    first.path.write_bytes(b"this is no database at all, but it is long enough" * 100)
    again = Store(tmp_path / "cache")
    again.put(ask(file), [str(file)], "answer")
    assert again.get(ask(file)) == "answer"


def test_a_folder_that_cannot_be_made_means_an_empty_store(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = Store(blocked / "cache")
    store.put("question", [], "answer")
    assert store.get("question") is None


def test_it_stays_below_its_size_and_drops_the_oldest(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store = Store(tmp_path / "cache", most_bytes=10_000)
    for number in range(40):
        store.put(ask(file, what=str(number)), [str(file)], "x" * 500)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        (total,) = connection.execute("SELECT SUM(size) FROM reading").fetchone()
    assert total <= 10_000
    assert store.get(ask(file, what="39")) == "x" * 500
    assert store.get(ask(file, what="0")) is None


def test_parallel_writers_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")

    def write(first: int) -> None:
        mine = Store(tmp_path / "cache")
        for number in range(first, first + 25):
            mine.put(ask(file, what=str(number)), [str(file)], number)
        mine.close()

    threads = [threading.Thread(target=write, args=(25 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = Store(tmp_path / "cache")
    assert [store.get(ask(file, what=str(n))) for n in range(100)] == list(range(100))


@pytest.mark.parametrize("given", ["/somewhere/else", "", None])
def test_the_folder_is_that_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    if given is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert default_folder() == platformdirs.user_cache_dir("tilefit")


def test_environments_that_link_to_one_interpreter_are_told_apart(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    (tmp_path / "python3").write_text("")
    links = [tmp_path / name / "bin" / "python" for name in ("one", "other")]
    for link in links:
        link.parent.mkdir(parents=True)
        link.symlink_to(tmp_path / "python3")
    store.put(ask(file, python=str(links[0])), [str(file)], "of one")
    assert store.get(ask(file, python=str(links[0]))) == "of one"
    assert store.get(ask(file, python=str(links[1]))) is None
    links[0].unlink()
    links[0].symlink_to("/usr/bin/env")  # the environment was made again with another Python
    assert store.get(ask(file, python=str(links[0]))) is None


def test_the_current_folder_counts(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User code finds modules there, and opens files by relative names."""
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], "answer")
    monkeypatch.chdir(tmp_path)
    assert store.get(ask(file)) is None


def test_what_was_saved_after_it_was_read_is_not_kept(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    read = clock() + 1
    store.put(ask(file), [str(file)], "answer of a", since=read)
    assert store.get(ask(file)) == "answer of a"
    assert store.complete
    time.sleep(0.02)  # the clock of the file system ticks every 10 ms at the slowest
    file.write_text("b")
    store.put(ask(file), [str(file)], "answer of a", since=read)
    assert store.get(ask(file)) is None
    assert not store.complete


def test_an_answer_ends_with_the_coming_of_a_file_that_was_looked_for(
    store: Store, tmp_path: Path
) -> None:
    file, helper = tmp_path / "kernel.py", tmp_path / "tuned.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], "without", absent=[str(helper)])
    again = Store(tmp_path / "cache")
    assert again.get(ask(file)) == "without"
    assert again.absent == {str(helper)}
    helper.write_text("")
    assert again.get(ask(file)) is None
    again.put(ask(file), [str(file)], "without", absent=[str(helper)])  # it came meanwhile
    assert again.get(ask(file)) is None


def test_a_file_that_is_damaged_inside_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    first = Store(tmp_path / "cache")
    for number in range(50):
        first.put(ask(file, what=str(number)), [str(file)], "x" * 500)
    first.close()
    content = bytearray(first.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)  # the header and the schema are whole
    first.path.write_bytes(content)
    store = Store(tmp_path / "cache")
    assert store.get(ask(file, what="7")) is None
    store.put(ask(file), [str(file)], "answer")
    assert store.get(ask(file)) == "answer"
    assert Store(tmp_path / "cache").get(ask(file)) == "answer"


def test_a_writer_that_is_killed_costs_at_most_its_own_row(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    Store(tmp_path / "cache").put(ask(file), [str(file)], "before")
    code = (
        "import itertools, sys; from pathlib import Path\n"
        "from tilefit._reading.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for n in itertools.count():\n"
        "    store.put(str(n), [sys.argv[2]], 'x' * 10000)\n"
        "    print(n, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache"), str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        for _ in range(20):
            writer.stdout.readline()
        writer.kill()
    store = Store(tmp_path / "cache")
    assert store.get(ask(file)) == "before"
    assert store.get("10") == "x" * 10000
    store.put(ask(file), [str(file)], "after")
    assert store.get(ask(file)) == "after"


class Lowering:
    """Stands for the child that executes a file; counts what it is asked to lower."""

    alive, holder = True, None

    def __init__(self, path: Path) -> None:
        self.rests = Rests(files=(str(path),))
        self.times = 0

    def execute(self, *_: object) -> dict[str, Any]:
        return {"kernels": [], "version": "0"}

    def ask(self, _: object) -> dict[str, Any]:
        self.times += 1
        return {"kernels": [kernel().to_dict()]}


def test_a_kernel_of_another_json_version_is_lowered_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gemm.py"
    path.write_text("x = 1\n", encoding="utf-8")
    time.sleep(0.05)  # what was saved while it was read is not kept
    child = Lowering(path)
    monkeypatch.setattr(Opener, "child", lambda *_: child)
    monkeypatch.setattr(Opener, "toolchain_of", lambda *_: TILELANG)

    def read() -> int:
        with Opener(store=store) as opener:
            file = opener.compiled(path)
            assert file.read(Request(kernel="matmul", target="sm_90a")) == (kernel(),)
        return child.times

    assert [read(), read()] == [1, 1]
    for module in ("tilefit._reading.opener", "tilefit._kernel.kernel"):
        monkeypatch.setattr(f"{module}.KERNEL_VERSION", KERNEL_VERSION + 1)
    assert [read(), read()] == [2, 2]


class Contended(sqlite3.Connection):
    """Is refused WAL a few times, as by SQLite while another connection switches to it."""

    refusals = 3

    def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
        if sql == "PRAGMA journal_mode=WAL" and Contended.refusals > 0:
            Contended.refusals -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(sql, *more)


def kept(store: Store, folder: Path) -> bool:
    file = folder / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], "kept")
    return store.get(ask(file)) == "kept"


def test_a_refusal_of_wal_is_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def contended(*words: Any, **more: Any) -> sqlite3.Connection:
        return connect(*words, **more, factory=Contended)

    monkeypatch.setattr(sqlite3, "connect", contended)
    store = Store(tmp_path / "cache")
    assert Contended.refusals == 0
    assert kept(store, tmp_path)
    store.close()


def test_many_may_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    """Without waiting 5 to 7 of 1,200 are refused WAL at once, and keep nothing."""
    for number in range(60):
        stores: list[Store] = []
        ready = threading.Barrier(8)

        def open_one(folder: Path, found: list[Store], all_here: threading.Barrier) -> None:
            all_here.wait()
            found.append(Store(folder))

        folder = tmp_path / f"cache{number}"
        threads = [
            threading.Thread(target=open_one, args=(folder, stores, ready)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(kept(store, tmp_path) for store in stores)
        for store in stores:
            store.close()
