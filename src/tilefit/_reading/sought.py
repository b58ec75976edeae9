"""Where user code looked for a module that was not there: a file that comes later changes answers.

``try: import tuned`` without ``tuned.py`` takes one way; with it, another.
"""

from __future__ import annotations

import os
import sys
from typing import Any

INSTALLED = ("site-packages", "dist-packages")


class Sought:
    """Finds no module, and notes each that is looked for; it leads ``sys.meta_path``."""

    def __init__(self) -> None:
        self._looked: dict[tuple[str, tuple[str, ...]], None] = {}
        self._here = os.getcwd()  # noqa: PTH109  # user code may change the folder

    def find_spec(self, name: str, path: Any = None, *_: Any) -> None:
        """Note a name and the folders in which it is looked for."""
        try:
            if path is not None or name not in sys.stdlib_module_names:
                folders = sys.path if path is None else path
                known = tuple(os.path.join(self._here, f) for f in folders if type(f) is str)  # noqa: PTH118
                self._looked[name.rpartition(".")[2], known] = None
        except Exception:  # user code may have put anything there
            return

    def absent(self) -> list[str]:
        """Return the files and folders whose coming would change what was found."""
        found: dict[str, None] = {}
        for name, folders in self._looked:
            for folder in folders:
                if any(f"{os.sep}{one}" in folder for one in INSTALLED):
                    continue  # their own time tells of newcomers
                if not os.path.isdir(folder):  # noqa: PTH112
                    continue  # such as an archive
                module = os.path.join(folder, name)  # noqa: PTH118
                package = f"{module}{os.sep}__init__.py" if os.path.isdir(module) else module  # noqa: PTH112
                for path in (package, f"{module}.py"):
                    if os.path.lexists(path):
                        break  # what follows would not be asked
                    found[path] = None
                else:
                    continue
                break
        return list(found)
