"""Expressions: what each kind of node of Python's `ast` comes to; `EXPRESSIONS` lists them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tilefit._frontends.source.attributes import attribute, subscript
from tilefit._frontends.source.calls import call
from tilefit._frontends.source.functions import defaults_of
from tilefit._frontends.source.machine import Machine, Rule
from tilefit._frontends.source.names import assign, lookup
from tilefit._frontends.source.operators import binary, compare, items_of, small, truth, unary
from tilefit._frontends.source.unknown import known, mix, names_of, unknown
from tilefit._frontends.source.values import (
    Function,
    Scope,
    Unknown,
    Value,
)


def _constant(_machine: Machine, node: ast.Constant) -> Value:
    value = node.value
    return Unknown((), "a constant") if small(value) is None is not value else value


def _name(machine: Machine, node: ast.Name) -> Value:
    return lookup(machine, node.id)


def _attribute(machine: Machine, node: ast.Attribute) -> Value:
    return attribute(machine, machine.evaluate(node.value), node.attr, node)


def _subscript(machine: Machine, node: ast.Subscript) -> Value:
    owner, index = machine.evaluate(node.value), machine.evaluate(node.slice)
    for part in index if isinstance(index, tuple) else (index,):
        machine.touch(part)
    return subscript(machine, owner, index, node)


def _slice(machine: Machine, node: ast.Slice) -> Value:
    return slice(
        machine.evaluate(node.lower), machine.evaluate(node.upper), machine.evaluate(node.step)
    )


# ---- containers ------------------------------------------------------------------------------


def _items(machine: Machine, nodes: Sequence[ast.expr]) -> list[Value] | Unknown:
    found: list[Value] = []
    for node in nodes:
        if not isinstance(node, ast.Starred):
            found.append(machine.evaluate(node))
            continue
        value = machine.evaluate(node.value)
        items = items_of(value)
        if items is None:
            return unknown(node, value)
        found.extend(items)
    return found


def _tuple(machine: Machine, node: ast.Tuple) -> Value:
    items = _items(machine, node.elts)
    return items if isinstance(items, Unknown) else tuple(items)


def _list(machine: Machine, node: ast.List) -> Value:
    return _items(machine, node.elts)


def _set(machine: Machine, node: ast.Set) -> Value:
    return _set_of(_items(machine, node.elts), node)


def _set_of(items: list[Value] | Unknown, node: ast.expr) -> Value:
    if isinstance(items, Unknown):
        return items
    try:
        return set(items) if known(items) else unknown(node, *items)
    except TypeError:
        return unknown(node)


def _dict(machine: Machine, node: ast.Dict) -> Value:
    found: dict[Value, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        item = machine.evaluate(value)
        if key is None:
            if not isinstance(item, dict):
                return unknown(node, item)
            found.update(item)
            continue
        name = machine.evaluate(key)
        try:
            found[name] = item
        except TypeError:
            return unknown(node, name)
    return _decided(found, node)


def _decided(found: dict[Value, Value], node: ast.expr) -> Value:
    """Return a dict, Unknown if a key that is not known may be one that is."""
    open_keys = [key for key in found if names_of(key)]
    return unknown(node, *found, *found.values()) if open_keys and len(found) > 1 else found


# ---- operators -------------------------------------------------------------------------------


def _binary(machine: Machine, node: ast.BinOp) -> Value:
    return binary(node.op, machine.operand(node.left), machine.operand(node.right), node)


def _unary(machine: Machine, node: ast.UnaryOp) -> Value:
    value = machine.operand(node.operand)
    if not isinstance(node.op, ast.Not):
        return unary(node.op, value, node)
    decided = truth(value)
    return not decided if isinstance(decided, bool) else mix(node, decided)


def _boolean(machine: Machine, node: ast.BoolOp) -> Value:
    ends = isinstance(node.op, ast.Or)  # the truth that settles it
    undecided: list[Value] = []
    value: Value = None
    for part in node.values:
        value = machine.operand(part)
        decided = truth(value)
        if decided is ends and (not undecided or isinstance(value, bool)):
            return value
        if not isinstance(decided, bool):
            undecided.append(decided)
    return mix(node, *undecided, value) if undecided else value


def _comparison(machine: Machine, node: ast.Compare) -> Value:
    left = machine.operand(node.left)
    undecided: list[Value] = []
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = machine.operand(comparator)
        result = compare(op, left, right, node)
        if result is False:
            return False
        if result is not True:
            undecided.append(result)
        left = right
    return mix(node, *undecided) if undecided else True


def _conditional(machine: Machine, node: ast.IfExp) -> Value:
    decided = truth(machine.operand(node.test))
    if isinstance(decided, bool):
        return machine.evaluate(node.body if decided else node.orelse)
    before = len(machine.doubts)
    if isinstance(decided, Unknown):
        machine.doubts.append(decided)
    try:
        both = machine.evaluate(node.body), machine.evaluate(node.orelse)
    finally:
        del machine.doubts[before:]
    if known(both) and both[0] == both[1] and type(both[0]) is type(both[1]):
        return both[0]
    if isinstance(decided, Unknown):
        return unknown(node, decided, *both)
    return mix(node, decided, *both)


# ---- text, functions, comprehensions ---------------------------------------------------------


def _formatted(machine: Machine, node: ast.JoinedStr) -> Value:
    text = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            value = machine.evaluate(part.value)
            plain = part.format_spec is None and part.conversion == -1
            if not plain or not isinstance(value, (str, int, float)):
                return unknown(node, value)
            text += str(value)
    return unknown(node) if small(text) is None else text


def _named(machine: Machine, node: ast.NamedExpr) -> Value:
    value = machine.evaluate(node.value)
    outer, machine.scope = machine.scope, machine.scope.function
    try:
        assign(machine, node.target, value)
    finally:
        machine.scope = outer
    return value


def _lambda(machine: Machine, node: ast.Lambda) -> Value:
    return Function(node, machine.scope.closure, defaults_of(machine, node.args))


def _list_of(machine: Machine, node: ast.ListComp) -> Value:
    return _comprehension(machine, node.generators, [node.elt], node)


def _set_comprehension(machine: Machine, node: ast.SetComp) -> Value:
    return _set_of(_comprehension(machine, node.generators, [node.elt], node), node)


def _dict_comprehension(machine: Machine, node: ast.DictComp) -> Value:
    items = _comprehension(machine, node.generators, [node.key, node.value], node)
    if isinstance(items, Unknown):
        return items
    try:
        return _decided(dict(items), node)
    except TypeError:
        return unknown(node)


def _comprehension(
    machine: Machine,
    generators: Sequence[ast.comprehension],
    wanted: Sequence[ast.expr],
    node: ast.expr,
) -> list[Value] | Unknown:
    """Return the items, tuples where several expressions are wanted for each."""
    found: list[Value] = []
    outer = machine.scope
    first = machine.evaluate(generators[0].iter)  # where the comprehension stands
    machine.scope = Scope(parent=outer.closure, kind="comprehension")

    def descend(depth: int) -> Unknown | None:
        if depth == len(generators):
            values = tuple(machine.evaluate(one) for one in wanted)
            found.append(values if len(wanted) > 1 else values[0])
            return None
        over = machine.evaluate(generators[depth].iter) if depth else first
        items = items_of(over)
        if items is None:
            return unknown(node, over)
        for item in items:
            assign(machine, generators[depth].target, item)
            decided = [truth(machine.evaluate(test)) for test in generators[depth].ifs]
            if any(not isinstance(one, bool) for one in decided):
                return unknown(node, *decided)
            if all(decided) and (failed := descend(depth + 1)) is not None:
                return failed
        return None

    try:
        failed = descend(0)
    finally:
        machine.scope = outer
    if failed is None:
        return found
    if any(isinstance(n, ast.Call) for one in wanted for n in ast.walk(one)):
        machine.gap(failed.text, node.lineno)
    return failed


EXPRESSIONS: Mapping[type[ast.AST], Rule] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Call: call,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.IfExp: _conditional,
    ast.JoinedStr: _formatted,
    ast.NamedExpr: _named,
    ast.Lambda: _lambda,
    ast.ListComp: _list_of,
    ast.GeneratorExp: _list_of,
    ast.SetComp: _set_comprehension,
    ast.DictComp: _dict_comprehension,
}
