"""Expressions: what each kind of node of Python's `ast` comes to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.ops import binary, compare, items_of, small, truth, unary
from tilefit._frontends.source.unknown import known, mix, unknown
from tilefit._frontends.source.values import (
    Device,
    Function,
    Scope,
    Tile,
    Unknown,
    Value,
)


class Expressions(Machine):
    """Evaluates expressions; a kind that we do not follow is Unknown."""

    def evaluate(self, node: ast.expr | None) -> Value:
        if node is None:
            return None
        self.tick()
        method = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        return unknown(node) if method is None else method(node)

    def operand(self, node: ast.expr) -> Value:
        """Return a value that is computed with: a tile is read."""
        value = self.evaluate(node)
        if isinstance(value, Tile):
            self.touch(value)
            return Device(value.name, base=value)
        return value

    def _on_constant(self, node: ast.Constant) -> Value:
        value = node.value
        return Unknown((), "a constant") if small(value) is None is not value else value

    def _on_name(self, node: ast.Name) -> Value:
        return self.lookup(node.id)

    def _on_attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.evaluate(node.value), node.attr, node)

    def _on_subscript(self, node: ast.Subscript) -> Value:
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
        for part in index if isinstance(index, tuple) else (index,):
            self.touch(part)
        return self.item(owner, index, node)

    def _on_slice(self, node: ast.Slice) -> Value:
        return slice(self.evaluate(node.lower), self.evaluate(node.upper), self.evaluate(node.step))

    def _on_call(self, node: ast.Call) -> Value:
        return self.call(node)

    # ---- containers --------------------------------------------------------------------------

    def _items(self, nodes: Sequence[ast.expr]) -> list[Value] | Unknown:
        found: list[Value] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.evaluate(node))
                continue
            value = self.evaluate(node.value)
            items = items_of(value)
            if items is None:
                return unknown(node, value)
            found.extend(items)
        return found

    def _on_tuple(self, node: ast.Tuple) -> Value:
        items = self._items(node.elts)
        return items if isinstance(items, Unknown) else tuple(items)

    def _on_list(self, node: ast.List) -> Value:
        return self._items(node.elts)

    def _on_set(self, node: ast.Set) -> Value:
        return _set_of(self._items(node.elts), node)

    def _on_dict(self, node: ast.Dict) -> Value:
        found: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            item = self.evaluate(value)
            if key is None:
                if not isinstance(item, dict):
                    return unknown(node, item)
                found.update(item)
                continue
            name = self.evaluate(key)
            try:
                found[name] = item
            except TypeError:
                return unknown(node, name)
        return found

    # ---- operators ---------------------------------------------------------------------------

    def _on_binop(self, node: ast.BinOp) -> Value:
        return binary(node.op, self.operand(node.left), self.operand(node.right), node)

    def _on_unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.operand(node.operand)
        if not isinstance(node.op, ast.Not):
            return unary(node.op, value, node)
        decided = truth(value)
        return not decided if isinstance(decided, bool) else mix(node, decided)

    def _on_boolop(self, node: ast.BoolOp) -> Value:
        ends = isinstance(node.op, ast.Or)  # the truth that settles it
        undecided: list[Value] = []
        value: Value = None
        for part in node.values:
            value = self.operand(part)
            decided = truth(value)
            if decided is ends:
                return value
            if not isinstance(decided, bool):
                undecided.append(decided)
        return mix(node, *undecided) if undecided else value

    def _on_compare(self, node: ast.Compare) -> Value:
        left = self.operand(node.left)
        undecided: list[Value] = []
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.operand(comparator)
            result = compare(op, left, right, node)
            if result is False:
                return False
            if result is not True:
                undecided.append(result)
            left = right
        return mix(node, *undecided) if undecided else True

    def _on_ifexp(self, node: ast.IfExp) -> Value:
        decided = truth(self.operand(node.test))
        if isinstance(decided, bool):
            return self.evaluate(node.body if decided else node.orelse)
        before = len(self.doubts)
        if isinstance(decided, Unknown):
            self.doubts.append(decided)
        try:
            both = self.evaluate(node.body), self.evaluate(node.orelse)
        finally:
            del self.doubts[before:]
        if known(both) and both[0] == both[1] and type(both[0]) is type(both[1]):
            return both[0]
        if isinstance(decided, Unknown):
            return unknown(node, decided, *both)
        return mix(node, decided, *both)

    # ---- text, functions, comprehensions -----------------------------------------------------

    def _on_joinedstr(self, node: ast.JoinedStr) -> Value:
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value)
                plain = part.format_spec is None and part.conversion == -1
                if not plain or not isinstance(value, (str, int, float)):
                    return unknown(node, value)
                text += str(value)
        return unknown(node) if small(text) is None else text

    def _on_namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _on_lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.scope, self.defaults_of(node.args))

    def defaults_of(self, given: ast.arguments) -> dict[str, Value]:
        """Evaluate the defaults of a function's parameters."""
        places = [*given.posonlyargs, *given.args]
        with_default = places[len(places) - len(given.defaults) :]
        found = {
            place.arg: self.evaluate(node)
            for place, node in zip(with_default, given.defaults, strict=True)
        }
        for place, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            if default is not None:
                found[place.arg] = self.evaluate(default)
        return found

    def _on_listcomp(self, node: ast.ListComp) -> Value:
        return self._comprehension(node.generators, [node.elt], node)

    def _on_generatorexp(self, node: ast.GeneratorExp) -> Value:
        return self._comprehension(node.generators, [node.elt], node)

    def _on_setcomp(self, node: ast.SetComp) -> Value:
        return _set_of(self._comprehension(node.generators, [node.elt], node), node)

    def _on_dictcomp(self, node: ast.DictComp) -> Value:
        items = self._comprehension(node.generators, [node.key, node.value], node)
        if isinstance(items, Unknown):
            return items
        try:
            return dict(items)
        except TypeError:
            return unknown(node)

    def _comprehension(
        self, generators: Sequence[ast.comprehension], wanted: Sequence[ast.expr], node: ast.expr
    ) -> list[Value] | Unknown:
        """Return the items, tuples where several expressions are wanted for each."""
        found: list[Value] = []
        outer = self.scope
        self.scope = Scope(parent=outer)

        def descend(depth: int) -> Unknown | None:
            if depth == len(generators):
                values = tuple(self.evaluate(one) for one in wanted)
                found.append(values if len(wanted) > 1 else values[0])
                return None
            over = self.evaluate(generators[depth].iter)
            items = items_of(over)
            if items is None:
                return unknown(node, over)
            for item in items:
                self.assign(generators[depth].target, item)
                decided = [truth(self.evaluate(test)) for test in generators[depth].ifs]
                if any(not isinstance(one, bool) for one in decided):
                    return unknown(node, *decided)
                if all(decided) and (failed := descend(depth + 1)) is not None:
                    return failed
            return None

        try:
            failed = descend(0)
        finally:
            self.scope = outer
        if failed is None:
            return found
        if any(isinstance(n, ast.Call) for one in wanted for n in ast.walk(one)):
            self.gap(failed.text, node.lineno)
        return failed


def _set_of(items: list[Value] | Unknown, node: ast.expr) -> Value:
    if isinstance(items, Unknown):
        return items
    try:
        return set(items) if known(items) else unknown(node, *items)
    except TypeError:
        return unknown(node)
