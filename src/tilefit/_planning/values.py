"""Values of kernels that need some, from a file: which kernel of which file, with what.

::

    [[kernel]]
    file = "ops/rows.py"          # from the folder of the values file on
    name = "softmax"
    sets = [
      { rows = 128, dtype = "float16" },
      { rows = 256, dtype = "float16" },
    ]

A value that is still ``"?"``, as in a template, counts as not given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilefit._devices.toml import read_toml, refuse_unknown_keys
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.dtype import names_dtype, parse_dtype
from tilefit._kernel.kernel import Listing

OPEN = "?"
"""What a template has in place of each value."""

Sets = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Sets of parameters by file and kernel.

    Attributes:
        source: The file that they are from, for messages.
        by_file: Of each file, by its real path: the sets of its kernels.
    """

    source: str
    by_file: Mapping[str, Mapping[str, Sets]] = field(default_factory=dict)

    def of(self, path: Path) -> Mapping[str, Sets]:
        """Return the sets for the kernels of a file; empty if there are none."""
        return self.by_file.get(os.path.realpath(path), {})

    def refuse_other_files(self, planned: Iterable[Path]) -> None:
        """Refuse values for a file that is not planned.

        Raises:
            InputError: There is one.
        """
        known = {os.path.realpath(path) for path in planned}
        for file in self.by_file:
            if file not in known:
                raise InputError(f"{self.source}: {file} is not among the files that are planned")

    def refuse_other_kernels(self, path: Path, names: Sequence[str]) -> None:
        """Refuse values for a kernel that a file does not have.

        Raises:
            UnknownNameError: There is one.
        """
        for name in self.of(path):
            if name not in names:
                raise UnknownNameError(f"kernel of {path.name}", name, names, f"in {self.source}")


def read_values(path: Path) -> Values:
    """Read a values file.

    Raises:
        InputError: It cannot be read, has another form, or names a file that is not there.
    """
    table = read_toml(path, "values file")
    refuse_unknown_keys(table, ("kernel",), "")
    entries = table.get("kernel", [])
    if not isinstance(entries, list):
        raise InputError(f"{path}: write [[kernel]] with two brackets for each kernel")
    by_file: dict[str, dict[str, Sets]] = {}
    for number, entry in enumerate(entries, 1):
        where = f"{path}: [[kernel]] number {number}"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is no table: it has file, name and sets")
        refuse_unknown_keys(entry, ("file", "name", "sets"), "kernel")
        file, name, sets = (entry.get(key) for key in ("file", "name", "sets"))
        if not isinstance(file, str) or not isinstance(name, str):
            raise InputError(f"{where} needs file and name, each a text")
        if not isinstance(sets, list) or not all(isinstance(one, dict) for one in sets) or not sets:
            raise InputError(f"{where}: sets is a list of tables, as in sets = [{{ M = 128 }}]")
        real = os.path.realpath(path.parent / file)
        if not Path(real).is_file():
            raise InputError(f"{where}: no such file: {path.parent / file}")
        if name in by_file.setdefault(real, {}):
            raise InputError(f"{where}: {file} has {name} twice; give one entry several sets")
        by_file[real][name] = tuple(_given(one) for one in sets)
    return Values(str(path), by_file)


def _given(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return a set of parameters without what is still open, dtypes by their names."""
    return {
        name: parse_dtype(value).name if isinstance(value, str) and names_dtype(value) else value
        for name, value in one.items()
        if value != OPEN
    }


def template(kernels: Iterable[tuple[Path, Listing]], folder: Path) -> str:
    """Return a values file for kernels that need some, each value still open.

    Args:
        kernels: Each with its file.
        folder: Where the values file will be: paths are written from there.
    """
    lines = [
        '# Values of kernels that need some: a number, true or "text" in place of each "?".',
        "# Several sets of one kernel are planned one after another. Use it with --values.",
    ]
    for path, listing in kernels:
        own = [p for p in listing.parameters if p.required]
        others = [p for p in listing.parameters if not p.required]
        file = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
        lines += ["", "[[kernel]]", f"file = {_text(file)}", f"name = {_text(listing.name)}"]
        if others:
            shown = ", ".join(f"{p.name} = {p.default!r}" for p in others)
            lines.append(f"# may be given too: {' '.join(shown.split())}")
        values = ", ".join(f"{_key(p.name)} = {_text(OPEN)}" for p in own)
        lines.append(f"sets = [{{ {values} }}]")
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a text as TOML writes it: a JSON string is one."""
    return json.dumps(value, ensure_ascii=True)


def _key(name: str) -> str:
    return name if name.isascii() else _text(name)
