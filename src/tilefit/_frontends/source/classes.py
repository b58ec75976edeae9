"""Classes of the file: their attributes, their objects and methods bound to one."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilefit._frontends.source.calls import Calls
from tilefit._frontends.source.find import last_name
from tilefit._frontends.source.objects import ClassValue, Instance, Super
from tilefit._frontends.source.unknown import unknown
from tilefit._frontends.source.values import (
    Arguments,
    Function,
    Path,
    Scope,
    Unknown,
    Value,
    Where,
)

# what inherits from more classes is no author's
_MAX_BASES = 64


class Classes(Calls):
    """Adds classes to what can be evaluated."""

    def _do_classdef(self, node: ast.ClassDef) -> None:
        outer = self.scope
        given = [self.evaluate(base) for base in node.bases]
        given = [base for base in given if base != Path("builtins.object")]
        ours = [base for base in given if isinstance(base, ClassValue)]
        whole = len(ours) == len(given) and all(base.whole for base in ours)
        bases = tuple(dict.fromkeys(c for base in ours for c in (base, *base.bases)))
        self.scope = Scope(parent=outer)
        try:
            self.block(node.body)
        finally:
            found, self.scope = self.scope, outer
        if len(bases) > _MAX_BASES:
            outer.vars[node.name] = Unknown((), node.name)
        else:
            outer.vars[node.name] = ClassValue(node, found, bases, whole)

    def attribute(self, owner: Value, name: str, where: Where) -> Value:
        if isinstance(owner, Super):
            found = (base.find(name) for base in owner.above.bases)
            value = next((one for one in found if one is not None), None)
            if isinstance(value, Function):
                return bound_to(owner.instance, value)
            return unknown(where) if value is None else value
        if isinstance(owner, ClassValue):
            value = owner.find(name)
            # what an enumeration or the like makes of its attributes is not ours to say
            return value if owner.whole or isinstance(value, Function) else unknown(where)
        if not isinstance(owner, Instance):
            return super().attribute(owner, name, where)
        if name in owner.vars:
            return owner.vars[name]
        value = owner.owner.find(name)
        if isinstance(value, Function):
            method = bound_to(owner, value)
            words = [last_name(decorator) for decorator in value.decorators]
            reads = "property" in words or "cached_property" in words
            return self._without_arguments(method) if reads else method
        return unknown(where) if value is None else value

    def _without_arguments(self, method: Function) -> Value:
        return self.build(method, self.bind(method, Arguments()))

    def set_attribute(self, owner: Value, name: str, value: Value) -> None:
        """Bind ``owner.name``."""
        if isinstance(owner, (Instance, ClassValue)):
            names = owner.vars if isinstance(owner, Instance) else owner.scope.vars
            names[name] = self.named(name, self.joined_under_doubt(names.get(name), value))

    def apply(self, function: Value, arguments: Arguments, node: ast.Call) -> Value:
        if function == Path("builtins.super") and not arguments.all:
            return self._super(node)
        if isinstance(function, ClassValue):
            return self.instantiate(function, arguments)
        if isinstance(function, Instance):
            method = function.owner.find("__call__")
            function = bound_to(function, method) if isinstance(method, Function) else Unknown()
        return super().apply(function, arguments, node)

    def _super(self, node: ast.Call) -> Value:
        """Return what ``super()`` gives in the method that runs."""
        method = self.running[-1] if self.running else None
        places = method.parameters if method is not None else []
        instance = self.lookup(places[0].arg) if places else None
        if method is None or not isinstance(instance, Instance):
            return unknown(node)
        above = _defining(instance.owner, method)
        return unknown(node) if above is None else Super(instance, above)

    def instantiate(self, owner: ClassValue, arguments: Arguments) -> Instance:
        """Make an object: run its ``__init__``, or fill the fields of a dataclass."""
        made = Instance(owner)
        init = owner.find("__init__")
        if isinstance(init, Function):
            method = bound_to(made, init)
            self.run(method, self.bind(method, arguments))
        elif any(last_name(d) == "dataclass" for d in owner.node.decorator_list):
            self._fill(made, arguments)
        return made

    def _fill(self, made: Instance, arguments: Arguments) -> None:
        owner = made.owner
        names = [name for name, _ in fields_of(owner)]
        given = dict(zip(names, arguments.places, strict=False)) | arguments.names
        for name, default in fields_of(owner):
            value = given.get(name, arguments.rest or owner.scope.vars.get(name, Unknown((), name)))
            simple = default is None or not isinstance(default, ast.Call)
            made.vars[name] = value if name in given or simple else Unknown((), name)
        after = owner.find("__post_init__")
        if isinstance(after, Function):
            self._without_arguments(bound_to(made, after))


def _defining(owner: ClassValue, method: Function) -> ClassValue | None:
    """Return the class, this one or a base of it, whose body defines a method."""
    for one in (owner, *owner.bases):
        for value in one.scope.vars.values():
            if isinstance(value, Function) and value.node is method.node:
                return one
    return None


def bound_to(owner: Instance, method: Function) -> Function:
    """Return a method with its object passed."""
    if method.static or not method.parameters:
        return method
    first = method.parameters[0].arg
    return replace(method, bound={**method.bound, first: owner})


def fields_of(owner: ClassValue) -> list[tuple[str, ast.expr | None]]:
    """Return the fields of a dataclass with their defaults, in order."""
    return [
        (statement.target.id, statement.value)
        for statement in owner.node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
