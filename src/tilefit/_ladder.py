"""The ladder: the same kernel with one parameter stepped up until it no longer fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from tilefit._errors import InputError
from tilefit._kernel import Kernel
from tilefit._memory import Memory
from tilefit._outcome import Judge, outcome_of
from tilefit._report import Rung
from tilefit._stages import MOST_STAGES, stage_parameter
from tilefit._verdict import Status

Reader = Callable[[Mapping[str, Any]], tuple[Kernel, ...]]
# codes of copies that hold data on its way from global memory
_IN_FLIGHT = (
    *("ws-pipeline", "pipeline", "store-driven", "guarded-load", "two-loops"),
    *("explicit-order", "one-stage"),
)
_MOST_STEPS = 24


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
            found = tuple(range(first, last + 1, step))
        else:
            found = tuple(int(v, 0) for v in values.split(","))
    except ValueError:
        raise InputError(
            f"--ladder {text!r}: write NAME=FIRST:LAST:STEP or NAME=V1,V2 with whole numbers"
        ) from None
    if not 1 <= len(found) <= _MOST_STEPS:
        raise InputError(f"--ladder {text!r} has {len(found)} values; give 1 to {_MOST_STEPS}")
    return name, found


def steps(name: str, current: Any) -> Iterable[int]:
    """Yield the values to try where none were listed: stages by one, else by doubling.

    Raises:
        InputError: The parameter is no whole number from 1.
    """
    if not isinstance(current, int) or isinstance(current, bool) or current < 1:
        raise InputError(f"--ladder {name}: its value {current!r} is no whole number from 1")
    if stage_parameter([name]) is not None:
        yield from range(1, MOST_STAGES + 1)
        return
    value = max(1, current // 4)
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
    """Lower the kernel for each value until one that fits is followed by one that does not.

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
        rungs.append(Rung(value, outcome, max(map(in_flight, outcome.kernels), default=0)))
        full = outcome.status is Status.DOES_NOT_FIT
        if full and not to_the_end and len(rungs) > 1:
            break
    return tuple(rungs)


def in_flight(kernel: Kernel) -> int:
    """Return the bytes of a block's pipelined copies: what it can have under way at once."""
    return sum(
        buffer.bytes or 0
        for buffer in kernel.buffers
        if buffer.memory is Memory.SHARED and buffer.why in _IN_FLIGHT
    )
