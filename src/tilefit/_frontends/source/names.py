"""Names of the scopes: what one stands for, and binding a target."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.modules import builtin, is_starred, member
from tilefit._frontends.source.operators import MAX_LENGTH, items_of
from tilefit._frontends.source.unknown import names_of, text_of, unknown
from tilefit._frontends.source.values import (
    ClassValue,
    Device,
    Instance,
    Path,
    Tensor,
    Tile,
    Unknown,
    Value,
)


def lookup(machine: Machine, name: str) -> Value:
    """Return what a name stands for."""
    scope = machine.scope.find(name)
    if scope is not None:
        return machine.sound(scope.vars[name])
    for module in machine.scope.module.stars:
        if is_starred(f"{module}.{name}"):
            return member(Path(module), name, machine.facts)
    return builtin(name) or machine.missing(name)


def assign(machine: Machine, target: ast.expr, value: Value) -> None:
    """Bind a target; what stands for an element of something is stored into it."""
    if isinstance(target, ast.Name):
        _bind(machine, target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, _unpacked(value, target.elts), strict=True):
            assign(machine, part.value if isinstance(part, ast.Starred) else part, item)
    elif isinstance(target, ast.Attribute):
        _bind_attribute(machine, machine.evaluate(target.value), target.attr, value)
    elif isinstance(target, ast.Subscript):
        owner, index = machine.evaluate(target.value), machine.evaluate(target.slice)
        if isinstance(owner, (Tile, Device)):
            machine.touch(owner, write=True)
        elif isinstance(owner, (list, dict)):
            machine.poison(owner)
            try:
                grows = len(owner) + len(items_of(value) or ()) if isinstance(index, slice) else 0
                if names_of(index) or isinstance(index, Unknown) or grows > MAX_LENGTH:
                    raise TypeError(index)
                owner[index] = value
            except Exception:
                machine.poisoned[id(owner)] = owner, unknown(target, index)


def _bind(machine: Machine, name: str, value: Value) -> None:
    """Bind a name."""
    scope = machine.scope.elsewhere.get(name, machine.scope)
    if machine.traced:
        old = scope.vars.get(name)
        variable = isinstance(old, Tile) and old.scope == "local.var"
        if variable and isinstance(value, (int, float, Device)):
            machine.touch(old, write=True)  # a store; the name still means the variable
            return
        if isinstance(value, Tile):
            value.name = name  # as TileLang names it: by the last variable that held it
        if isinstance(value, Device) and value.value is None:
            renamed = machine.trace is not None and machine.trace.rename(value, name)
            value = value if renamed else replace(value, text=name)
    if scope is not machine.scope:  # `fork` joins the names of this function only
        value = machine.joined_under_doubt(scope.vars, name, value)
    scope.vars[name] = machine.named(name, value)


def _bind_attribute(machine: Machine, owner: Value, name: str, value: Value) -> None:
    """Bind ``owner.name``."""
    if isinstance(owner, (Instance, ClassValue)):
        names = owner.vars if isinstance(owner, Instance) else owner.scope.vars
        names[name] = machine.named(name, machine.joined_under_doubt(names, name, value))


def _unpacked(value: Value, targets: Sequence[ast.expr]) -> list[Value]:
    """Return as many items as there are targets."""
    items = items_of(value)
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if items is not None and starred is not None and len(items) >= len(targets) - 1:
        end = len(items) - (len(targets) - starred - 1)
        return [*items[:starred], items[starred:end], *items[end:]]
    if items is not None and len(items) == len(targets):
        return items
    if isinstance(value, (Device, Tile, Tensor)):
        return [Device(text_of(target)) for target in targets]
    return [unknown(target, value) for target in targets]
