"""The scope table as text (80 columns) and as JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from tilefit._kernel.memory import Evidence
from tilefit._kernel.scopes import ScopeRow

_WIDTH = 80
_HEADER = ("function", "scope", "memory", "owner", "align", "note")
_COLUMNS = (24, 22, 9, 6, 5, 4)  # with two blanks between them: 80
_RIGHT = 4  # columns from here on are right-aligned
_LEGEND = "align: bytes, at least; undecided: use or compiler decides; none: no storage"


def text(rows: Sequence[ScopeRow], titles: Mapping[str, str]) -> str:
    """Return one table per dialect, each with its notes below, and a legend."""
    blocks = [
        _block(dialect, titles[dialect], list(group))
        for dialect, group in groupby(rows, key=lambda row: row.dialect)
    ]
    return "\n\n".join([*blocks, _LEGEND]) + "\n"


def json_values(rows: Sequence[ScopeRow]) -> dict[str, object]:
    """Return what ``tilefit scopes --json`` prints."""
    return {
        "schema_version": 1,
        "evidence": Evidence.DECLARED.value,
        "rows": [
            {
                "dialect": row.dialect,
                "function": row.function,
                "when": row.when,
                "scope": row.scope,
                "memory": row.memory.value,
                "owner": row.owner.value,
                "align_bytes": row.align_bytes,
                "restrictions": row.restrictions,
            }
            for row in rows
        ],
    }


def _block(dialect: str, title: str, rows: list[ScopeRow]) -> str:
    notes: dict[str, int] = {}
    lines = [f"{dialect}: {title}", *_cells(_HEADER)]
    for row in rows:
        note = ": ".join(part for part in (row.when and f"if {row.when}", row.restrictions) if part)
        number = notes.setdefault(note, len(notes) + 1) if note else None
        lines += _cells(
            (
                row.function,
                row.scope,
                row.memory.value,
                row.owner.value,
                "-" if row.align_bytes is None else str(row.align_bytes),
                f"({number})" if number else "",
            )
        )
    for note, number in notes.items():
        lines += _note(f"({number})", note)
    return "\n".join(lines)


def _cells(cells: Iterable[str]) -> list[str]:
    """Lay the cells out in columns; one too long for its column ends its line."""
    lines: list[str] = []
    line = ""
    start = 0
    for index, (cell, width) in enumerate(zip(cells, _COLUMNS, strict=True)):
        line = line.ljust(start) + (cell.rjust(width) if index >= _RIGHT else cell)
        start += width + 2
        if len(line) > start - 2:
            lines.append(line)
            line = ""
    return [*lines, line.rstrip()]


def _note(mark: str, note: str) -> list[str]:
    from textwrap import wrap

    return wrap(
        note,
        _WIDTH,
        initial_indent=f"{mark:>4} ",
        subsequent_indent=" " * 5,
        break_long_words=False,
    )
