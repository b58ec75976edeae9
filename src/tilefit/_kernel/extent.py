"""Extents over sizes that stay open until run time: what they come to, and how far a limit holds.

An extent is text in Python's arithmetic, ``(n + 63) // 64``, over the names of the source. Bounds
are interval arithmetic, so a bound may be loose and is never wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Interval = tuple[int, int]
"""The least and the most, both included."""

_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_CALLS: Mapping[str, Callable[[int, int], int]] = {"min": min, "max": max}


@dataclass(frozen=True, slots=True)
class OpenSize:
    """A size that is given when the kernel is launched.

    Attributes:
        name: What the source calls it.
        bits: Of the integer that holds it. It is 1 at least: of nothing there is no launch.
    """

    name: str
    bits: int = 32

    @property
    def most(self) -> int:
        """The largest value that it can have."""
        return int(2 ** (self.bits - 1) - 1)


@dataclass(frozen=True, slots=True)
class Holds:
    """How far an extent stays within a limit.

    Attributes:
        expression: What has to stay small: the one open size, or the whole extent.
        most: The largest value of it that is within the limit.
    """

    expression: str
    most: int


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in an extent, each once; none if it is no arithmetic that we know."""
    tree = _parsed(text)
    if tree is None:
        return ()
    return tuple(
        dict.fromkeys(
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in _CALLS
        )
    )


def bounds(text: str, sizes: Mapping[str, OpenSize]) -> Interval | None:
    """Return the least and the most that an extent can come to.

    Returns:
        None if it has a name that is no open size, or is no arithmetic that we know.
    """
    tree = _parsed(text)
    return None if tree is None else _interval(tree, {n: (1, s.most) for n, s in sizes.items()})


def holds_while(text: str, limit: int, sizes: Mapping[str, OpenSize]) -> Holds:
    """Return how far an extent over open sizes stays within a limit that it can pass.

    The largest value of its one size where the extent never falls as that size grows; else the
    limit on the extent itself.
    """
    tree = _parsed(text)
    names = names_in(text)
    if tree is None or len(names) != 1 or _slope(tree) != 1:
        return Holds(text, limit)
    low, high = 1, sizes[names[0]].most  # within the limit, beyond it
    if _value(tree, low) > limit:
        return Holds(text, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _value(tree, middle) <= limit else (low, middle)
    return Holds(names[0], low)


def joined(op: ast.operator, left: str | int, right: str | int) -> str | None:
    """Return ``left op right`` as an extent, None if it is none."""
    parts = _parsed(str(left)), _parsed(str(right))
    if parts[0] is None or parts[1] is None or type(op) not in _BINARY:
        return None
    return ast.unparse(ast.BinOp(parts[0], op, parts[1]))


def called(name: str, left: str | int, right: str | int) -> str | None:
    """Return ``min(left, right)``, ``max(left, right)`` or the rounded-up quotient as an extent."""
    if name in _CALLS:
        return f"{name}({left}, {right})"
    if name in ("ceildiv", "cdiv") and isinstance(right, int) and right > 0:
        more = joined(ast.Add(), left, right - 1)
        return None if more is None else joined(ast.FloorDiv(), more, right)
    return None


# ---- the tree --------------------------------------------------------------------------------


def _parsed(text: str) -> ast.expr | None:
    """Return the tree of an extent, None if there is anything else in it."""
    try:
        tree = ast.parse(text, mode="eval").body
        return tree if _is_arithmetic(tree) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_arithmetic(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_arithmetic(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return type(op) in _BINARY and _is_arithmetic(left) and _is_arithmetic(right)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]):
            return name in _CALLS and _is_arithmetic(left) and _is_arithmetic(right)
    return False


def _parts(node: ast.expr) -> tuple[Callable[[int, int], int], ast.expr, ast.expr]:
    """Return a function of two arguments and the arguments."""
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)], node.left, node.right
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _CALLS[node.func.id], node.args[0], node.args[1]


def _value(node: ast.expr, size: int) -> int:
    """Return what an extent with one open size comes to."""
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value
    if isinstance(node, ast.Name):
        return size
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, size)
    function, left, right = _parts(node)
    return function(_value(left, size), _value(right, size))


def _interval(node: ast.expr, sizes: Mapping[str, Interval]) -> Interval | None:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value, node.value
    if isinstance(node, ast.Name):
        return sizes.get(node.id)
    if isinstance(node, ast.UnaryOp):
        found = _interval(node.operand, sizes)
        return None if found is None else (-found[1], -found[0])
    function, left, right = _parts(node)
    a, b = _interval(left, sizes), _interval(right, sizes)
    if a is None or b is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        if b[0] <= 0:
            return None
        if isinstance(node.op, ast.Mod):
            return (0, min(b[1] - 1, a[1])) if a[0] >= 0 else (0, b[1] - 1)
    # each function is monotone in each argument, so that its ends are at ends of theirs
    ends = [function(x, y) for x in a for y in b]
    return min(ends), max(ends)


def _slope(node: ast.expr) -> int | None:
    """Say how an extent of one size goes as that grows: 1 never falls, -1 never rises, 0 neither.

    Returns:
        None if that is not known.
    """
    if isinstance(node, ast.Constant):
        return 0
    if isinstance(node, ast.Name):
        return 1
    if isinstance(node, ast.UnaryOp):
        slope = _slope(node.operand)
        return None if slope is None else -slope
    _, left, right = _parts(node)
    a, b = _slope(left), _slope(right)
    if a is None or b is None:
        return None
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mod):
            return 0 if a == b == 0 else None
        if isinstance(node.op, ast.FloorDiv):
            return a if b == 0 and _value(right, 0) > 0 else None
        if isinstance(node.op, ast.Mult):
            return _slope_of_product(left, right, a, b)
        b = -b if isinstance(node.op, ast.Sub) else b
    return a or b if 0 in (a, b) or a == b else None


def _slope_of_product(left: ast.expr, right: ast.expr, a: int, b: int) -> int | None:
    if b == 0:
        factor = _value(right, 0)
        return a if factor >= 0 else -a
    if a == 0:
        return _slope_of_product(right, left, b, a)
    # both start at no less than 0 and never fall
    return 1 if a == b == 1 and _value(left, 0) >= 0 and _value(right, 0) >= 0 else None
