"""Which files an answer depends on: those that user code loaded outside installed packages."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from tilefit._home import PACKAGE

_INSTALLED = ("site-packages", "dist-packages")
_TOOLCHAINS = ("tilelang", "torch")
_METADATA = ("METADATA", "PKG-INFO")

_executed: set[str] = set()


def loaded_files(path: Path) -> list[str]:
    """Return the files whose edit makes what was read from a user's file stale.

    Called again after more code ran, it may name more: factories import when they are called.
    Data that the code opens is noted elsewhere (`_reading.reads`).

    Args:
        path: The user's file.

    Returns:
        Absolute paths in order: the file, every module's file outside installed packages, the
        standard library and tilefit, and the metadata that names the toolchain's versions.
    """
    folders = not_the_user()
    loaded = {*_executed, *files_of_modules()}
    own = (Path(file) for file in loaded if not is_installed(file, folders))
    files = {str(file.absolute()) for file in (path, *own) if file.is_file()}
    return sorted(files | set(_metadata()))


def note_executed_files() -> None:
    """From now on remember every source file that is executed by import.

    A file that is executed through its spec alone, or whose module is taken out of
    ``sys.modules`` again, leaves no other trace.
    """
    original = SourceFileLoader.get_code
    if getattr(original, "notes_files", False):
        return

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        file = getattr(self, "path", None)
        if type(file) is str:
            _executed.add(file)
        return original(self, fullname)

    get_code.notes_files = True  # type: ignore[attr-defined]
    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


def files_of_modules() -> list[str]:
    """Return the file of every module that is loaded now."""
    return [file for module in list(sys.modules.values()) if (file := _file_of(module))]


def _file_of(module: Any) -> str | None:
    """Return a module's file without asking the module, which may be a stand-in, or lazy."""
    try:
        file = object.__getattribute__(module, "__dict__").get("__file__")
    except Exception:
        return None
    return file if type(file) is str else None


def not_the_user() -> tuple[str, ...]:
    """Return the folders of the standard library and of tilefit, each ending in a separator."""
    names = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")}
    # the interpreter's own name for its library, where the path to it is a link
    names |= {str(Path(os.__file__).parent), PACKAGE}
    return tuple(name.rstrip(os.sep) + os.sep for name in names if name)


def is_installed(file: str, folders: tuple[str, ...]) -> bool:
    """Say whether a file is of an installed package, or in one of those folders."""
    return file.startswith(folders) or any(f"{os.sep}{name}{os.sep}" in file for name in _INSTALLED)


def _metadata() -> list[str]:
    """Return the files that say which versions of the toolchain are installed."""
    found = []
    for name in _TOOLCHAINS:
        try:
            from importlib.metadata import distribution

            folder = distribution(name)._path  # type: ignore[attr-defined]  # its RECORD is slow
            found += [str(folder / file) for file in _METADATA if (folder / file).is_file()]
        except Exception:  # not installed, or user code replaced what is asked
            continue
    return found
