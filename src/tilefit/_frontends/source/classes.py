"""Classes of the file: their attributes, their objects and methods bound to one."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilefit._frontends.source.find import last_name
from tilefit._frontends.source.functions import bind, build, run
from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.names import lookup
from tilefit._frontends.source.unknown import unknown
from tilefit._frontends.source.values import (
    Arguments,
    ClassValue,
    Function,
    Instance,
    Path,
    Scope,
    Super,
    Unknown,
    Value,
    Where,
)

# what inherits from more classes is no author's
_MAX_BASES = 64


def define_class(machine: Machine, node: ast.ClassDef) -> None:
    """Follow a ``class`` statement."""
    outer = machine.scope
    given = [machine.evaluate(base) for base in node.bases]
    given = [base for base in given if base != Path("builtins.object")]
    ours = [base for base in given if isinstance(base, ClassValue)]
    whole = len(ours) == len(given) and all(base.whole for base in ours)
    above = [one for base in ours for one in (base, *base.bases)]
    bases = tuple(dict.fromkeys(above[::-1]))[::-1]  # one above several comes behind them
    machine.scope = Scope(parent=outer.closure, kind="class")
    try:
        machine.block(node.body)
    finally:
        found, machine.scope = machine.scope, outer
    if len(bases) > _MAX_BASES:
        outer.vars[node.name] = Unknown((), node.name)
    else:
        outer.vars[node.name] = ClassValue(node, found, bases, whole)


def class_attribute(
    machine: Machine, owner: Super | ClassValue | Instance, name: str, where: Where
) -> Value:
    """Return an attribute of a class of the file, or of an object of one."""
    if isinstance(owner, Super):
        value = next((c.scope.vars[name] for c in owner.classes if name in c.scope.vars), None)
        if isinstance(value, Function):
            return bound_to(owner.instance, value)
        return unknown(where) if value is None else value
    if isinstance(owner, ClassValue):
        value = owner.find(name)
        # what an enumeration or the like makes of its attributes is not ours to say
        return value if owner.whole or isinstance(value, Function) else unknown(where)
    if name in owner.vars:
        return owner.vars[name]
    value = owner.owner.find(name)
    if isinstance(value, Function):
        method = bound_to(owner, value)
        words = [last_name(decorator) for decorator in value.decorators]
        reads = "property" in words or "cached_property" in words
        return _without_arguments(machine, method) if reads else method
    return unknown(where) if value is None else value


def _without_arguments(machine: Machine, method: Function) -> Value:
    return build(machine, method, bind(method, Arguments()))


def super_of(machine: Machine, node: ast.Call) -> Value:
    """Return what ``super()`` gives in the method that runs."""
    method = machine.running[-1] if machine.running else None
    places = method.parameters if method is not None else []
    instance = lookup(machine, places[0].arg) if places else None
    if method is None or not isinstance(instance, Instance):
        return unknown(node)
    classes = (instance.owner, *instance.owner.bases)
    for at, one in enumerate(classes, start=1):
        values = one.scope.vars.values()
        if any(isinstance(value, Function) and value.node is method.node for value in values):
            return Super(instance, classes[at:])
    return unknown(node)


def instantiate(machine: Machine, owner: ClassValue, arguments: Arguments) -> Instance:
    """Make an object: run its ``__init__``, or fill the fields of a dataclass."""
    made = Instance(owner)
    init = owner.find("__init__")
    if isinstance(init, Function):
        method = bound_to(made, init)
        run(machine, method, bind(method, arguments))
    elif any(last_name(d) == "dataclass" for d in owner.node.decorator_list):
        _fill(machine, made, arguments)
    return made


def _fill(machine: Machine, made: Instance, arguments: Arguments) -> None:
    """Give an object the fields of its dataclass."""
    owner = made.owner
    fields = fields_of(owner)
    given = dict(zip(fields, arguments.places, strict=False)) | arguments.names
    for name, default in fields.items():
        value = owner.find(name) if name in owner.names() else Unknown((), name)
        value = given.get(name, arguments.rest or value)
        simple = default is None or not isinstance(default, ast.Call)
        made.vars[name] = value if name in given or simple else Unknown((), name)
    after = owner.find("__post_init__")
    if isinstance(after, Function):
        _without_arguments(machine, bound_to(made, after))


def bound_to(owner: Instance, method: Function) -> Function:
    """Return a method with its object passed."""
    if method.static or not method.parameters:
        return method
    first = method.parameters[0].arg
    return replace(method, bound={**method.bound, first: owner})


def fields_of(owner: ClassValue) -> dict[str, ast.expr | None]:
    """Return the fields of a dataclass with their defaults, those that it inherits first."""
    return {
        statement.target.id: statement.value
        for one in (*reversed(owner.bases), owner)
        for statement in one.node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
