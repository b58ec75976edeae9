"""The ladder: the same kernel with one parameter stepped up until it no longer fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tilefit._errors import InputError
from tilefit._kernel.kernel import Kernel, StageRule
from tilefit._kernel.memory import STAGING
from tilefit._kernel.reasons import Why
from tilefit._planning.outcome import Judge, outcome_of, same_code
from tilefit._planning.report import Rung
from tilefit._planning.stages import MOST_STAGES, rings
from tilefit._verdict.judge import Status

Reader = Callable[[Mapping[str, Any]], tuple[Kernel, ...]]
# codes of copies that hold data on its way from global memory
_IN_FLIGHT = (
    *(Why.WS_PIPELINE, Why.PIPELINE, Why.STORE_DRIVEN, Why.GUARDED_LOAD, Why.TWO_LOOPS),
    *(Why.EXPLICIT_ORDER, Why.ONE_STAGE),
)
_MOST_STEPS = 24
_REFUSED = (Status.CANNOT_LOWER, Status.CANNOT_BUILD)
_ENOUGH_REFUSALS = 3  # in a row


def parse_ladder(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Parse ``NAME`` or ``NAME=FIRST:LAST[:STEP]`` or ``NAME=V1,V2``; ranges include both ends.

    Raises:
        InputError: Not of that form, or more than 24 values.
    """
    name, equals, values = text.partition("=")
    if not name.isidentifier():
        raise InputError(f"--ladder {text!r} is not NAME or NAME=FIRST:LAST:STEP")
    if not equals:
        return name, None
    try:
        if ":" in values:
            first, last, *rest = (int(v, 0) for v in values.split(":"))
            step = rest[0] if rest else 1
            if step < 1 or len(rest) > 1:
                raise ValueError
            found: Sequence[int] = range(first, last + 1, step)
        else:
            found = [int(v, 0) for v in values.split(",")]
    except ValueError:
        raise InputError(
            f"--ladder {text!r}: write NAME=FIRST:LAST:STEP or NAME=V1,V2 with whole numbers"
        ) from None
    if not found or found[_MOST_STEPS:]:  # a range may be longer than `len` can say
        count = "more" if found else "none"
        raise InputError(f"--ladder {text!r}: give 1 to {_MOST_STEPS} values, not {count}")
    return name, tuple(found)


def steps(name: str, current: Any, *, stages: bool) -> Iterable[int]:
    """Yield the values to try where none were listed: stages by one from 1, else by doubling.

    Args:
        name: The parameter.
        current: Its value.
        stages: Whether it sets the stages.

    Raises:
        InputError: The parameter is no whole number from 1.
    """
    if not isinstance(current, int) or isinstance(current, bool) or current < 1:
        raise InputError(f"--ladder {name}: its value {current!r} is no whole number from 1")
    if stages:
        yield from range(1, MOST_STAGES + 1)
        return
    value = current
    for _ in range(2):
        value = value // 2 if value % 2 == 0 else value  # by halves, so as to come by `current`
    for _ in range(_MOST_STEPS):
        yield value
        value *= 2


def ladder(
    name: str,
    values: Iterable[int],
    *,
    params: Mapping[str, Any],
    read: Reader,
    judge: Judge,
    to_the_end: bool = False,
) -> tuple[Rung, ...]:
    """Lower the kernel for each value until one does not fit, or more would tell nothing.

    Args:
        name: The parameter.
        values: Its values, ascending.
        params: The other parameters.
        read: Lowers the kernel.
        judge: Judges one device function.
        to_the_end: Go through all values, whatever the outcome.
    """
    rungs: list[Rung] = []
    for value in values:
        outcome = outcome_of(partial(read, {**params, name: value}), judge)
        alike = next((r for r in rungs if same_code(r.outcome.kernels, outcome.kernels)), None)
        flight = None
        if not rings(
            outcome.kernels, value
        ):  # what a ring written by hand has under way, who knows
            flight = max(map(in_flight, outcome.kernels), default=0)
        if alike is not None:
            # nobody can say what is under way where what was asked for changed nothing
            rungs = [replace(r, in_flight_bytes=None) if r is alike else r for r in rungs]
            flight = None
        rungs.append(Rung(value, outcome, flight, same_as=None if alike is None else alike.value))
        if not to_the_end and _ends(rungs):
            break
    return tuple(rungs)


def _ends(rungs: Sequence[Rung]) -> bool:
    """Say whether the last rung is the last worth lowering."""
    last = rungs[-1].outcome
    if last.status is Status.DOES_NOT_FIT:
        # the launch of the first value alone may fail: a small tile makes a large grid
        return len(rungs) > 1 or not last.memories_fit
    if last.status in _REFUSED:
        latest = rungs[-_ENOUGH_REFUSALS:]
        refused = all(rung.outcome.status in _REFUSED for rung in latest)
        return refused and len(latest) == _ENOUGH_REFUSALS
    if last.total_bytes is None:
        return True  # its bytes depend on a size that is open
    # a parameter without effect gives the same kernel again
    return len(rungs) > 1 and (
        rungs[-1].same_as is not None or _lowered(rungs[-1]) == _lowered(rungs[-2])
    )


def _lowered(rung: Rung) -> tuple[Kernel, ...]:
    """Return what was made of the parameters, and nothing of what was asked for."""
    return tuple(
        replace(
            kernel,
            params=(),
            buffers=kernel.buffers
            if kernel.stage_rule is StageRule.EXACT
            else tuple(replace(b, stages=None, why=None) for b in kernel.buffers),
            loops=kernel.loops if kernel.stage_rule is StageRule.EXACT else (),
        )
        for kernel in rung.outcome.kernels
    )


def in_flight(kernel: Kernel) -> int:
    """Return the bytes of a block's pipelined copies: what it can have under way at once.

    Buffers of two loops that run one after the other are never under way together.
    """
    moving = [b for b in kernel.buffers if b.memory in STAGING and b.why in _IN_FLIGHT]
    starts = {b.live[0] for b in moving if b.live} or {0}
    return max(
        sum(b.bytes or 0 for b in moving if b.live is None or b.live[0] <= step < b.live[1])
        for step in starts
    )
