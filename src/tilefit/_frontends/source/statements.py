"""Statements that are no control flow: definitions, imports, assignments, ``with``.

`STATEMENTS` lists them; other kinds bind nothing and allocate nothing and are passed over.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from tilefit._frontends.source.classes import define_class
from tilefit._frontends.source.find import last_name
from tilefit._frontends.source.functions import decorated, defaults_of
from tilefit._frontends.source.machine import Machine, RaisedError, Return, Rule
from tilefit._frontends.source.modules import LIBRARIES, member
from tilefit._frontends.source.names import assign
from tilefit._frontends.source.operators import binary, items_of, truth
from tilefit._frontends.source.unknown import text_of, unknown
from tilefit._frontends.source.values import (
    Device,
    Function,
    Launcher,
    Module,
    Path,
    Scope,
    Tensor,
    Tile,
    Unknown,
    Value,
)

# ---- definitions -----------------------------------------------------------------------------


def _function(machine: Machine, node: ast.FunctionDef) -> None:
    value: Value = Function(node, machine.scope.closure, defaults_of(machine, node.args))
    for decorator in reversed(node.decorator_list):
        value = _decorate(machine, decorator, value)
    machine.scope.vars[node.name] = value


def _decorate(machine: Machine, node: ast.expr, value: Value) -> Value:
    """Apply a decorator; one that we do not know leaves the function as it is."""
    decorator = machine.evaluate(node.func if isinstance(node, ast.Call) else node)
    ours = isinstance(decorator, Path) and decorator.path.startswith("tilelang")
    if not ours or not isinstance(value, Function):
        return value
    if decorator.last in ("prim_func", "macro"):
        return decorated(value, decorator.last)
    if decorator.last in ("jit", "lazy_jit"):
        given = node.keywords if isinstance(node, ast.Call) else []
        options = next((k.value for k in given if k.arg == "pass_configs"), None)
        return replace(value, kind="jit", options=machine.evaluate(options))
    if decorator.last == "autotune" and isinstance(node, ast.Call):
        configs = next((k.value for k in node.keywords if k.arg == "configs"), None)
        return replace(value, configs=machine.evaluate(configs))
    return value


def _async_function(machine: Machine, node: ast.AsyncFunctionDef) -> None:
    machine.scope.vars[node.name] = Unknown((), node.name)


def _return(machine: Machine, node: ast.Return) -> None:
    raise Return(machine.evaluate(node.value))


def _raise(machine: Machine, node: ast.Raise) -> None:
    what = "an error"
    if isinstance(node.exc, ast.Call):
        values = [machine.evaluate(argument) for argument in node.exc.args[:1]]
        words = "".join(f": {' '.join(v.split())}" for v in values if isinstance(v, str))
        what = f"{text_of(node.exc.func)}{words}"
    elif node.exc is not None:
        what = text_of(node.exc)
    raise RaisedError(f"{machine.file}:{node.lineno} raises {what}")


def _assert(machine: Machine, node: ast.Assert) -> None:
    if truth(machine.operand(node.test)) is False:
        raise RaisedError(f"{machine.file}:{node.lineno} asserts {text_of(node.test)}")


# ---- imports ---------------------------------------------------------------------------------


def _import(machine: Machine, node: ast.Import) -> None:
    for alias in node.names:
        top = alias.name.partition(".")[0]
        shown = alias.name if alias.asname else top
        found = machine.imported(alias.name, 0)
        if found is not None and not alias.asname:
            found = machine.imported(top, 0)
        machine.scope.vars[alias.asname or top] = Path(shown) if found is None else found


def _import_from(machine: Machine, node: ast.ImportFrom) -> None:
    module = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            own = machine.imported(node.module or "", node.level)
            if isinstance(own, Module):
                machine.scope.vars.update(_starred(own.scope))
            else:
                machine.scope.module.stars.append(module)
        elif module != "__future__":
            name = alias.asname or alias.name
            library = module.partition(".")[0] in {*LIBRARIES, "tilelang"}
            if library:
                value = member(Path(module), alias.name, machine.facts)
            else:
                value = machine.imported(node.module or "", node.level, alias.name)
            # what another file of the author defines and was not found, `--set` may give
            machine.scope.vars[name] = machine.missing(name) if value is None else value


def _starred(scope: Scope) -> dict[str, Value]:
    """Return the names that ``import *`` takes of a module."""
    chosen = scope.vars.get("__all__")
    if isinstance(chosen, (list, tuple)):
        return {name: scope.vars[name] for name in chosen if name in scope.vars}
    return {name: value for name, value in scope.vars.items() if not name.startswith("_")}


# ---- names -----------------------------------------------------------------------------------


def _expression(machine: Machine, node: ast.Expr) -> None:
    value = machine.evaluate(node.value)
    if isinstance(value, Launcher):
        _enter(machine, value, None)


def _global(machine: Machine, node: ast.Global) -> None:
    for name in node.names:
        machine.scope.elsewhere[name] = machine.scope.module


def _nonlocal(machine: Machine, node: ast.Nonlocal) -> None:
    for name in node.names:
        found = machine.scope.parent and machine.scope.parent.find(name)
        if found:
            machine.scope.elsewhere[name] = found


def _delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            machine.scope.vars.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            owner = machine.evaluate(target.value)
            if isinstance(owner, (list, dict)):
                machine.poisoned[id(owner)] = owner, unknown(target)


def _assign(machine: Machine, node: ast.Assign) -> None:
    value = machine.evaluate(node.value)
    if isinstance(value, Launcher):
        value = _enter(machine, value, node.targets[0])
    for target in node.targets:
        assign(machine, target, value)


def _annotated(machine: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(machine, node.target, machine.evaluate(node.value))
    elif machine.traced and isinstance(node.target, ast.Name):
        kind = machine.evaluate(node.annotation)
        if isinstance(kind, Tensor):
            kind.name = node.target.id
            machine.scope.vars[node.target.id] = kind


def _augmented(machine: Machine, node: ast.AugAssign) -> None:
    right = machine.operand(node.value)
    left = machine.evaluate(node.target)
    if isinstance(left, Tile):
        machine.touch(left, write=True)
    elif isinstance(left, (list, dict, set)):
        _change(machine, node, left, right)
    else:
        assign(machine, node.target, binary(node.op, left, right, node))


def _change(
    machine: Machine,
    node: ast.AugAssign,
    left: list[Value] | dict[Value, Value] | set[Value],
    right: Value,
) -> None:
    """Change a container in place, under all its names."""
    machine.poison(left)
    items = items_of(right)
    if isinstance(left, list) and isinstance(node.op, ast.Add) and items is not None:
        right = items
    result = binary(node.op, left, right, node)
    if isinstance(left, list) and isinstance(result, list):
        left[:] = result
    elif isinstance(left, dict) and isinstance(result, dict):
        left.update(result)
    elif isinstance(left, set) and isinstance(result, set):
        left.intersection_update(result)
        left.update(result)
    else:
        machine.poisoned[id(left)] = left, unknown(node, right)


# ---- contexts and launches -------------------------------------------------------------------


def _with(machine: Machine, node: ast.With) -> None:
    launches, outer = 0, len(machine.contexts)
    try:
        for item in node.items:
            value = machine.evaluate(item.context_expr)
            machine.contexts.append(last_name(item.context_expr) or "")
            if isinstance(value, Launcher):
                value = _enter(machine, value, item.optional_vars)
                launches += 1
            elif machine.traced:
                value = Device(text_of(item.context_expr))
            if item.optional_vars is not None:
                assign(machine, item.optional_vars, value)
        machine.block(node.body)
    finally:
        del machine.contexts[outer:]
        if machine.trace is not None:
            for _ in range(launches):
                machine.trace.leave()


def _enter(machine: Machine, launcher: Launcher, target: ast.expr | None) -> Value:
    """Enter a T.Kernel block and return its block indices."""
    if machine.trace is not None:
        machine.trace.launch(launcher, machine.doubt)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [Device(text_of(part)) for part in target.elts]
    return Device("blockIdx" if target is None else text_of(target))


STATEMENTS: Mapping[type[ast.AST], Rule] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _async_function,
    ast.ClassDef: define_class,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Expr: _expression,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Delete: _delete,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.With: _with,
}
