"""The answer of `plan` for several Ascend devices: a line for each of their memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from tilefit._kernel.memory import Evidence
from tilefit._planning.report import Result
from tilefit._render.text.words import WORD, columns, number
from tilefit._verdict.judge import Status

_HEADER = ("device", "verdict", "memory", "bytes", "limit", "margin", "")
_OF_MEMORY = {Status.DOES_NOT_FIT: "OVER", Status.UNKNOWN: "unknown"}


def render(
    results: Sequence[Result], varying: tuple[str, ...], notes: dict[str, int]
) -> Iterable[Text]:
    """Yield the lines of the table.

    Args:
        results: Those on Ascend.
        varying: Parameters that are not the same in all results.
        notes: Remarks with their numbers; those of these results are added.
    """
    rows = [row for result in results for row in _rows(result, varying, notes)]
    right = tuple(len(varying) + column for column in (3, 4, 5))
    yield from columns(
        [(*varying, *_HEADER), *rows],
        right=(*range(len(varying)), *right),
        header_style="dim",
        indent="",
        first_width=0,
    )


def _rows(
    result: Result, varying: tuple[str, ...], notes: dict[str, int]
) -> Iterable[tuple[str, ...]]:
    params = dict(result.params)
    remarks = [result.reason] if result.reason else []
    remarks += list(result.lowered.notes) if result.lowered else []
    marks = "".join(f"({notes.setdefault(remark, len(notes) + 1)})" for remark in remarks)
    verdict = f"{WORD[result.status].replace('FITS', 'fits')} {marks}".strip()
    head = (*(str(params.get(name, "-")) for name in varying), result.device)
    under = ("",) * len(head)
    first = [(*head, verdict), (*under, _standing(result))]
    shown = list(zip(result.uses, result.memories, strict=True))
    for number_of_row, (use, check) in enumerate(shown):
        lead = first[number_of_row] if number_of_row < len(first) else (*under, "")
        margin = "-" if check.margin is None else f"{check.margin:,}"
        over = _OF_MEMORY.get(check.status, "")
        yield (*lead, use.memory, number(check.value), number(check.limit), margin, over)
    for lead in first[len(shown) :]:
        if any(lead):
            yield (*lead, "-" if lead is first[0] else "", "", "", "", "")


def _standing(result: Result) -> str:
    """Return what else to know of a verdict, in a word or two."""
    if result.silent_overflow:
        return "silent overflow"
    return "" if result.evidence is Evidence.COMPILED else str(result.evidence)
