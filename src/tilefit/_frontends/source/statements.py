"""Statements that bind names: definitions, imports, assignments; and running a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from tilefit._errors import KernelError
from tilefit._frontends.source.classes import Classes
from tilefit._frontends.source.find import own_nodes
from tilefit._frontends.source.machine import LIBRARIES
from tilefit._frontends.source.ops import binary, items_of, truth
from tilefit._frontends.source.unknown import join, names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Device,
    Function,
    Launcher,
    Path,
    Scope,
    Tensor,
    Tile,
    Unknown,
    Value,
)

_MAX_DEPTH = 40


class RaisedError(KernelError):
    """The file raises at this point, whatever is unknown."""


class Return(Exception):  # noqa: N818
    """A ``return`` with its value."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Statements(Classes):
    """Follows statements; kinds that bind nothing and allocate nothing are passed over."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Follow one statement."""
        self.tick()
        method: Callable[[ast.stmt], None] | None
        method = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node)

    # ---- functions ---------------------------------------------------------------------------

    def run(self, function: Function, arguments: dict[str, Value]) -> Value:
        scope = Scope(dict(arguments), function.scope)
        return self.inside(function, scope, traced=function.kind == "macro")

    def inside(self, function: Function, scope: Scope, *, traced: bool) -> Value:
        """Follow the body of a function in a scope of its own."""
        if len(self.running) >= _MAX_DEPTH or self._is_generator(function.node):
            self.gap(f"{function.name}()", function.line)
            return Unknown((), f"{function.name}()")
        outer = self.scope, self.traced, self.returns
        doubts, partial = len(self.doubts), self.partial
        self.scope, self.traced, self.returns = scope, traced, []
        self.running.append(function)
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body)
            result: Value = None
            try:
                self.block(function.body)
            except Return as end:
                result = end.value
            why = Unknown(names_of(*self.doubts), function.name)
            for other in self.returns:
                result = join([result, other], why)
            return result
        finally:
            self.running.pop()
            self.scope, self.traced, self.returns = outer
            self.partial = partial
            del self.doubts[doubts:]

    def _is_generator(self, node: ast.AST) -> bool:
        if node not in self.generators:  # a function may be called often
            yields = (isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(node))
            self.generators[node] = any(yields)
        return self.generators[node]

    def _do_functiondef(self, node: ast.FunctionDef) -> None:
        value: Value = Function(node, self.scope, self.defaults_of(node.args))
        for decorator in reversed(node.decorator_list):
            value = self._decorate(decorator, value)
        self.scope.vars[node.name] = value

    def _decorate(self, node: ast.expr, value: Value) -> Value:
        """Apply a decorator; one that we do not know leaves the function as it is."""
        decorator = self.evaluate(node.func if isinstance(node, ast.Call) else node)
        ours = isinstance(decorator, Path) and decorator.path.startswith("tilelang")
        if not ours or not isinstance(value, Function):
            return value
        if decorator.last in ("prim_func", "macro"):
            return self.decorated(value, decorator.last)
        if decorator.last in ("jit", "lazy_jit"):
            return replace(value, kind="jit")
        if decorator.last == "autotune" and isinstance(node, ast.Call):
            configs = next((k.value for k in node.keywords if k.arg == "configs"), None)
            return replace(value, configs=self.evaluate(configs))
        return value

    def _do_asyncfunctiondef(self, node: ast.AsyncFunctionDef) -> None:
        self.scope.vars[node.name] = Unknown((), node.name)

    def _do_return(self, node: ast.Return) -> None:
        raise Return(self.evaluate(node.value))

    def _do_raise(self, node: ast.Raise) -> None:
        what = "an error"
        if isinstance(node.exc, ast.Call):
            values = [self.evaluate(argument) for argument in node.exc.args[:1]]
            words = "".join(f": {' '.join(v.split())}" for v in values if isinstance(v, str))
            what = f"{text_of(node.exc.func)}{words}"
        elif node.exc is not None:
            what = text_of(node.exc)
        raise RaisedError(f"{self.file}:{node.lineno} raises {what}")

    def _do_assert(self, node: ast.Assert) -> None:
        if truth(self.operand(node.test)) is False:
            raise RaisedError(f"{self.file}:{node.lineno} asserts {text_of(node.test)}")

    # ---- imports -----------------------------------------------------------------------------

    def _do_import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.scope.vars[alias.asname or top] = Path(alias.name if alias.asname else top)

    def _do_importfrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.scope.module.stars.append(module)
            elif module != "__future__":
                name = alias.asname or alias.name
                library = module.partition(".")[0] in {*LIBRARIES, "tilelang"}
                # what another file of the author defines, `--set` may give
                self.scope.vars[name] = (
                    self.attribute(Path(module), alias.name, name)
                    if library
                    else self.missing(name)
                )

    # ---- names -------------------------------------------------------------------------------

    def _do_expr(self, node: ast.Expr) -> None:
        value = self.evaluate(node.value)
        if isinstance(value, Launcher):
            self.enter(value, None)

    def _do_global(self, node: ast.Global) -> None:
        for name in node.names:
            self.scope.elsewhere[name] = self.scope.module

    def _do_nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            found = self.scope.parent and self.scope.parent.find(name)
            if found:
                self.scope.elsewhere[name] = found

    def _do_delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.vars.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value)
                if isinstance(owner, (list, dict)):
                    self.poisoned[id(owner)] = owner, unknown(target)

    def _do_assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        if isinstance(value, Launcher):
            value = self.enter(value, node.targets[0])
        for target in node.targets:
            self.assign(target, value)

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))
        elif self.traced and isinstance(node.target, ast.Name):
            kind = self.evaluate(node.annotation)
            if isinstance(kind, Tensor):
                kind.name = node.target.id
                self.scope.vars[node.target.id] = kind

    def _do_augassign(self, node: ast.AugAssign) -> None:
        right = self.operand(node.value)
        left = self.evaluate(node.target)
        if isinstance(left, Tile):
            self.touch(left, write=True)
        elif isinstance(left, list):  # changed in place, under all its names
            self.poison(left)
            items = items_of(right)
            if items is None:
                self.assign(node.target, unknown(node, right))
            elif isinstance(node.op, ast.Add):
                left.extend(items)
            else:
                self.assign(node.target, binary(node.op, left, right, node))
        else:
            self.assign(node.target, binary(node.op, left, right, node))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, _unpacked(value, target.elts), strict=True):
                self.assign(part.value if isinstance(part, ast.Starred) else part, item)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.evaluate(target.value), target.attr, value)
        elif isinstance(target, ast.Subscript):
            owner, index = self.evaluate(target.value), self.evaluate(target.slice)
            if isinstance(owner, (Tile, Device)):
                self.touch(owner, write=True)
            elif isinstance(owner, (list, dict)):
                self.poison(owner)
                try:
                    owner[index] = value
                except Exception:
                    self.poisoned[id(owner)] = owner, unknown(target, index)

    def _bind(self, name: str, value: Value) -> None:
        scope = self.scope.elsewhere.get(name, self.scope)
        if self.traced:
            old = scope.vars.get(name)
            variable = isinstance(old, Tile) and old.scope == "local.var"
            if variable and isinstance(value, (int, float, Device)):
                self.touch(old, write=True)  # a store; the name still means the variable
                return
            if isinstance(value, Tile):
                value.name = name  # as TileLang names it: by the last variable that held it
            if isinstance(value, Device) and value.value is None:
                renamed = self.trace is not None and self.trace.rename(value, name)
                value = value if renamed else replace(value, text=name)
        if scope is not self.scope:  # `fork` joins the names of this function only
            value = self.joined_under_doubt(scope.vars.get(name), value)
        scope.vars[name] = self.named(name, value)

    def enter(self, launcher: Launcher, target: ast.expr | None) -> Value:
        """Enter a T.Kernel block and return its block indices."""
        if self.trace is not None:
            self.trace.launch(launcher, self.doubt)
        if isinstance(target, (ast.Tuple, ast.List)):
            return [Device(text_of(part)) for part in target.elts]
        return Device("blockIdx" if target is None else text_of(target))


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
