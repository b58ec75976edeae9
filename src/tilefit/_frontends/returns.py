"""What the source of a function says that it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a function without the functions inside of it."""
    todo = list(ast.iter_child_nodes(node))
    while todo:
        child = todo.pop()
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield child
            todo.extend(ast.iter_child_nodes(child))


def returned_calls(function: ast.AST) -> tuple[str, ...]:
    """Return the dotted names of the functions whose results a function returns, in order.

    ``return a(x)``, ``return b.c(x) if y else d(x)`` and the body of a lambda count; what is
    called again, as in ``return a(x)(y)``, does not.
    """
    if isinstance(function, ast.Lambda):
        values: list[ast.expr] = [function.body]
    else:
        returns = [n for n in own_nodes(function) if isinstance(n, ast.Return)]
        returns.sort(key=lambda n: n.lineno)
        values = [n.value for n in returns if n.value is not None]
    found: list[str] = []
    while values:
        value = values.pop(0)
        if isinstance(value, ast.IfExp):
            values[:0] = [value.body, value.orelse]
        elif isinstance(value, ast.Call):
            name = _dotted(value.func)
            found += [name] if name else []
    return tuple(dict.fromkeys(found))


def _dotted(node: ast.expr) -> str | None:
    """Return ``a.b.c`` as text; None for anything else than names and attributes."""
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else None
    return node.id if isinstance(node, ast.Name) else None
