"""Which matrix instructions a target has: the table in data/matrix.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tilefit._devices.load import data_file
from tilefit._devices.toml import read_toml
from tilefit._kernel.kernel import MatrixUse


def has_matrix(target: str, use: MatrixUse) -> bool | None:
    """Say whether a target has a matrix instruction; None where the table does not know.

    Args:
        target: ``sm_90a`` or ``gfx942``.
        use: The instruction.
    """
    rows = _of(_vendor(target), use)
    return any(_is_in(row, target) for row in rows) if rows else None


def where_it_is(use: MatrixUse, target: str) -> str:
    """Say in words which targets have a matrix instruction, for one that does not."""
    vendor = _vendor(target)
    words = []
    for row in _of(vendor, use):
        if "since" in row:
            words.append(f"sm_{row['since']} and later")
        else:
            prefix = "sm_" if vendor == "nvidia" else ""
            words += [f"{prefix}{one}" for one in row["only"]]
    return ", ".join(dict.fromkeys(words))


def _vendor(target: str) -> str:
    return "nvidia" if target.startswith("sm_") else "amd"


def _of(vendor: str, use: MatrixUse) -> list[Mapping[str, Any]]:
    """Return the rows that are about an instruction."""

    def about(row: Mapping[str, Any]) -> bool:
        # of an unlisted shape the rows without shapes speak, of an unlisted type none
        return (
            row["path"] == use.path
            and ("dtypes" not in row or use.dtype in row["dtypes"])
            and ("shapes" not in row or use.shape in row["shapes"])
        )

    return [row for row in _table().get(vendor, ()) if about(row)]


def _is_in(row: Mapping[str, Any], target: str) -> bool:
    version: Any = target
    if target.startswith("sm_"):
        digits = target.removeprefix("sm_").rstrip("af")
        version = int(digits) if digits.isdecimal() else 0
    return version >= row["since"] if "since" in row else version in row["only"]


@cache
def _table() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    table: Mapping[str, Sequence[Mapping[str, Any]]] = read_toml(data_file("matrix.toml"))
    return table
