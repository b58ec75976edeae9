"""Calls: functions of the file, methods, and functions of the standard library."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilefit._frontends.source.allocate import dtype_of
from tilefit._frontends.source.builtins import call_builtin
from tilefit._frontends.source.find import is_eager
from tilefit._frontends.source.language import arithmetic, dialect_of
from tilefit._frontends.source.machine import ASKS, LIBRARIES
from tilefit._frontends.source.operations import Operations
from tilefit._frontends.source.ops import MAX_LENGTH, items_of
from tilefit._frontends.source.unknown import known, mix, names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Arguments,
    Device,
    DTypeName,
    Function,
    Method,
    Path,
    PrimFunc,
    Tensor,
    Tile,
    Unknown,
    Value,
)

_TEXT_METHODS = frozenset(
    (
        *("startswith", "endswith", "lower", "upper", "strip", "lstrip", "rstrip", "split"),
        *("removeprefix", "removesuffix", "isdigit", "find", "count", "title", "capitalize"),
    )
)
_CHANGING = frozenset(
    (
        *("append", "extend", "insert", "pop", "clear", "reverse", "remove", "sort"),
        *("update", "setdefault", "add", "discard"),
    )
)
_READING = frozenset(("index", "count", "copy", "items", "keys", "values", "get"))


class Calls(Operations):
    """Evaluates calls."""

    def call(self, node: ast.Call) -> Value:
        function = self.evaluate(node.func)
        return self.apply(function, self._arguments(node), node)

    def _arguments(self, node: ast.Call) -> Arguments:
        found = Arguments()
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self.evaluate(argument.value)
                items = items_of(value)
                if items is None:
                    found.rest = unknown(argument, value)
                else:
                    found.places.extend(items)
            else:
                found.places.append(self.evaluate(argument))
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                found.names[keyword.arg] = value
            elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
                found.names.update(value)
            else:
                found.rest = unknown(keyword.value, value)
        return found

    def apply(self, function: Value, arguments: Arguments, node: ast.Call) -> Value:
        """Call a value."""
        if isinstance(function, Function):
            return self.build(function, self.bind(function, arguments))
        if isinstance(function, DTypeName):
            return _cast(function, arguments, node)
        if isinstance(function, Method):
            return self._method(function, arguments, node)
        if isinstance(function, Path):
            return self._path(function, arguments, node)
        if isinstance(function, Device):
            return Device(text_of(node), names_of(function, *arguments.all))
        harmless = isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS
        if self.trace is not None and not harmless:
            self.gap(f"{text_of(node.func)}()", node.lineno)
        # what decides which function it is decides the result; a missing function does not
        decided = isinstance(function, Unknown) and function.text not in function.names
        return unknown(node, function) if decided else unknown(node)

    def build(self, function: Function, arguments: dict[str, Value]) -> Value:
        """Call a function of the file; an eager kernel is not run but returned."""
        if function.kind == "jit" and is_eager(function.node):
            return PrimFunc(function, function.scope.snapshot(), arguments)
        return self.run(function, arguments)

    def bind(self, function: Function, arguments: Arguments) -> dict[str, Value]:
        """Match the arguments of a call with the parameters of a function."""
        given = function.node.args
        found: dict[str, Value] = {**function.defaults, **function.bound}
        places = [place.arg for place in (*given.posonlyargs, *given.args)]
        open_places = [name for name in places if name not in function.bound]
        for name, value in zip(open_places, arguments.places, strict=False):
            found[name] = value
        if given.vararg is not None:
            found[given.vararg.arg] = tuple(arguments.places[len(open_places) :])
        named = {place.arg for place in function.parameters}
        extra = {key: value for key, value in arguments.names.items() if key not in named}
        found.update({k: v for k, v in arguments.names.items() if k in named})
        if given.kwarg is not None:
            found[given.kwarg.arg] = extra
        passed = {*open_places[: len(arguments.places)], *arguments.names, *function.bound}
        for name in named:
            if arguments.rest is not None and name not in passed:
                found[name] = arguments.rest
            found.setdefault(name, Unknown((), name))
        return found

    # ---- methods -----------------------------------------------------------------------------

    def _method(self, method: Method, arguments: Arguments, node: ast.Call) -> Value:
        owner, name = method.owner, method.name
        if isinstance(owner, (Tile, Tensor)):
            if name == "scope" and isinstance(owner, Tile):
                return owner.scope
            self.touch(owner, write=True)
            return Device(text_of(node), base=owner)
        if isinstance(owner, DTypeName):
            return unknown(node)
        if isinstance(owner, str):
            return self._text_method(owner, name, arguments, node)
        if name not in _READING:
            self.poison(owner)
        sized = [items_of(argument) or () for argument in arguments.all]
        length = len(owner) + sum(len(items) for items in sized)
        try:
            if name not in _READING | _CHANGING or arguments.rest or length > MAX_LENGTH:
                raise TypeError(name)
            result = getattr(owner, name)(*arguments.places, **arguments.names)
        except Exception:
            if name not in _READING:  # what it holds now is not known
                self.poisoned[id(owner)] = owner, unknown(node, *arguments.all)
            return unknown(node, *arguments.all)
        return list(result) if name in ("items", "keys", "values") else result

    def _text_method(self, owner: str, name: str, arguments: Arguments, node: ast.Call) -> Value:
        whole = known(arguments.places) and not arguments.rest and not arguments.names
        if not whole or (name not in _TEXT_METHODS and name != "join"):
            return unknown(node, *arguments.all)
        try:
            return getattr(owner, name)(*arguments.places)
        except Exception:
            return unknown(node)

    # ---- things by their dotted name ---------------------------------------------------------

    def _path(self, path: Path, arguments: Arguments, node: ast.Call) -> Value:
        found = dialect_of(path.path)
        if found is not None:
            return self.language(*found, arguments, node)
        if path.path == "functools.partial" and arguments.places:
            function = arguments.places[0]
            if isinstance(function, Function):
                rest = Arguments(arguments.places[1:], arguments.names, arguments.rest)
                return _partial(function, rest)
        if path.path == "builtins.getattr" and len(arguments.places) == 2:
            owner, name = arguments.places
            if isinstance(name, str):
                return self.attribute(owner, name, node)
        if path.last == "DataType" and arguments.places:
            name = dtype_of(arguments.places[0])
            return name if isinstance(name, Unknown) else DTypeName(name)
        fact = self.facts.get(ASKS.get(path.path, ""))
        if fact is not None:
            return tuple(fact) if isinstance(fact, list) else fact
        if path.path == "torch.cuda.get_device_properties" and self.facts:
            return Path(f"{path.path}()")
        root = path.path.partition(".")[0]
        if root == "tilelang":
            return self._tilelang(path, arguments, node)
        if root in LIBRARIES:
            if arguments.rest is not None:
                return mix(node, *arguments.all)
            return call_builtin(path.path, arguments.places, arguments.names, node)
        self.gap(path.path, node.lineno)
        return unknown(node)

    def _tilelang(self, path: Path, arguments: Arguments, node: ast.Call) -> Value:
        """Call something of TileLang outside of its language."""
        first = arguments.places[0] if arguments.places else None
        if path.last == "compile" and isinstance(first, PrimFunc):
            return first
        if path.last in ("jit", "lazy_jit") and isinstance(first, Function):
            return replace(first, kind="jit")
        if path.last == "next_power_of_2" and isinstance(first, int):
            return 1 << max(0, first - 1).bit_length()
        result = arithmetic(path.last, arguments.places, node)
        if result is not None:
            return result
        if ("intrinsics" in path.path or "tileop" in path.path) and "layout" not in path.path:
            self.gap(path.path, node.lineno)
        return unknown(node)


def _cast(dtype: DTypeName, arguments: Arguments, node: ast.Call) -> Value:
    """Return ``T.int32(x)``: a whole number stays one."""
    value = arguments.places[0] if len(arguments.places) == 1 else None
    if "int" in dtype and isinstance(value, int):
        return value
    return Device(text_of(node), names_of(*arguments.all))


def _partial(function: Function, arguments: Arguments) -> Value:
    given = function.node.args
    places = [place.arg for place in (*given.posonlyargs, *given.args)]
    if arguments.rest is not None or len(arguments.places) > len(places):
        return Unknown(names_of(*arguments.all), function.name)
    bound = dict(zip(places, arguments.places, strict=False))
    return replace(
        function,
        bound={**function.bound, **bound},
        defaults={**function.defaults, **arguments.names},  # a call may still change these
    )
