"""A module that was looked for and not there is told by the names under which it may come."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilefit._reading.sought import Sought


@pytest.fixture
def sought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sought]:
    """Two folders lead ``sys.path``: ``first`` and ``second``."""
    for name in ("second", "first"):
        (tmp_path / name).mkdir()
        monkeypatch.syspath_prepend(str(tmp_path / name))
    before = set(sys.modules)
    found = Sought()
    sys.meta_path.insert(0, found)
    yield found
    sys.meta_path.remove(found)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def absent(sought: Sought, folder: Path) -> set[str]:
    names = (Path(path) for path in sought.absent())
    return {str(path.relative_to(folder)) for path in names if folder in path.parents}


def test_a_module_that_is_nowhere_may_come_to_every_folder(sought: Sought, tmp_path: Path) -> None:
    with contextlib.suppress(ImportError):
        importlib.import_module("tuned_sizes")
    assert absent(sought, tmp_path) == {
        *("first/tuned_sizes", "first/tuned_sizes.py"),
        *("second/tuned_sizes", "second/tuned_sizes.py"),
    }


def test_a_module_that_was_found_may_be_hidden_by_an_earlier_one(
    sought: Sought, tmp_path: Path
) -> None:
    (tmp_path / "second" / "tuned_sizes.py").write_text("")
    importlib.import_module("tuned_sizes")
    assert absent(sought, tmp_path) == {
        *("first/tuned_sizes", "first/tuned_sizes.py"),
        "second/tuned_sizes",  # a package goes before a module
    }


def test_a_submodule_may_come_to_its_package(sought: Sought, tmp_path: Path) -> None:
    package = tmp_path / "first" / "tuned_sizes"
    package.mkdir()
    (package / "__init__.py").write_text("")
    with contextlib.suppress(ImportError):
        importlib.import_module("tuned_sizes.hopper")
    assert absent(sought, tmp_path) == {
        "first/tuned_sizes/hopper",
        "first/tuned_sizes/hopper.py",
    }


def test_installed_packages_and_the_standard_library_are_not_watched(
    sought: Sought, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    (tmp_path / "site-packages" / "tuned_sizes.py").write_text("")
    importlib.import_module("tuned_sizes")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    importlib.import_module("colorsys")
    assert not [path for path in sought.absent() if "site-packages" in path]
    assert not [path for path in sought.absent() if Path(path).stem == "colorsys"]


@pytest.mark.parametrize("path", [[None, 3], 7, object()])
def test_what_user_code_puts_for_a_path_is_borne(sought: Sought, path: object) -> None:
    assert sought.find_spec("anything", path) is None
    assert sought.absent() == []
