"""``--keep``: what an edit must leave true of a kernel's parameters."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefit._errors import InputError, UnknownNameError

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|<=|==|!=|>|<|=)\s*(-?\d+)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one parameter: ``num_stages>=2``."""

    name: str
    operator: str
    value: int

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Say whether parameters meet it; one that is no whole number does not."""
        value = params.get(self.name)
        return type(value) is int and _OPERATORS[self.operator](value, self.value)


def conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Read conditions, several in one text with commas between them.

    Raises:
        InputError: One is none.
    """
    found = []
    for text in (part for whole in texts for part in whole.split(",")):
        match = _FORM.fullmatch(text)
        if match is None:
            raise InputError(
                f"--keep {text.strip()!r} is no condition: write NAME>=N, as in num_stages>=2"
            )
        try:
            found.append(Condition(match[1], match[2], int(match[3])))
        except ValueError as error:  # too many digits
            raise InputError(f"--keep {text.strip()[:40]!r}...: {error}") from None
    return tuple(found)


def refuse_unknown(kept: Sequence[Condition], kernel: str, names: Collection[str]) -> None:
    """Refuse a condition on a parameter that a kernel does not have.

    Raises:
        UnknownNameError: There is one.
    """
    for one in kept:
        if one.name not in names:
            raise UnknownNameError(f"parameter of {kernel}", one.name, names)


def kept_by(kept: Sequence[Condition]) -> Callable[[Mapping[str, Any]], bool]:
    """Return what says whether parameters meet all conditions."""
    return lambda params: all(one.holds(params) for one in kept)
