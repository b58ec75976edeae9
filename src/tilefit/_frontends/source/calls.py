"""Calls: functions of the file, methods, and functions of the standard library."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilefit._frontends.source.allocate import dtype_of
from tilefit._frontends.source.attributes import attribute
from tilefit._frontends.source.builtins import call_builtin
from tilefit._frontends.source.classes import bound_to, instantiate, super_of
from tilefit._frontends.source.functions import bind, build, partial
from tilefit._frontends.source.language import arithmetic, dialect_of
from tilefit._frontends.source.language_calls import language
from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.modules import LIBRARIES, asked
from tilefit._frontends.source.operators import MAX_LENGTH, items_of
from tilefit._frontends.source.options import Options, is_parser, parser_method
from tilefit._frontends.source.unknown import known, mix, names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Arguments,
    ClassValue,
    Device,
    DTypeName,
    Function,
    Instance,
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
# what compares its first argument, with the items of the container or with its keys
_COMPARING = frozenset(("index", "count", "remove", "add", "discard"))
_BY_KEY = frozenset(("get", "pop", "setdefault", "insert"))


def call(machine: Machine, node: ast.Call) -> Value:
    """Evaluate a call."""
    function = machine.evaluate(node.func)
    return apply(machine, function, _arguments(machine, node), node)


def _arguments(machine: Machine, node: ast.Call) -> Arguments:
    found = Arguments()
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = machine.evaluate(argument.value)
            items = items_of(value)
            if items is None:
                found.rest = unknown(argument, value)
            else:
                found.places.extend(items)
        else:
            found.places.append(machine.evaluate(argument))
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value)
        if keyword.arg is not None:
            found.names[keyword.arg] = value
        elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
            found.names.update(value)
        else:
            found.rest = unknown(keyword.value, value)
    return found


def apply(machine: Machine, function: Value, arguments: Arguments, node: ast.Call) -> Value:
    """Call a value."""
    if isinstance(function, ClassValue):
        return instantiate(machine, function, arguments)
    if isinstance(function, Instance):
        method = function.owner.find("__call__")
        function = bound_to(function, method) if isinstance(method, Function) else Unknown()
    if isinstance(function, Function):
        return build(machine, function, bind(function, arguments))
    if isinstance(function, DTypeName):
        return _cast(function, arguments, node)
    if isinstance(function, Method):
        return _method(machine, function, arguments, node)
    if isinstance(function, Path):
        return _path(machine, function, arguments, node)
    if isinstance(function, Device):
        return Device(text_of(node), names_of(function, *arguments.all))
    harmless = isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS
    if machine.trace is not None and not harmless:
        machine.gap(f"{text_of(node.func)}()", node.lineno)
    # what decides which function it is decides the result; a missing function does not
    decided = isinstance(function, Unknown) and function.text not in function.names
    return unknown(node, function) if decided else unknown(node)


def _method(machine: Machine, method: Method, arguments: Arguments, node: ast.Call) -> Value:
    owner, name = method.owner, method.name
    if isinstance(owner, (Tile, Tensor)):
        if name == "scope" and isinstance(owner, Tile):
            return owner.scope
        machine.touch(owner, write=True)
        return Device(text_of(node), base=owner)
    if isinstance(owner, DTypeName):
        return unknown(node)
    if isinstance(owner, Options):
        return parser_method(owner, name, arguments, node)
    if isinstance(owner, str):
        return _text_method(owner, name, arguments, node)
    if name not in _READING:
        machine.poison(owner)
    sized = [items_of(argument) or () for argument in arguments.all]
    length = len(owner) + sum(len(items) for items in sized)
    try:
        if name not in _READING | _CHANGING or arguments.rest or length > MAX_LENGTH:
            raise TypeError(name)
        if name in _COMPARING and not known((owner, *arguments.places)):
            raise TypeError(name)
        if name in _BY_KEY and not known(arguments.places[:1]):
            raise TypeError(name)
        result = getattr(owner, name)(*arguments.places, **arguments.names)
    except Exception:
        if name not in _READING:  # what it holds now is not known
            machine.poisoned[id(owner)] = owner, unknown(node, *arguments.all)
        return unknown(node, *arguments.all)
    return list(result) if name in ("items", "keys", "values") else result


def _text_method(owner: str, name: str, arguments: Arguments, node: ast.Call) -> Value:
    whole = known(arguments.places) and not arguments.rest and not arguments.names
    if not whole or (name not in _TEXT_METHODS and name != "join"):
        return unknown(node, *arguments.all)
    try:
        return getattr(owner, name)(*arguments.places)
    except Exception:
        return unknown(node)


def _path(machine: Machine, path: Path, arguments: Arguments, node: ast.Call) -> Value:
    found = dialect_of(path.path)
    if found is not None:
        return language(machine, *found, arguments, node)
    if path.path == "builtins.super" and not arguments.all:
        return super_of(machine, node)
    if path.path == "functools.partial" and arguments.places:
        function = arguments.places[0]
        if isinstance(function, Function):
            rest = Arguments(arguments.places[1:], arguments.names, arguments.rest)
            return partial(function, rest)
    if path.path == "builtins.getattr" and len(arguments.places) == 2:
        owner, name = arguments.places
        if isinstance(name, str):
            return attribute(machine, owner, name, node)
    if path.last == "DataType" and arguments.places:
        name = dtype_of(arguments.places[0])
        return name if isinstance(name, Unknown) else DTypeName(name)
    answer = asked(path.path, machine.facts)
    if answer is not None:
        return answer
    root = path.path.partition(".")[0]
    if root == "tilelang":
        return _tilelang(machine, path, arguments, node)
    if is_parser(path.path):
        return Options()
    if root in LIBRARIES:
        if arguments.rest is not None:
            return mix(node, *arguments.all)
        return call_builtin(path.path, arguments.places, arguments.names, node)
    machine.gap(path.path, node.lineno)
    return unknown(node)


def _tilelang(machine: Machine, path: Path, arguments: Arguments, node: ast.Call) -> Value:
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
        machine.gap(path.path, node.lineno)
    return unknown(node)


def _cast(dtype: DTypeName, arguments: Arguments, node: ast.Call) -> Value:
    """Return ``T.int32(x)``: a whole number stays one."""
    value = arguments.places[0] if len(arguments.places) == 1 else None
    if "int" in dtype and isinstance(value, int):
        return value
    return Device(text_of(node), names_of(*arguments.all))
