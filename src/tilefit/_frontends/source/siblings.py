"""Modules of the author's own: found beside the file or in its package, and followed like it.

Nothing is imported. What Python would import from anywhere else is left to `modules`.
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path as FilePath

from tilefit._frontends.source.interpreter import follow_module
from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.modules import LIBRARIES
from tilefit._frontends.source.values import Scope
from tilefit._kernel.naming import MAX_SOURCE_BYTES

_MAX_MODULES = 200
# a package of that name beside a file is not what its kernels import
_NEVER = LIBRARIES | {"tilelang"}


class Siblings:
    """The author's modules that one reading of a file has followed.

    Attributes:
        files: Those that were read, and those that were looked for in vain.
    """

    def __init__(self, file: FilePath) -> None:
        self.files: dict[FilePath, None] = {}
        self._file = file.resolve()
        self._root = _root_of(self._file)
        self._modules: dict[FilePath, Scope] = {}

    def module(self, machine: Machine, name: str, level: int) -> Scope | None:
        """Return the names of a module that a statement imports; None if it is none of these.

        Args:
            machine: The reading; the module that its scope belongs to is the one that imports.
            name: Dotted, without the dots in front of it.
            level: How many of those there are.
        """
        parts = name.split(".") if name else []
        if level == 0 and (not parts or parts[0] in _NEVER):
            return None
        here = machine.scope.module.file or self._file
        folder = self._root if level == 0 else here.parents[min(level, len(here.parents)) - 1]
        found = self._found(folder, parts)
        if found is None:
            return None
        if found not in self._modules:
            self._modules[found] = self._followed(machine, found)
        return self._modules[found]

    def _found(self, folder: FilePath, parts: list[str]) -> FilePath | None:
        for part in parts[:-1]:
            folder = folder / part
        places = [folder / "__init__.py"]
        if parts:
            places = [folder / parts[-1] / "__init__.py", folder / f"{parts[-1]}.py"]
        for place in places:
            self.files[place] = None
            if place.is_file():
                return place
        # a folder alone is a package too
        return places[0] if parts and places[0].parent.is_dir() else None

    def _followed(self, machine: Machine, file: FilePath) -> Scope:
        """Follow a module with a scope of its own; one that cannot be read binds nothing."""
        scope = self._modules[file] = Scope(file=file)  # a module may import the one that it is in
        tree = _tree_of(file) if len(self._modules) <= _MAX_MODULES else None
        if tree is None:
            return scope
        with machine.elsewhere(scope, file.name):
            follow_module(machine, tree)
        return scope


def _root_of(file: FilePath) -> FilePath:
    """Return the folder that Python looks in first: above the package that a file is in."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def _tree_of(file: FilePath) -> ast.Module | None:
    try:
        if file.stat().st_size > MAX_SOURCE_BYTES:
            return None
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(file.read_bytes(), filename=str(file))
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError, SystemError):
        return None
