"""Templates of messages, and the numbers in what they match.

A template is a message with holes (see ``data/messages.toml``). It becomes a regular
expression over squeezed text (see `_pasted`): literals without white space and punctuation,
bounded holes, no repetition inside a repetition, so that matching is linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tilefit._explain.pasted import Pasted
from tilefit._kernel.units import KIB

_HOLE = re.compile(r"\[\[|\]\]|\{([a-z]+)(?:([:=])([^{}]+))?\}|<([^<>]+)>|[^\W_]|[\W_]")
_PLAIN_OPTION = re.compile(r"\[\[[^\[\]{}<>]*\]\]")
_KINDS = {
    "number": r"[0-9][0-9.]{0,23}",
    "hex": r"(?:0x[0-9a-f]{1,12}|[0-9]{1,12})",
    "size": r"[0-9][0-9.]{0,14}[kmg]?(?:i?b)?",
    "word": r".{1,200}?",
    "label": r".{1,30}?",
    "gap": r".{0,120}?",
}
_THOUSANDS = (",", "'", "_", " ")
_SUFFIX = {"k": KIB, "m": KIB**2, "g": KIB**3}
MAX_NUMBER = 2**63 - 1
"""Larger numbers are no sizes, and are not read."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template, ready to match.

    Attributes:
        text: As it stands in the table.
        pattern: Over squeezed text.
        kinds: Kind of each hole.
    """

    text: str
    pattern: re.Pattern[str]
    kinds: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Match:
    """One place where a template matches.

    Attributes:
        start: In squeezed text.
        end: Likewise, behind the last character.
        numbers: Values of the holes that are numbers.
        words: The other holes, as they stand in the text; choices in small letters, squeezed.
        last: Name of the number that the match ends with; empty if it ends with a word.
        shown: In squeezed text, behind the last hole (or the whole, if it has none).
    """

    start: int
    end: int
    numbers: dict[str, int]
    words: dict[str, str]
    last: str
    shown: int


@cache
def compiled(text: str) -> Template:
    """Compile a template."""
    kinds: dict[str, str] = {}
    parts: list[str] = []
    for token in _HOLE.finditer(text):
        name, sign, what = token[1], token[2], token[3]
        if token[0] == "[[":
            parts.append("(?:")
        elif token[0] == "]]":
            parts.append(")?")
        elif name is not None and sign == "=":
            kinds[name] = "choice"
            parts.append(f"(?P<{name}>{_alternatives(what)})")
        elif name is not None:
            kind = what or ("gap" if name == "gap" else "number")
            kinds[name] = kind
            parts.append(f"(?P<{name}>{_KINDS[kind]})")
        elif token[4] is not None:
            parts.append(f"(?:{_alternatives(token[4])})")
        elif token[0].isalnum():
            parts.append(re.escape(token[0].lower()))
    return Template(text, re.compile("".join(parts)), tuple(kinds.items()))


def matches(template: Template, pasted: Pasted) -> list[Match]:
    """Return every place where a template matches, from left to right, none overlapping."""
    found: list[Match] = []
    at = 0
    while (raw := template.pattern.search(pasted.squeezed, at)) is not None:
        match = _read(raw, dict(template.kinds), pasted)
        if match is None:
            at = raw.start() + 1
        else:
            found.append(match)
            at = max(match.end, raw.start() + 1)
    return found


def plain(text: str) -> str:
    """Return a template as it is to be read: N for a number, M for a limit, ... for a hole."""
    names = {"required": "N", "limit": "M", "over": "(N - M)", "name": "NAME", "system": "S"}

    def shown(token: re.Match[str]) -> str:
        if token[0] in ("[[", "]]"):
            return ""
        if token[1] is not None:
            if token[2] == "=":
                return "/".join(token[3].split("|"))
            return names.get(token[1], " ... ")
        return "/".join(token[4].split("|")) if token[4] is not None else token[0]

    return " ".join(_HOLE.sub(shown, _PLAIN_OPTION.sub("", text)).split())


def _alternatives(text: str) -> str:
    # longest first: "error" must not shadow "error code is"
    words = sorted((_squeezed(part) for part in text.split("|")), key=len, reverse=True)
    return "|".join(map(re.escape, words))


def _squeezed(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _read(raw: re.Match[str], kinds: dict[str, str], pasted: Pasted) -> Match | None:
    """Read the holes of a match; None if they are not what their kinds say."""
    numbers: dict[str, int] = {}
    words: dict[str, str] = {}
    end, last = raw.end(), ""
    for name, kind in kinds.items():
        start, stop = raw.span(name)
        if start < 0:
            continue
        if kind in ("number", "hex", "size"):
            if pasted.follows(start, "_"):
                return None  # the end of a name: kernel_to_2
            final = stop == raw.end()
            value, stop = _number(pasted, start, stop, kind, final)
            if value is None:
                return None
            numbers[name] = value
            if final:
                end, last = stop, name
        elif kind == "choice":
            words[name] = pasted.squeezed[start:stop]
        else:
            word = pasted.original(start, stop)
            if kind in ("word", "label") and " " in word.strip():
                return None  # a hole for one word has swallowed others
            words[name] = "".join(word.split()) if kind != "gap" else word
    if not numbers and not pasted.is_whole(raw.start(), raw.end()):
        return None  # letters that happen to stand in a row
    shown = max((min(raw.end(name), end) for name in (*numbers, *words)), default=end)
    return Match(raw.start(), end, numbers, words, last, shown)


def _number(pasted: Pasted, start: int, end: int, kind: str, final: bool) -> tuple[int | None, int]:
    """Return the number in a squeezed stretch, and where it ends.

    A terminal breaks lines inside numbers, and people write thousands apart. But what follows
    the last number of a message on the next line may be the next line's own number.
    """
    first = digits = ""
    at = start
    for gap, piece in pasted.pieces(start, end):
        first = first or piece
        grouped = len(first) <= 3 and len(piece) == 3 and piece.isdecimal()
        if digits and not _goes_on(gap, grouped, final):
            if not final:
                return None, end
            break
        digits += piece
        at += len(piece)
    return _value(digits, kind), at


def _goes_on(gap: str, grouped: bool, final: bool) -> bool:
    """Say whether a number goes on behind a gap; ``grouped``: as thousands would."""
    if gap in _THOUSANDS:
        return grouped
    mark = gap.strip(" \t\n│|>")
    return not final and "\n" in gap and (mark == "" or (grouped and mark in _THOUSANDS))


def _value(digits: str, kind: str) -> int | None:
    try:
        if kind == "size":
            return _sized(digits)
        if digits.startswith("0x"):
            value = int(digits, 16)
        else:
            whole, *groups = digits.rstrip(".").split(".")
            if groups and all(len(group) == 3 for group in groups):
                value = int(whole + "".join(groups))
            elif len(groups) > 1 or (groups and groups[0].strip("0")):
                return None
            else:
                value = int(whole)
    except ValueError:
        return None
    return value if value <= MAX_NUMBER else None


def _sized(text: str) -> int | None:
    """Return a size such as ``16.08m`` in bytes, rounded to a whole one."""
    from decimal import Decimal, InvalidOperation

    number = text.rstrip("ib")
    factor = _SUFFIX.get(number[-1:], 1)
    try:
        value = int((Decimal(number.rstrip("kmg")) * factor).to_integral_value())
    except InvalidOperation:
        return None
    return value if value <= MAX_NUMBER else None
