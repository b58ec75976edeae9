"""Which messages a text holds: every form tried everywhere, the most telling one kept."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from tilefit._explain.forms import Form, forms
from tilefit._explain.pasted import Pasted
from tilefit._explain.pattern import Match, compiled, matches

_NEAR = 4000
"""Letters and digits within which one message counts as another's consequence."""

_NAME_LETTERS = 8000  # names of C++ templates are long


@dataclass(frozen=True, slots=True)
class Found:
    """One message in a text.

    Attributes:
        form: Which.
        match: Where, with its numbers and words.
        brought: The consequences that stand near it, and were dropped for it.
    """

    form: Form
    match: Match
    brought: tuple[str, ...] = ()


def find(pasted: Pasted) -> list[Found]:
    """Return the messages of a text in its order.

    Where forms overlap, the first in the table is kept. A message without numbers goes where
    the same toolchain gives numbers nearby, and one that only follows from another goes where
    that one stands nearby.
    """
    ranked = [
        (match.start, rank, Found(form, match))
        for rank, form in enumerate(forms())
        for text in form.texts
        for match in matches(compiled(text), pasted)
    ]
    ranked.sort(key=lambda entry: entry[:2])
    apart: list[tuple[int, Found]] = []
    for _, rank, found in ranked:
        if apart and found.match.start < apart[-1][1].match.end:
            if rank < apart[-1][0]:
                apart[-1] = (rank, found)
            continue
        apart.append((rank, found))
    return _without_echoes([found for _, found in apart])


def function_name(pasted: Pasted, found: Found) -> str:
    """Return the function that a message names; empty if it names none."""
    if "name" in found.match.words:
        return found.match.words["name"]
    if not found.form.named:
        return ""
    label = "".join(found.form.named.split()).lower()
    start, end = found.match.start, found.match.end + 40
    at = pasted.squeezed.find(label, start, end)
    if at < 0:
        at = pasted.squeezed.rfind(label, max(0, start - _NAME_LETTERS), start)
    if at < 0 or at + len(label) >= len(pasted.squeezed):
        return ""
    begin = pasted.origin(at + len(label) - 1) + 1
    rest = pasted.clean[begin : begin + _NAME_LETTERS].lstrip("'\"` :\n").split(maxsplit=1)
    return rest[0].strip("'\"`,;:()") if rest else ""


def _without_echoes(all_found: list[Found]) -> list[Found]:
    places: dict[str, list[int]] = {}  # of forms, and of toolchains' messages with numbers
    for found in all_found:
        places.setdefault(found.form.name, []).append(found.match.start)
        if found.match.numbers:
            places.setdefault(f"{found.form.toolchain} numbers", []).append(found.match.start)
    kept: list[Found] = []
    brought: dict[int, list[str]] = {}
    for found in all_found:
        at = found.match.start
        causes = [place for name in found.form.follows for place in _near(places.get(name), at)]
        if causes:
            brought.setdefault(min(causes, key=lambda place: abs(place - at)), []).append(
                found.form.name
            )
        elif found.match.numbers or not (
            found.form.unit and _near(places.get(f"{found.form.toolchain} numbers"), at)
        ):
            kept.append(found)
    return [
        Found(one.form, one.match, tuple(dict.fromkeys(brought.get(one.match.start, ()))))
        for one in kept
    ]


def _near(starts: list[int] | None, at: int) -> list[int]:
    """Return the ascending places on both sides of ``at`` that are near enough."""
    if not starts:
        return []
    index = bisect_left(starts, at)
    return [place for place in starts[max(0, index - 1) : index + 1] if abs(place - at) <= _NEAR]
