"""Operators on plain values, held to a size at which they are cheap.

A result that would be large, or that Python would refuse, is Unknown: a file can hold anything.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilefit._frontends.source.unknown import known, mix, text_of, unknown
from tilefit._frontends.source.values import (
    Device,
    Instance,
    Path,
    Tensor,
    Tile,
    Unknown,
    Value,
    Where,
)
from tilefit._kernel.extent import joined

_MAX_BITS = 4096
MAX_LENGTH = 10_000

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def number(value: Value) -> Value:
    """Return the number that a device value comes to where its sizes were given."""
    return value.value if isinstance(value, Device) and value.value is not None else value


def extent_of(value: Value) -> str | int | None:
    """Return a value in arithmetic over open sizes, None if it hangs on anything else."""
    value = number(value)
    if isinstance(value, Device):
        return value.extent
    return value if type(value) is int else None


def binary(op: ast.operator, left: Value, right: Value, where: Where) -> Value:
    """Return ``left op right``."""
    function = _BINARY.get(type(op))
    if function is None:
        return mix(where, left, right)
    if isinstance(left, Device) or isinstance(right, Device):
        folded = _folded(op, left, right)
        if folded is not None:
            return folded
        symbolic = mix(where, left, right)
        result = _apply(function, op, number(left), number(right))
        if isinstance(symbolic, Device) and type(result) is int:
            return replace(symbolic, value=result)
        a, b = extent_of(left), extent_of(right)
        if isinstance(symbolic, Device) and a is not None and b is not None:
            return replace(symbolic, extent=joined(op, a, b))
        return symbolic
    result = _apply(function, op, left, right)
    return mix(where, left, right) if result is None else result


def _folded(op: ast.operator, left: Value, right: Value) -> Value:
    """Return what TVM folds an operation with a constant to, None if it stays."""
    plain = next((v for v in (left, right) if type(v) is int), None)
    other = left if plain is right else right
    if isinstance(op, ast.Mult) and plain in (0, 1):
        return 0 if plain == 0 else other
    neutral = {ast.Add: 0, ast.Sub: 0, ast.FloorDiv: 1}.get(type(op))
    if plain is None or plain != neutral:
        return None
    return other if isinstance(op, ast.Add) or plain is right else None


def _apply(function: Callable[[Any, Any], Any], op: ast.operator, left: Any, right: Any) -> Any:
    """Return the result, None if it is too large or Python refuses."""
    plain = (int, float, str, tuple, list, dict, set)
    if not isinstance(left, plain) or not isinstance(right, plain):
        return None
    if isinstance(left, str) and not (known(left) and known(right)):
        return None
    if not _cheap(op, left, right):
        return None
    try:
        return small(function(left, right))
    except Exception:
        return None


def _cheap(op: ast.operator, left: Any, right: Any) -> bool:
    if isinstance(op, ast.Pow):
        if isinstance(left, int) and isinstance(right, int):
            return left.bit_length() * abs(right) <= _MAX_BITS
        return True
    if isinstance(op, ast.LShift):
        return isinstance(right, int) and right <= _MAX_BITS
    if isinstance(op, ast.Mult):
        for items, times in ((left, right), (right, left)):
            if isinstance(items, (str, tuple, list)) and isinstance(times, int):
                return len(items) * times <= MAX_LENGTH
    # a format such as "%9999999d" makes long text
    return not (isinstance(op, ast.Mod) and isinstance(left, str))


def small(value: Any) -> Any:
    """Return a value if it is of a size that is cheap to go on with, else None."""
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else None
    if isinstance(value, (str, tuple, list, dict, set)):
        return value if len(value) <= MAX_LENGTH else None
    return value


def items_of(value: Any) -> list[Any] | None:
    """Return the items of a container, None if it is none, or has too many."""
    if isinstance(value, range):
        return list(value[: MAX_LENGTH + 1]) if not value[MAX_LENGTH:] else None
    if isinstance(value, (str, tuple, list, dict, set)):
        return list(value)
    return None


def unary(op: ast.unaryop, operand: Value, where: Where) -> Value:
    """Return ``op operand``, other than ``not``."""
    function = _UNARY[type(op)]
    if isinstance(operand, Device):
        result = function(operand.value) if operand.value is not None else None
        return Device(text_of(where), operand.names, result)
    if isinstance(operand, (int, float)):
        try:
            return function(operand)
        except TypeError:
            pass
    return mix(where, operand)


def compare(op: ast.cmpop, left: Value, right: Value, where: Where) -> Value:
    """Return ``left op right``: a bool, or a value that is none yet."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = _identical(left, right)
        if same is None:
            return unknown(where, left, right)
        return same if isinstance(op, ast.Is) else not same
    if any(isinstance(v, (Device, Tile, Tensor)) for v in (left, right)):
        if None in (left, right) and isinstance(op, (ast.Eq, ast.NotEq)):
            return isinstance(op, ast.NotEq)
        return mix(where, left, right)
    if isinstance(left, Path) and isinstance(right, Path):
        if isinstance(op, ast.Eq) and left.path == right.path:
            return True
        return unknown(where)
    if known(left) and known(right):
        try:
            return bool(_COMPARE[type(op)](left, right))
        except Exception:
            return unknown(where)
    return mix(where, left, right)


def _identical(left: Value, right: Value) -> bool | None:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return None
    for value, other in ((left, right), (right, left)):
        if value is None:
            return other is None
        if isinstance(value, bool):
            return other is value
    if isinstance(left, Path) and isinstance(right, Path):
        return True if left.path == right.path else None
    return True if left is right else None


def truth(value: Value) -> Value:
    """Return whether a value is true: a bool, or the Device or Unknown that decides it."""
    if isinstance(value, (Device, Unknown)):
        return value
    if value is None or isinstance(value, (int, float, str, bytes, tuple, list, dict, set, range)):
        return bool(value)
    if isinstance(value, (Tile, Tensor)):
        return Device(value.name)
    if isinstance(value, Path):
        return Unknown((), value.path)
    if isinstance(value, Instance) and (
        value.owner.find("__bool__") or value.owner.find("__len__")
    ):
        return Unknown((), value.owner.node.name)
    return True
