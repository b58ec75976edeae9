"""A variable of the environment by its name, or all of them together, in child and parent alike."""

from __future__ import annotations

from collections.abc import Mapping

ALL = "*"
"""Stands for all variables where code looks through them; it is the name of none."""

OUR_OWN = "TILEFIT_"
"""How those begin that a child has of us, and its parent has not."""


def value_of(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the value of a variable, None where it is not set; a text of all for `ALL`."""
    if name != ALL:
        return environment.get(name)
    return repr(sorted(pair for pair in environment.items() if not pair[0].startswith(OUR_OWN)))
