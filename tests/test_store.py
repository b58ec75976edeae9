"""The store: an answer counts only while everything that it depends on is unchanged."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from tilefit._store import Store, question_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def ask(file: Path, **changes: object) -> str:
    given: dict[str, object] = {
        "file": file,
        "what": "matmul",
        "params": {"num_stages": 3},
        "target": "sm_90a",
        "python": "/usr/bin/python3",
        "options": {},
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
        {"what": "other"},
        {"params": {"num_stages": 4}},
        {"params": {"num_stages": "3"}},
        {"target": "sm_80"},
        {"python": "/other/python"},
        {"options": {"tl.disable_tma_lower": True}},
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
    monkeypatch.setenv("TL_SOMETHING", "1")
    assert store.get(ask(file)) is None
    monkeypatch.delenv("TL_SOMETHING")
    monkeypatch.setenv("EDITOR", "vi")
    assert store.get(ask(file)) == "answer"


@pytest.mark.parametrize("column", ["depends", "answer", "digest"])
def test_a_corrupted_row_is_ignored(store: Store, tmp_path: Path, column: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a")
    store.put(ask(file), [str(file)], {"kernels": []})
    with sqlite3.connect(store.path) as connection:
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
    with sqlite3.connect(store.path) as connection:
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
