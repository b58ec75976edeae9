"""Words, numbers and columns that the text renderers share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.text import Text

from tilefit._kernel.kernel import Dim
from tilefit._planning.report import NextStep, Residency, Result
from tilefit._verdict.judge import Status

WIDTH = 80
_BAR = 36
_OVER = 14
_LEAST = 12  # columns that a last cell needs to be broken into lines
STYLE = {
    Status.FITS: "bold green",
    Status.DOES_NOT_FIT: "bold red",
    Status.CANNOT_LOWER: "bold red",
    Status.CANNOT_BUILD: "bold red",
    Status.UNKNOWN: "bold yellow",
}
WORD = {
    Status.FITS: "FITS",
    Status.DOES_NOT_FIT: "DOES NOT FIT",
    Status.CANNOT_LOWER: "CANNOT LOWER",
    Status.CANNOT_BUILD: "CANNOT BUILD",
    Status.UNKNOWN: "UNKNOWN",
}


def columns(
    rows: Sequence[tuple[str, ...]],
    *,
    right: tuple[int, ...] = (),
    header_style: str = "",
    indent: str = "  ",
    first_width: int = 9,
) -> Iterable[Text]:
    """Yield rows as aligned lines, the first one as their header.

    The last cell of a line that is too long goes on below itself, from its newline if it has one.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if 0 in right:
        widths[0] = max(widths[0], first_width)
    for index, row in enumerate(rows):
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row[:-1], widths, strict=False))
        ]
        start = indent + "  ".join([*cells, ""])
        last = row[-1].rjust(widths[-1]) if len(cells) in right else row[-1]
        line = (start + last.replace("\n", "  ")).rstrip()
        if len(line) > WIDTH and WIDTH - len(start) >= _LEAST:
            lines = [
                part
                for piece in last.split("\n")
                for part in textwrap.wrap(piece, WIDTH - len(start), break_long_words=False)
            ]
            line = start + f"\n{'':{len(start)}}".join(lines)
        yield Text(line, style=header_style if index == 0 else "")


def spaced(parts: Sequence[str], indent: int) -> str:
    """Join parts by three spaces, in as many lines as they need."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}   {part}"
        if len(longer) <= WIDTH:
            lines[-1] = longer
        else:
            lines.append(" " * indent + part)
    return "\n".join(lines)


def folded(text: str, indent: int) -> str:
    """Break a sentence into lines."""
    return "\n".join(
        textwrap.wrap(
            text,
            WIDTH,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def shape(extents: tuple[Dim, ...]) -> str:
    """Return a shape as ``128x64``."""
    return "x".join(str(extent) for extent in extents)


def number(value: Dim | None) -> str:
    """Return a number with thousands separators, an expression as it is, ``?`` for None."""
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else value


def bar(name: str, value: Dim | None, limit: int | None, unit: str) -> Text:
    """Return how full a memory is, drawn in ASCII."""
    if not isinstance(value, int) or not limit:
        what = f"{number(value)} of {number(limit)} {unit}"
        return Text(f"{name:<7} {'none on this device' if limit == 0 else what}")
    filled = round(_BAR * value / limit)
    inside, over = min(filled, _BAR), min(max(filled - _BAR, 0), _OVER)
    return Text.assemble(
        f"{name:<7} ",
        ("#" * inside, "red" if value > limit else "green"),
        ("." * (_BAR - inside), "dim"),
        "|",
        ("#" * over, "red"),
        f" {percent(value, limit)} of {limit:,} {unit}",
    )


def percent(value: int, limit: int) -> str:
    """Return the percentage, never rounded to 100 on the wrong side of the limit."""
    share = round(100 * value / limit)
    if value < limit:
        share = min(share, 99)
    if value > limit:
        share = max(share, 101)
    return f"{share} %"


def next_words(result: Result) -> str:
    """Say what is known of the command to paste."""
    if result.next_step is NextStep.FITS:
        return "estimated here, fits" if result.estimated else "compiled here, fits"
    return "what can be changed" if result.next_step is NextStep.LISTS else "tries small edits"


def blocks(found: Residency) -> str:
    """Return the blocks of one core in words."""
    if found.blocks is None:
        return "unknown"
    held = " and ".join(found.limiters)
    if found.exact:
        return f"{found.blocks} per {found.core}, held by {held}"
    known = "what its roles take" if "registers" in found.limiters else "registers unknown"
    return f"at most {found.blocks} per {found.core} by {held} ({known})"
