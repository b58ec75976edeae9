"""Values of parameters as people write them: after ``--set``, and in a CSV file of shapes.

The file has a header of parameter names, then a row for each set of values.
"""

from __future__ import annotations

import ast
import csv
from pathlib import Path
from typing import Any

from tilefit._errors import InputError
from tilefit._kernel.bounded import read_text
from tilefit._kernel.dtype import parse_dtype


def read_shapes(path: Path) -> tuple[dict[str, Any], ...]:
    """Read the sets of parameters, each value as `parse_value` reads it.

    Raises:
        InputError: No such file, no header, a name twice, a row of another length, or no rows.
    """
    try:
        text = read_text(path, str(path))  # a spreadsheet may begin it with a mark
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"{path} is empty: give a header of parameter names and a row of values")
    header = [name.strip() for name in rows[0]]
    for name in header:
        if not name.isidentifier():
            raise InputError(f"{path}: the header has {name!r}, which is no parameter name")
        if header.count(name) > 1:
            raise InputError(f"{path}: the header has {name} twice: which column counts?")
    if len(rows) < 2:
        raise InputError(f"{path} has a header and no rows: give one row of values a shape")
    found = []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(
                f"{path}:{number} has {len(row)} values, the header has {len(header)} names"
            )
        found.append(
            {name: parse_value(cell.strip()) for name, cell in zip(header, row, strict=True)}
        )
    return tuple(found)


def parse_value(text: str) -> Any:
    """Return a Python literal or ``inf``, else the canonical name of a dtype, else the text."""
    if text in _INFINITE:
        return _INFINITE[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, SystemError):
        pass
    try:
        return parse_dtype(text).name
    except InputError:
        return text


_INFINITE = {"inf": float("inf"), "-inf": float("-inf")}
