"""`explain`: from a pasted text to everything that can be said about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tilefit._devices.names import Device
from tilefit._devices.names import device as device_named
from tilefit._explain.arithmetic import changes, fits
from tilefit._explain.find import Found, find, function_name
from tilefit._explain.forms import toolchain_title
from tilefit._explain.mentions import Mentions
from tilefit._explain.params import Tile, params_near, tile
from tilefit._explain.pasted import Pasted, one_line
from tilefit._explain.reading import Reading, read
from tilefit._explain.remedy import advice_for, causes_for, command_for
from tilefit._explain.values import Change, Explanation, Finding, Sum
from tilefit._explain.whose import candidates

MAX_FINDINGS = 100
"""Different messages that are explained; a log of an autotuner can hold thousands."""

_BEHIND = 1500
_BEFORE = 800
_DROPPED = (
    "ignoring this choice",
    "for benchmark choice",
    "during autotuning",
    "autotune failed",
    "autotuning kernel",
)
_RAISED = ("inductorerror", "backendcompilerfailed", "loweringexception")
_PERHAPS = (
    "an autotuner drops the candidate and goes on; it ends the program only if no candidate is left"
)
_CONSEQUENCES = {
    "cuda-invalid": "`invalid argument`",
    "cutlass-internal": "CUTLASS's internal error",
    "cann-code": "the code 507015 or 507035",
}
_SENTENCE_LETTERS = 40
_SENTENCE = re.compile(r"(?:(?! Reducing| \()[^.!;\n]){0,40}")
_SUB_K_SLOT_BYTES = 32  # a row of the smallest sub-tile along K: one C0 of 32 B


def explain(
    text: str,
    params: Mapping[str, object] | None = None,
    device: str | Device | None = None,
) -> Explanation:
    """Say in plain words what the error messages in a text mean.

    Args:
        text: Anything pasted: a message, a traceback, a whole log. Any text has an answer.
        params: Tile parameters, such as ``{"BLOCK_M": 128, "num_stages": 3}``; without them,
            those that the log prints beside a message are used.
        device: The device that it happened on, for messages that do not give the limit.

    Returns:
        What was recognised, in the order of the text; nothing, if nothing is known.

    Raises:
        InputError: There is no such device.
    """
    one = device_named(device) if isinstance(device, str) else device
    given = dict(params or {})
    pasted = Pasted(text)
    everything = find(pasted)
    mentions = Mentions(pasted)
    groups: dict[object, list[int]] = {}
    for index, found in enumerate(everything):
        match = found.match
        words = tuple(match.words.get(word, "") for word in ("memory", "space", "scope"))
        key = (found.form.name, tuple(match.numbers.items()), words)
        groups.setdefault(key, []).append(index)
    findings = []
    for indices in list(groups.values())[:MAX_FINDINGS]:
        logged = next(filter(None, (_printed(pasted, everything, i) for i in indices)), {})
        chosen = tile({**given, **{name: logged[name] for name in logged if name not in given}})
        finding = _finding(pasted, everything, indices[0], chosen, mentions, one)
        findings.append(replace(finding, count=len(indices)))
    return Explanation(tuple(findings), max(0, len(groups) - MAX_FINDINGS))


def _finding(
    pasted: Pasted,
    everything: list[Found],
    index: int,
    chosen: Tile,
    mentions: Mentions,
    device: Device | None,
) -> Finding:
    found = everything[index]
    form = found.form
    name = function_name(pasted, found)
    reading = read(found, pasted, mentions, device)
    tried = fits(form.toolchain, reading.unit, reading.required, chosen)
    reading = _reckoned(reading, tried[0].total if tried else None)
    sums = (*(fit.total for fit in tried), *_from_message(found))
    notes = list(reading.notes)
    if chosen.given and reading.required is not None and not sums:
        notes.append("no known rule gives this number from the parameters given")
    notes += [
        f"{_CONSEQUENCES[echo]} near it is its consequence"
        for echo in found.brought
        if echo in _CONSEQUENCES
    ]
    smaller: tuple[Change, ...] = ()
    if tried and reading.limit is not None and reading.over:
        smaller = changes(tried[0], reading.limit, chosen)
    attention = _is_attention(name, chosen)
    fatal, why = _fatal(found, _around(pasted, everything, index))
    return Finding(
        message=_message(pasted, found),
        form=form.name,
        toolchain=form.toolchain,
        title=toolchain_title(form.toolchain),
        says=form.says,
        memory=reading.memory,
        name=one_line(name, 60),
        unit=reading.unit,
        required=reading.required,
        limit=reading.limit,
        required_bytes=reading.required_bytes,
        limit_bytes=reading.limit_bytes,
        over_bytes=_over_bytes(reading),
        over=reading.over,
        limit_from=reading.limit_from,
        whose=reading.whose,
        rooms=reading.rooms,
        fatal=fatal,
        fatal_why=why,
        notes=tuple(notes),
        sums=sums,
        params=chosen.given,
        changes=smaller,
        causes=causes_for(form, reading),
        advice=advice_for(form, reading, attention=attention, ended=fatal is True),
        command=command_for(form, reading, chosen, sums),
    )


def _message(pasted: Pasted, found: Found) -> str:
    """Return the message as far as its sentence goes, on one line."""
    start, end = pasted.origin(found.match.start), pasted.origin(found.match.shown - 1) + 1
    rest = _SENTENCE.match(pasted.clean, end)
    words = rest[0] if rest is not None else ""
    if len(words) == _SENTENCE_LETTERS:
        words = words.rpartition(" ")[0]
    return one_line(pasted.clean[start:end] + words)


def _over_bytes(reading: Reading) -> int | None:
    if reading.over is None or reading.unit not in ("bytes", "bits"):
        return None
    return reading.over if reading.unit == "bytes" else -(-reading.over // 8)


def _reckoned(reading: Reading, total: Sum | None) -> Reading:
    """Complete a message without numbers by a sum that needs none of them: registers."""
    if reading.required is not None or total is None:
        return reading
    limit = reading.limit
    limits = {one.registers_per_block for one in candidates("cuda", ("nvidia",))}
    if limit is None and len(limits) == 1:
        limit = limits.pop()
    over = total.value - limit if limit is not None and total.value > limit else None
    return replace(reading, required=total.value, limit=limit, over=over)


def _from_message(found: Found) -> tuple[Sum, ...]:
    """Return arithmetic over the numbers of the message itself."""
    if found.form.name != "tilelang-ascend-sub-k":
        return ()
    extent = max(found.match.numbers["m"], found.match.numbers["n"])
    return (
        Sum(
            rule="two-slots",
            formula="2 x max(M, N) x 32 B",
            written=f"2 x {extent} x {_SUB_K_SLOT_BYTES} B",
            value=2 * extent * _SUB_K_SLOT_BYTES,
            unit="bytes",
            why="T.gemm on L1 tiles keeps two slots in L0, each at least 32 B deep along K",
        ),
    )


def _printed(pasted: Pasted, everything: list[Found], index: int) -> dict[str, object]:
    """Return the parameters that the log prints beside a message: behind it, else before it."""
    before, behind = _around(pasted, everything, index)
    config = behind if "benchmark choice" in behind[:160] else behind.partition("\n")[0]
    named = function_name(pasted, everything[index])
    return params_near(config) or params_near(named) or params_near(before, last=True)


def _around(pasted: Pasted, everything: list[Found], index: int) -> tuple[str, str]:
    """Return the text before and behind a message, as far as the messages beside it."""
    match = everything[index].match
    start, end = pasted.origin(match.start), pasted.origin(match.end - 1) + 1
    earliest, latest = 0, len(pasted.clean)
    if index:
        earliest = pasted.origin(everything[index - 1].match.end - 1) + 1
    if index + 1 < len(everything):
        latest = pasted.origin(everything[index + 1].match.start)
    before = pasted.clean[max(earliest, start - _BEFORE) : start]
    return before, pasted.clean[end : min(latest, end + _BEHIND)]


def _fatal(found: Found, around: tuple[str, str]) -> tuple[bool | None, str]:
    before, behind = (part.casefold() for part in around)
    tuned = any(word in before[-300:] or word in behind[:300] for word in _DROPPED)
    if found.form.fatal == "warning":
        return True, "a warning by itself; the launch that follows fails"
    if any(word in before[-300:] for word in _RAISED):
        return True, "raised to the caller: no candidate was left"
    if tuned and found.form.toolchain in ("triton", "inductor", "xla"):
        return False, "the autotuner drops this candidate and goes on with the others"
    if found.form.fatal == "perhaps":
        return None, _PERHAPS
    return True, "this kernel does not run"


def _is_attention(name: str, chosen: Tile) -> bool:
    return chosen.has("head_dim") or any(word in name.lower() for word in ("attn", "attention"))
