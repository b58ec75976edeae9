"""A CSV file of problem sizes: a header of parameter names, then a row for each set of values."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tilefit._errors import InputError


def read_shapes(path: Path) -> tuple[dict[str, Any], ...]:
    """Read the sets of parameters; values are whole numbers or text.

    Raises:
        InputError: No such file, no header, a row of another length, or no rows.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"{path} is empty: give a header of parameter names and a row of values")
    header = [name.strip() for name in rows[0]]
    for name in header:
        if not name.isidentifier():
            raise InputError(f"{path}: the header has {name!r}, which is no parameter name")
    if len(rows) < 2:
        raise InputError(f"{path} has a header and no rows: give one row of values a shape")
    found = []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(
                f"{path}:{number} has {len(row)} values, the header has {len(header)} names"
            )
        found.append({name: _value(cell.strip()) for name, cell in zip(header, row, strict=True)})
    return tuple(found)


def _value(text: str) -> Any:
    try:
        return int(text, 0)
    except ValueError:
        return text
