"""Putting values together of which some are not known, and saying what is missing."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilefit._frontends.source.values import (
    Device,
    Tensor,
    Tile,
    TorchDType,
    Unknown,
    Value,
    Where,
)


def names_of(*values: Value) -> tuple[str, ...]:
    """Return the missing names in some values, each once."""
    found: dict[str, None] = {}
    seen: set[int] = set()  # a container may hold another twice, or itself
    todo = [*reversed(values)]
    while todo:
        value = todo.pop()
        if isinstance(value, (Unknown, Device)):
            found.update(dict.fromkeys(value.names))
        elif isinstance(value, (tuple, list)) and id(value) not in seen:
            seen.add(id(value))
            todo.extend(reversed(value))
    return tuple(found)


def unknown(where: Where, *parts: Value) -> Unknown:
    """Return an Unknown that needs what its parts need."""
    return Unknown(names_of(*parts), text_of(where))


def mix(where: Where, *parts: Value) -> Unknown | Device:
    """Return what an operation gives of which at least one part is no plain value."""
    if any(isinstance(part, (Device, Tile, Tensor)) for part in parts):
        return Device(text_of(where), names_of(*parts))
    return unknown(where, *parts)


def known(value: Value, depth: int = 8) -> bool:
    """Return whether a value is a plain Python value through and through."""
    if value is None or isinstance(value, (int, float, str, bytes, range, TorchDType)):
        return True
    if depth == 0:
        return False
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(known(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return all(known(k, depth - 1) and known(v, depth - 1) for k, v in value.items())
    if isinstance(value, slice):
        return all(known(v) for v in (value.start, value.stop, value.step))
    return False


def written(value: Value) -> str:
    """Return a value as text for people."""
    return str(getattr(value, "text", getattr(value, "path", value)))


def text_of(where: Where, limit: int = 60) -> str:
    """Return an expression as source text on one line."""
    if isinstance(where, str):
        return where
    try:
        text = " ".join(ast.unparse(where).split())
    except (RecursionError, ValueError):
        return "?"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def join(values: Sequence[Value], why: Unknown) -> Value:
    """Return the one value that several branches leave, Unknown if they differ."""
    first = values[0]
    for other in values[1:]:
        if first is other:
            continue
        if known(first) and known(other) and type(first) is type(other) and first == other:
            continue
        if isinstance(first, tuple) and isinstance(other, tuple) and len(first) == len(other):
            first = tuple(join(pair, why) for pair in zip(first, other, strict=True))
            continue
        return Unknown(names_of(why, first, other), why.text)
    return first
