"""All rules together, and what starts them: a module, and a kernel from its arguments on."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tilefit._frontends.source.control import CONTROL
from tilefit._frontends.source.expressions import EXPRESSIONS
from tilefit._frontends.source.find import tensor_parameters
from tilefit._frontends.source.functions import inside
from tilefit._frontends.source.machine import (
    MAX_STEPS_OF_A_STATEMENT,
    Break,
    Continue,
    Exhausted,
    Machine,
    RaisedError,
    Return,
    Rule,
)
from tilefit._frontends.source.statements import STATEMENTS
from tilefit._frontends.source.values import (
    DTypeName,
    PrimFunc,
    Scope,
    Tensor,
    Unknown,
    Value,
)

RULES: Mapping[type[ast.AST], Rule] = {**EXPRESSIONS, **STATEMENTS, **CONTROL}


def follow_module(machine: Machine, tree: ast.Module) -> None:
    """Follow the statements of a module; one that cannot be followed leaves its names unknown."""
    for node in tree.body:
        machine.limit(MAX_STEPS_OF_A_STATEMENT)
        scope = machine.scope
        try:
            machine.statement(node)
        except (RaisedError, Return, Break, Continue, Exhausted, RecursionError):
            machine.scope = scope
            machine.traced, machine.trace = False, None
            _forget(node, machine.scope)
        finally:
            machine.doubts.clear()


def trace_kernel(machine: Machine, kernel: PrimFunc) -> None:
    """Follow the body of a kernel; what it declares is in `trace` afterwards."""
    function = kernel.function
    scope = Scope({}, kernel.scope)
    tensors = tensor_parameters(function.node)
    outer, machine.scope = machine.scope, scope
    try:
        for place in function.parameters:
            name = place.arg
            passed = name in kernel.arguments and name not in tensors
            scope.vars[name] = kernel.arguments[name] if passed else _argument(machine, place)
    finally:
        machine.scope = outer
    if machine.trace is not None:
        given = (scope.vars[place.arg] for place in function.parameters)
        machine.trace.arguments = [one for one in given if isinstance(one, Tensor)]
    inside(machine, function, scope, traced=True)


def _argument(machine: Machine, place: ast.arg) -> Value:
    """Return what stands for a run-time argument: a tensor, or a number."""
    kind = machine.evaluate(place.annotation)
    if isinstance(kind, Tensor):
        return Tensor(place.arg, kind.shape, kind.dtype)
    if isinstance(kind, DTypeName):
        return machine.open_size(place.arg, kind)
    shape, dtype = (Unknown((), f"{place.arg}.{what}") for what in ("shape", "dtype"))
    return Tensor(place.arg, shape, dtype)


def _forget(node: ast.stmt, scope: Scope) -> None:
    """Make unknown what a statement binds that could not be followed to its end."""
    todo: list[ast.AST] = [node]
    while todo:
        inner = todo.pop()
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            scope.vars[inner.id] = Unknown((), inner.id)
        if not isinstance(inner, (ast.FunctionDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(inner))
