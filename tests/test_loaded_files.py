"""An answer depends on every file of the user's that Python executed for it, and on no other."""

from __future__ import annotations

import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

import pytest

from tests.opened import Session, ask
from tilefit._devices.facts import facts_of
from tilefit._devices.names import device
from tilefit._frontends import loaded as _loaded
from tilefit._frontends.loaded import loaded_files

MAIN = """
import importlib.util, json, pathlib, sys
import tilelang.language as T
from far.away.sizes import ROWS
import near
del sys.modules["near"]

where = pathlib.Path(__file__).with_name("by_spec.py")
spec = importlib.util.spec_from_file_location("unregistered", where)
by_spec = importlib.util.module_from_spec(spec)
spec.loader.exec_module(by_spec)
table = json.loads(pathlib.Path(__file__).with_name("table.json").read_text())

def copy(columns=64):
    from far.away import late

    @T.prim_func
    def main(A: T.Tensor((ROWS, columns), late.DTYPE), B: T.Tensor((ROWS, columns), late.DTYPE)):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((ROWS, columns), late.DTYPE)
            T.copy(A, tile)
            T.copy(tile, B)

    return main

if __name__ == "__main__":
    copy()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "main.py": MAIN,
        "far/__init__.py": "",
        "far/away/sizes.py": "ROWS = 32",
        "far/away/late.py": "DTYPE = 'float16'",
        "near.py": "",
        "by_spec.py": "",
        "table.json": "[]",
        "never.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def of_the_user(folder: Path, files: tuple[str, ...]) -> set[str]:
    return {Path(f).relative_to(folder).as_posix() for f in files if f.startswith(str(folder))}


AT_LOAD = {
    *("main.py", "far/__init__.py", "far/away/sizes.py", "near.py", "by_spec.py"),
    "table.json",
}


@pytest.mark.tilelang
def test_modules_are_named_however_they_were_imported(folder: Path) -> None:
    with Session(folder / "main.py") as session:
        session.load()
        assert of_the_user(folder, session.files) == AT_LOAD
        # a factory imports when it is called
        session.read(ask("copy", {}, "sm_90a"))
        assert of_the_user(folder, session.files) == {*AT_LOAD, "far/away/late.py"}
        # its own main calls the factory
        session.run(facts_of(device("h100")))
        assert of_the_user(folder, session.files) == {*AT_LOAD, "far/away/late.py"}
        versions = {Path(f) for f in session.files if Path(f).name == "METADATA"}
        assert versions == {
            Path(str(distribution(name).locate_file("")))
            / f"{name}-{distribution(name).version}.dist-info"
            / "METADATA"
            for name in ("tilelang", "torch")
        }
        packages = Path(sysconfig.get_path("purelib"))
        # the folder of packages, and what its .pth files add to the path
        installed = {packages, *packages.glob("*.pth")}
        others = {Path(f) for f in session.files} - versions - installed
        assert all(f.is_relative_to(folder) for f in others)


@pytest.mark.tilelang
def test_a_failure_depends_on_files_too(folder: Path) -> None:
    (folder / "near.py").write_text("raise RuntimeError('not yet')", encoding="utf-8")
    with Session(folder / "main.py") as session:
        with pytest.raises(Exception, match="not yet"):
            session.load()
        assert {"main.py", "near.py"} <= of_the_user(folder, session.files)


@pytest.mark.tilelang
def test_a_relative_path_is_the_same_file_after_a_change_of_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "main.py").write_text(MAIN + "import os\nos.chdir('far')\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    with Session(Path("main.py")) as session:
        session.load()
        assert of_the_user(folder, session.files) == AT_LOAD


def test_it_asks_no_module_and_fails_on_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Curious(ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"was asked for {name}")

    lazy = Curious("lazy")
    ModuleType.__getattribute__(lazy, "__dict__")["__file__"] = str(tmp_path / "lazy.py")
    (tmp_path / "lazy.py").touch()
    odd = ModuleType("odd")
    odd.__file__ = 3  # type: ignore[assignment]
    gone = ModuleType("gone")
    gone.__file__ = str(tmp_path / "gone.py")
    for name, module in {"lazy": lazy, "odd": odd, "gone": gone, "none": None, "o": 3}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_loaded, "_TOOLCHAINS", ("a distribution that is not installed",))
    files = loaded_files(tmp_path / "lazy.py")
    assert [f for f in files if f.startswith(str(tmp_path))] == [str(tmp_path / "lazy.py")]
    assert not any(f.endswith("METADATA") for f in files)


def test_installed_packages_the_standard_library_and_tilefit_are_no_users_files() -> None:
    files = loaded_files(Path(__file__))
    assert __file__ in files
    assert json_of_the_library() not in files
    assert pytest.__file__ not in files
    assert _loaded.__file__ not in files


def json_of_the_library() -> str:
    import json

    return json.__file__
