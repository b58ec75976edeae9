"""The answer of `plan` for several Ascend devices: a line for each of their memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from tilefit._memory import Evidence
from tilefit._plan import MemoryUse
from tilefit._report import Result
from tilefit._verdict import Check, Status
from tilefit.render._words import WORD, columns, number

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
    remarks = [result.reason] if result.status is not Status.FITS and result.reason else []
    remarks += list(result.lowered.notes) if result.lowered else []
    marks = "".join(f"({notes.setdefault(remark, len(notes) + 1)})" for remark in remarks)
    verdict = f"{WORD[result.status].replace('FITS', 'fits')} {marks}".strip()
    head = (*(str(params.get(name, "-")) for name in varying), result.device, verdict)
    if not result.uses:
        yield (*head, "-", "-", "-", "-", "")
    for number_of_row, (use, check) in enumerate(zip(result.uses, result.memories, strict=True)):
        words = _words(use, check)
        if number_of_row == 0 and result.rounds is not None and result.rounds.rounds is not None:
            plural = "" if result.rounds.rounds == 1 else "s"
            words.append(f"{result.rounds.rounds:,} round{plural}")
        yield (
            *(head if number_of_row == 0 else ("",) * len(head)),
            use.memory,
            number(check.value),
            number(check.limit),
            "-" if check.margin is None else f"{check.margin:,}",
            ", ".join(words),
        )


def _words(use: MemoryUse, check: Check) -> list[str]:
    words = [_OF_MEMORY[check.status]] if check.status in _OF_MEMORY else []
    if check.silent:
        words.append("silently")
    if use.evidence is not Evidence.COMPILED:
        words.append(str(use.evidence))
    return words
