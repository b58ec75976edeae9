"""Importing a user's file together with the packages that it is in, also where one breaks."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from tilefit._errors import KernelError
from tilefit._frontends.loaded import note_executed_files
from tilefit._frontends.user_code import describe, process_kept


def load_module(path: Path) -> tuple[ModuleType, list[str]]:
    """Import a file the way ``python FILE`` would find its neighbours.

    The file's folder leads ``sys.path``; inside a package the file is imported under its
    dotted name, so that relative imports work. ``sys.argv`` holds the file alone.

    Returns:
        The module, and a line for each package around it that could not be imported.

    Raises:
        KernelError: The file raised or exited; the message names the line.
    """
    note_executed_files()
    path = path.resolve()
    folders = folders_of(path)
    package = package_of(folders)
    if folders:
        sys.path.insert(0, str(folders[0].parent))
    if not (path.parent / "__init__.py").exists():  # as Python does for a script
        sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    try:
        with process_kept(), broken_ones_left_out(package, folders) as notes:
            if package:
                return importlib.import_module(f"{package}.{path.stem}"), notes
            return _alone(path), notes
    except KernelError:
        raise
    except BaseException as error:  # user code may raise anything; nobody interrupts this process
        raise KernelError(describe(error, path)) from error


def _alone(path: Path) -> ModuleType:
    """Import a file that is in no package."""
    name = path.stem
    if name in sys.modules or not name.isidentifier():
        name = f"_tilefit_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise KernelError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---- the packages around it ----------------------------------------------------------------


def folders_of(path: Path) -> list[Path]:
    """Return the folders that are packages around a file, the outermost first.

    Those are the ones with an ``__init__.py``, and as many as its relative imports go up.
    """
    level, root = _relative_level(path), path.parent
    while (root / "__init__.py").exists() and root.parent != root:
        level = max(level, len(path.parts) - len(root.parts))
        root = root.parent
    return list(reversed(path.parents[:level]))


def package_of(folders: list[Path]) -> str:
    """Make folders importable as packages inside each other, also without ``__init__.py``.

    Returns:
        The name of the innermost; empty for no folders. Where the outermost is looked for is
        for the caller to put on ``sys.path``.
    """
    name = ""
    for folder in folders:
        real = (folder / "__init__.py").exists()
        own = folder.name if real else f"_folder_{folder.name.replace('.', '_')}"
        name = f"{name}.{own}" if name else own
        if not real and name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [str(folder)]
            sys.modules[name] = package
    return name


def _relative_level(path: Path) -> int:
    """Return how many dots the relative imports of a file have at most."""
    try:
        nodes = ast.walk(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return 0  # it is said where it is executed
    return max((node.level for node in nodes if isinstance(node, ast.ImportFrom)), default=0)


@contextmanager
def broken_ones_left_out(package: str, folders: list[Path]) -> Iterator[list[str]]:
    """Let a file be imported whose packages cannot be: what their ``__init__`` did counts so far.

    A kernel of a library often lies in a package that imports everything, and so whatever that
    needs and is not here.

    Args:
        package: Name of the innermost package.
        folders: All of them.

    Yields:
        A line for each package whose ``__init__.py`` raised; it grows meanwhile.
    """
    names = package.split(".") if package else []
    dotted = {".".join(names[: n + 1]) for n in range(len(names))}
    finder = _Forgiving(dotted, {str(f / "__init__.py"): f for f in folders})
    sys.meta_path.insert(0, finder)
    try:
        yield finder.notes
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)


class _Forgiving:
    """Finds packages as they are, and goes on where executing one of them raises."""

    def __init__(self, names: set[str], files: dict[str, Path]) -> None:
        self._names, self._files = names, files
        self.notes: list[str] = []

    def find_spec(self, name: str, path: Any = None, *_: Any) -> ModuleSpec | None:
        """Answer for the packages around the file."""
        spec = PathFinder.find_spec(name, path) if name in self._names else None
        if spec is None or spec.loader is None or spec.origin not in self._files:
            return None
        execute, folder = spec.loader.exec_module, self._files[spec.origin]

        def exec_module(module: ModuleType) -> None:
            try:
                execute(module)
            except (Exception, SystemExit) as error:
                line = describe(error, folder / "__init__.py")
                self.notes.append(f"{folder.name}/__init__.py was left out: {line}")

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
