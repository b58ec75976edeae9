"""Printed answers of `plan FOLDER`, kept for as long as nothing that they rest on changes.

A second run over unchanged files then costs little more than looking at them: nothing heavy is
imported, no reading is decoded, no table is laid out. The answer is a row of the store like any
other; it rests on every Python file of the folder, on all that those files loaded, and on the
user's configuration.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress

from tilefit._reading.environment import value_of
from tilefit._reading.question import current_folder, digest, own_code, steering
from tilefit._reading.store import Store, clock

TYPE_CHECKING = False  # importing typing costs 2 ms at every start
if TYPE_CHECKING:
    from typing import Any

_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
_COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class KeptAnswer:
    """The answer to one command line about one folder."""

    def __init__(self, store: Store, folder: str, asked: Sequence[Any]) -> None:
        """Name the question.

        Args:
            store: Where it is kept.
            folder: The folder.
            asked: Every argument that changes what is printed.
        """
        self._store = store
        self._since = clock()
        self._files = [*source_files(folder), *_configurations()]
        parts = [current_folder(), folder, list(asked), self._files, steering(), own_code()]
        self._question = digest(json.dumps(["answer", *parts], default=repr))

    def get(self) -> tuple[str, int] | None:
        """Return what was printed and the exit code; None if nothing is kept that still holds."""
        found = self._store.get(self._question)
        return None if found is None else (found["text"], found["code"])

    def keep(self, text: str, code: int) -> None:
        """Keep an answer, unless a part of it is not to be relied on another time."""
        if self._store.complete:
            files = dict.fromkeys((*self._files, *self._store.used))
            self._store.put(
                self._question,
                list(files),
                {"text": text, "code": code},
                absent=sorted(self._store.absent),
                present=sorted(self._store.present),
                environment={n: value_of(n, os.environ) for n in self._store.environment},
                installed=sorted(self._store.installed),
                since=self._since,
            )


def usable(devices: Sequence[str], output: str | None, terminal: bool) -> bool:
    """Say whether an answer can be kept: plain text, for devices that tilefit itself knows.

    Args:
        devices: The values of ``-d``.
        output: The file that is written, None for standard output.
        terminal: Whether standard output is a terminal.
    """
    words = ",".join(devices).casefold()
    if not devices:  # then the configured targets, which may be files, or what is attached
        words = "".join(map(_text, _configurations())) or "attached"
    coloured = terminal or any(os.environ.get(name) for name in _COLOURS)
    return output is None and not coloured and ".toml" not in words and "attached" not in words


def _text(file: str) -> str:
    with suppress(OSError), open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
        return opened.read().casefold()
    return "attached"


def source_files(folder: str, suffixes: tuple[str, ...] = (".py",)) -> list[str]:
    """Return the files below a folder in order, leaving out what is not the author's.

    Args:
        folder: Where to look.
        suffixes: What their names end in.
    """
    found: list[str] = []
    below: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.is_dir(follow_symlinks=False):
                    if _is_the_authors(entry):
                        below.append(entry.path)
                elif entry.name.endswith(suffixes) and not _is_special(entry):
                    found.append(entry.path)
    except OSError:
        return []
    return found + [path for one in below for path in source_files(one, suffixes)]


def _is_the_authors(folder: os.DirEntry[str]) -> bool:
    name = folder.name
    if name.startswith(".") or name in _LEFT_OUT:
        return False
    return not os.path.exists(os.path.join(folder.path, "pyvenv.cfg"))  # noqa: PTH110, PTH118


def _is_special(entry: os.DirEntry[str]) -> bool:
    """Say whether it is a pipe, a device or a link to a folder: reading it may never end."""
    try:
        return not entry.is_file() and os.path.exists(entry.path)  # noqa: PTH110
    except OSError:  # a link to itself: it is asked about, and its failure has a reason
        return False


def _configurations() -> list[str]:
    """Return the files that can hold the user's configuration."""
    folder = current_folder()
    found: list[str] = []
    while folder:
        file = os.path.join(folder, "pyproject.toml")  # noqa: PTH118
        if os.path.isfile(file):  # noqa: PTH113
            found.append(file)
        above = os.path.dirname(folder)  # noqa: PTH120
        folder = above if above != folder else ""
    return found
