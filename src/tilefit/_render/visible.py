"""Text of the user's that cannot steer what shows it: terminals, spreadsheets, Markdown.

A file or a kernel may be named with escapes that colour or clear a terminal, with a formula that a
spreadsheet runs, or with markup. What is replaced is replaced one for one, so that styles stay.
"""

from __future__ import annotations

import html
import re

from rich.text import Text

# what moves a cursor or begins an escape, and halves of characters that no encoding has
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@", "\t")


def visible(text: str) -> str:
    """Return a text of one or more lines that shows as it is."""
    return _STEERS.sub("\N{REPLACEMENT CHARACTER}", text)


def screen(text: Text) -> Text:
    """Return a styled text that shows as it is."""
    shown = text.copy()
    shown.plain = visible(text.plain)
    return shown


def cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula; numbers stay what they are."""
    if not isinstance(value, str):
        return value
    shown = visible(value).replace("\n", " ")
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def markdown(value: object) -> str:
    """Return a cell of a Markdown table in which nothing is markup."""
    return html.escape(visible(str(value)), quote=False).replace("|", "\\|").replace("\n", " ")
