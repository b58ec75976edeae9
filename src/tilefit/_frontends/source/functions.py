"""Functions of the file: definition, decoration, arguments, running one."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilefit._frontends.returns import own_nodes
from tilefit._frontends.source.find import is_eager
from tilefit._frontends.source.machine import Machine, Return
from tilefit._frontends.source.unknown import join, names_of
from tilefit._frontends.source.values import (
    Arguments,
    Function,
    PrimFunc,
    Scope,
    Unknown,
    Value,
)

_MAX_DEPTH = 40


def defaults_of(machine: Machine, given: ast.arguments) -> dict[str, Value]:
    """Evaluate the defaults of a function's parameters."""
    places = [*given.posonlyargs, *given.args]
    with_default = places[len(places) - len(given.defaults) :]
    found = {
        place.arg: machine.evaluate(node)
        for place, node in zip(with_default, given.defaults, strict=True)
    }
    for place, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default is not None:
            found[place.arg] = machine.evaluate(default)
    return found


def decorated(function: Function, kind: str) -> Value:
    """Return a function under ``@T.macro``, ``@T.prim_func`` or ``@tilelang.jit``."""
    if kind == "prim_func":
        return PrimFunc(replace(function, kind=kind), function.scope.snapshot())
    return replace(function, kind=kind)


def build(machine: Machine, function: Function, arguments: dict[str, Value]) -> Value:
    """Call a function of the file; an eager kernel is not run but returned."""
    if function.kind == "jit" and is_eager(function.node):
        return PrimFunc(function, function.scope.snapshot(), arguments, function.options)
    built = run(machine, function, arguments)
    if isinstance(built, PrimFunc) and function.options is not None:
        return replace(built, options=function.options)
    return built


def bind(function: Function, arguments: Arguments) -> dict[str, Value]:
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


def run(machine: Machine, function: Function, arguments: dict[str, Value]) -> Value:
    """Run a function of the file and return what it returns."""
    scope = Scope(dict(arguments), function.scope)
    return inside(machine, function, scope, traced=function.kind == "macro")


def inside(machine: Machine, function: Function, scope: Scope, *, traced: bool) -> Value:
    """Follow the body of a function in a scope of its own."""
    if len(machine.running) >= _MAX_DEPTH or _is_generator(machine, function.node):
        machine.gap(f"{function.name}()", function.line)
        return Unknown((), f"{function.name}()")
    outer = machine.scope, machine.traced, machine.returns
    doubts, partial = len(machine.doubts), machine.partial
    machine.scope, machine.traced, machine.returns = scope, traced, []
    machine.running.append(function)
    try:
        if isinstance(function.node, ast.Lambda):
            return machine.evaluate(function.node.body)
        result: Value = None
        try:
            machine.block(function.body)
        except Return as end:
            result = end.value
        why = Unknown(names_of(*machine.doubts), function.name)
        for other in machine.returns:
            result = join([result, other], why)
        return result
    finally:
        machine.running.pop()
        machine.scope, machine.traced, machine.returns = outer
        machine.partial = partial
        del machine.doubts[doubts:]


def _is_generator(machine: Machine, node: ast.AST) -> bool:
    if node not in machine.generators:  # a function may be called often
        yields = (isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(node))
        machine.generators[node] = any(yields)
    return machine.generators[node]


def partial(function: Function, arguments: Arguments) -> Value:
    """Return what ``functools.partial`` makes of a function."""
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
