"""Sizes that a PrimFunc leaves open until run time: their names in the source, and their values.

TileLang renames a size whenever it is bound to another Python name (the parameter of a macro), and
TVM prints some names with a number (``T_1``). What the author called it is what ``T.dynamic`` was
given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tilefit._kernel.extent import OpenSize, called, joined
from tilefit._kernel.kernel import Dim

_OPERATORS: Mapping[str, ast.operator] = {
    "Add": ast.Add(),
    "Sub": ast.Sub(),
    "Mul": ast.Mult(),
    "FloorDiv": ast.FloorDiv(),
    "Div": ast.FloorDiv(),  # sizes are not negative
    "FloorMod": ast.Mod(),
    "Mod": ast.Mod(),
}

_author_names: dict[Any, str] = {}
"""What the author called each variable that `T.dynamic` made."""


@contextmanager
def noting_names() -> Iterator[None]:
    """Note what the author calls each open size that user code makes meanwhile."""
    from tilelang.language import symbolics

    plain = symbolics.tirx

    def variable(name: str, dtype: Any = "int32") -> Any:
        made = plain.Var(name, dtype)
        _author_names[made] = str(name)
        return made

    symbolics.tirx = SimpleNamespace(Var=variable)
    try:
        yield
    finally:
        symbolics.tirx = plain


@dataclass(frozen=True, slots=True)
class Sizes:
    """The open sizes of one PrimFunc.

    Attributes:
        names: What the source calls each, by the name that the compiler has for it.
        bits: Of the integer that holds each, by the compiler's name.
        values: Those that are given, by the source's name.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    bits: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)

    def dim(self, extent: Any) -> Dim:
        """Return an extent as an integer, or its expression as text while a size is open."""
        try:
            return int(extent)
        except (TypeError, ValueError):
            pass
        if self.values:
            extent = self._filled_in(extent)
            try:
                return int(extent)
            except (TypeError, ValueError):
                pass
        # twice: a name comes as TVM's own kind of str, which crashes when it is copied
        return str(self._text(extent) or str(extent))

    def open(self) -> tuple[OpenSize, ...]:
        """Return those that have no value."""
        found = {name: self.bits[of_compiler] for of_compiler, name in self.names.items()}
        return tuple(OpenSize(n, bits) for n, bits in found.items() if n not in self.values)

    def _filled_in(self, expression: Any) -> Any:
        from tilelang import tvm
        from tvm.tirx.stmt_functor import substitute

        given: dict[Any, Any] = {}
        for variable in _variables(expression):
            value = self.values.get(self._name(variable))
            if value is not None:
                given[variable] = tvm.tirx.const(value, variable.dtype)
        return tvm.arith.Analyzer().simplify(substitute(expression, given))

    def _name(self, variable: Any) -> str:
        name = str(str(variable.name))
        return self.names.get(name, name)

    def _text(self, node: Any) -> str | None:
        """Return an expression in Python's arithmetic, None if it has none there."""
        kind = type(node).__name__
        if kind in ("Var", "SizeVar"):
            return self._name(node)
        if kind == "IntImm":
            return str(int(node))
        if kind == "Cast":
            return self._text(node.value)
        if kind not in ("Min", "Max", *_OPERATORS):
            return None
        left, right = self._text(node.a), self._text(node.b)
        if left is None or right is None:
            return None
        operator = _OPERATORS.get(kind)
        return (
            called(kind.lower(), left, right) if operator is None else joined(operator, left, right)
        )


def sizes_of(prim_func: Any) -> Sizes:
    """Return the sizes that a PrimFunc leaves open until run time, without values."""
    found: dict[Any, None] = {}
    for buffer in prim_func.buffer_map.values():
        for extent in (*buffer.shape, *(buffer.strides or ())):
            found.update(dict.fromkeys(_variables(extent)))
    for parameter in prim_func.params:
        if parameter not in prim_func.buffer_map:
            found[parameter] = None
    names: dict[str, str] = {}
    for variable in found:
        name = str(str(variable.name))
        author = _author_names.get(variable, name)
        # two sizes behind one name cannot be told apart after lowering
        names[name] = author if names.get(name, author) == author else name
    return Sizes(names, {str(str(v.name)): _bits(v) for v in found})


def _variables(expression: Any) -> list[Any]:
    from tvm.tirx.stmt_functor import post_order_visit

    found: dict[Any, None] = {}

    def look(node: Any) -> None:
        if type(node).__name__ in ("Var", "SizeVar"):
            found[node] = None

    post_order_visit(expression, look)
    return list(found)


def _bits(variable: Any) -> int:
    from tilelang import tvm

    return int(tvm.DataType(str(variable.dtype)).bits)
