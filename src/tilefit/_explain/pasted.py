"""Pasted text, made comparable: what survives a terminal, a mail client or a web page.

White space, punctuation and case are what copying changes, so patterns are matched against the
text without them (`Pasted.squeezed`), and every place in it leads back to the text itself. The
work is linear in the length of the text: each step passes over it once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))  # zero width
_TYPOGRAPHIC = {ord("\u00a0"): " ", ord("\u202f"): " ", ord("\u2009"): " ", ord("\u2019"): "'"}

_ESCAPES = re.compile(r'\\(?:n|r|t|"|u001[bB]|x1[bB]|033)')
_ESCAPED = {"\\n": "\n", "\\r": "\n", "\\t": " ", '\\"': '"'}
_ENTITIES = re.compile(r"&(?:nbsp|lt|gt|amp|quot|#39|#x27|#96);")
_ENTITY = {"&nbsp;": " ", "&lt;": "<", "&gt;": ">", "&amp;": "&"}
_TAGS = re.compile(
    r"</?(?:code|pre|b|i|em|strong|span|br|p|div|font|tt|td|tr)(?:\s[^<>]{0,200})?/?>",
    re.IGNORECASE,
)
_COLOURS = re.compile(
    r"(?:\x1b|\^\[)\[[0-9;:?]{0,40}[ -/]{0,4}[@-~]"  # CSI
    r"|\x9b[0-9;:?]{0,40}[@-~]"
    r"|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)?"  # OSC: titles and links
    r"|\x1b[@-Z\\^_]"
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m|\[m"  # colours that lost their escape character
)
_LINE_STARTS = re.compile(
    r"^(?:[ \t>|│┃║❱]"  # quoting, tables, boxes of rich
    r"|E(?=[ \t]{2})"  # pytest
    r"|\[rank[0-9]{1,4}\]:"  # torchrun
    r"|\([A-Za-z]\w{0,40}[ ]pid=[0-9]{1,9}(?:,[ ]ip=[0-9.]{1,20})?\))+",  # Ray, vLLM
    re.MULTILINE,
)
# a dot is kept between digits only: decimals, and thousands as some countries write them
_TOKEN = re.compile(r"(?:[^\W_]|(?<=[0-9])\.(?=[0-9]))+")


class Pasted:
    """A text, cleaned, and squeezed to its letters and digits.

    Attributes:
        clean: The text without colours, markup and what stands in front of its lines.
        squeezed: Its letters and digits alone, in small letters.
    """

    def __init__(self, text: str) -> None:
        self.clean = _clean(text)
        lowered = self.clean.translate(_ASCII_LOWER)
        parts: list[str] = []
        self._starts: list[int] = []  # where each token begins in `squeezed` ...
        self._origins: list[int] = []  # ... and in `clean`
        at = 0
        for token in _TOKEN.finditer(lowered):
            self._starts.append(at)
            self._origins.append(token.start())
            parts.append(token[0])
            at += len(token[0])
        self.squeezed = "".join(parts)

    def words(self) -> list[str]:
        """Return the words of `squeezed`."""
        ends = [*self._starts[1:], len(self.squeezed)] if self._starts else []
        return [self.squeezed[a:b] for a, b in zip(self._starts, ends, strict=True)]

    def origin(self, at: int) -> int:
        """Return where the squeezed character at ``at`` stands in `clean`."""
        token = bisect_right(self._starts, at) - 1
        return self._origins[token] + at - self._starts[token]

    def original(self, start: int, end: int) -> str:
        """Return the text of a squeezed stretch, as it stands in `clean`."""
        return self.clean[self.origin(start) : self.origin(end - 1) + 1] if start < end else ""

    def follows(self, at: int, mark: str) -> bool:
        """Say whether ``mark`` stands right before the squeezed character at ``at``."""
        return self.clean.endswith(mark, 0, self.origin(at))

    def is_whole(self, start: int, end: int) -> bool:
        """Say whether a squeezed stretch starts and ends where words of the text do."""
        token = bisect_right(self._starts, start) - 1
        if self._starts[token] != start:
            return False
        after = bisect_right(self._starts, end) - 1
        return end == len(self.squeezed) or self._starts[after] == end

    def pieces(self, start: int, end: int) -> Iterator[tuple[str, str]]:
        """Yield the words of a squeezed stretch, each with what stands before it in `clean`."""
        token = bisect_right(self._starts, start) - 1
        at, before = start, ""
        while at < end:
            token += 1
            stop = min(end, self._starts[token]) if token < len(self._starts) else end
            yield before, self.squeezed[at:stop]
            if stop < end:
                before = self.clean[self.origin(stop - 1) + 1 : self._origins[token]]
            at = stop


def one_line(text: str, length: int = 300) -> str:
    """Return a text on one line of at most ``length`` characters, fit for a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: length * 4]).split())
    return line if len(line) <= length else line[: length - 3] + "..."


def _clean(text: str) -> str:
    text = _ESCAPES.sub(lambda m: _ESCAPED.get(m[0], "\x1b"), text)
    text = _ENTITIES.sub(lambda m: _ENTITY.get(m[0], "'"), text)
    text = _TAGS.sub("", text.translate(_INVISIBLE))
    text = _COLOURS.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_TYPOGRAPHIC)
    return _LINE_STARTS.sub("", text)
