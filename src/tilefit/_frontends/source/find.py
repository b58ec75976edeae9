"""Which functions of a file are kernels, and what their parameters are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilefit._frontends.returns import own_nodes, returned_calls
from tilefit._frontends.source.allocate import ADAPTER, ADAPTER_FUNCTIONS
from tilefit._frontends.source.language import LAUNCHES, TENSORS
from tilefit._frontends.source.unknown import known, text_of
from tilefit._frontends.source.values import (
    ClassValue,
    Function,
    PrimFunc,
    Scope,
    Value,
)
from tilefit._kernel.kernel import Listing, Parameter

_MAX_CHOICES = 4  # factories that choose among factories that choose

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def last_name(node: ast.AST | None) -> str | None:
    """Return the last part of a dotted name, or of what a call or subscript applies it to."""
    if isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def adapter_of(tree: ast.AST) -> tuple[str, ...]:
    """Return the spellings of the adapter tilelang-ascend that a file may be written in.

    Returns:
        Empty if it has no spelling that only the adapter knows; both if nothing tells them apart.
    """
    nodes = list(ast.walk(tree))
    names = {last_name(n) for n in nodes if isinstance(n, (ast.Attribute, ast.Name))}
    flags = {n.arg for n in nodes if isinstance(n, ast.keyword)}
    if not names & ADAPTER_FUNCTIONS and "is_npu" not in flags:
        return ()
    new, old = ADAPTER
    if any(isinstance(n, ast.Constant) and n.value == "shared.ub" for n in nodes):
        return (new,)
    return (old,) if "alloc_local" in names else ADAPTER


def has_inner_kernel(node: FunctionNode) -> bool:
    """Return whether a function defines a kernel inside of it."""
    return any(
        isinstance(inner, ast.FunctionDef)
        and inner is not node
        and any(last_name(d) in ("prim_func", "jit") for d in inner.decorator_list)
        for inner in ast.walk(node)
    )


def is_eager(node: FunctionNode) -> bool:
    """Return whether the body of a jit function is the kernel itself."""
    if has_inner_kernel(node):
        return False
    return any(
        isinstance(inner, ast.Call) and last_name(inner) in (*LAUNCHES, "const")
        for inner in own_nodes(node)
    )


def tensor_parameters(node: FunctionNode) -> set[str]:
    """Return the parameters of an eager kernel that are tensors or run-time numbers."""
    arguments = node.args
    places = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    found = {place.arg for place in places if _is_device_type(place.annotation)}
    for inner in own_nodes(node):
        declares = isinstance(inner, ast.AnnAssign) and inner.value is None
        if declares and _is_device_type(getattr(inner, "annotation", None)):
            found.add(text_of(getattr(inner, "target", inner)))
    return found & {place.arg for place in places}


def _is_device_type(annotation: ast.expr | None) -> bool:
    """Return whether an annotation is ``T.Tensor[...]`` or the like, or ``T.float32``."""
    name = last_name(annotation)
    if name in (*TENSORS, "ptr"):
        return True
    numbered = name is not None and name.lstrip("bu").startswith(("float", "int"))
    return numbered and isinstance(annotation, ast.Attribute)


def kernels_among(module: Scope) -> dict[str, Value]:
    """Return the kernels among the names of a module, those of its classes as ``Class.method``.

    A plain factory or class of another module is none of this one's; a jit function is.
    """
    found: dict[str, Value] = {}
    for name, value in module.vars.items():
        if isinstance(value, ClassValue):
            if value.scope.module is not module:
                continue
            methods = {method: value.find(method) for method in value.names()}
            abstract = any(_is_abstract(function) for function in methods.values())
            for method, function in methods.items() if not abstract else ():
                inner = isinstance(function, Function) and has_inner_kernel(function.node)
                if inner and method != "__init__":
                    found[f"{name}.{method}"] = function
        elif _is_kernel(value) and (value_kind(value) != "plain" or _home(value) is module):
            found[name] = value
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _is_abstract(value: Value) -> bool:
    """Return whether a method has to be written by a subclass."""
    if not isinstance(value, Function):
        return False
    return any(last_name(decorator) == "abstractmethod" for decorator in value.decorators)


def value_kind(value: Value) -> str:
    """Return what decorates a function or the kernel of one: ``plain`` for nothing."""
    return value.function.kind if isinstance(value, PrimFunc) else str(value.kind)


def _home(value: Value) -> Scope:
    function = value.function if isinstance(value, PrimFunc) else value
    home: Scope = function.scope.module
    return home


def _is_kernel(value: Value) -> bool:
    if isinstance(value, PrimFunc):
        return value.function.kind == "prim_func"  # else what calling a jit object gave
    if not isinstance(value, Function) or value.kind == "macro":
        return False
    return value.kind == "jit" or has_inner_kernel(value.node) or bool(dispatched(value))


def dispatched(value: Value, depth: int = 0) -> tuple[Function, ...]:
    """Return the factories of whose kernels a plain function returns one."""
    if not isinstance(value, Function) or value.kind != "plain" or has_inner_kernel(value.node):
        return ()
    if depth > _MAX_CHOICES:
        return ()
    names = value.scope.module.vars
    chosen = (names.get(name) for name in returned_calls(value.node))
    return tuple(
        one
        for one in chosen
        if isinstance(one, Function) and one is not value
        if has_inner_kernel(one.node) or dispatched(one, depth + 1)
    )


def listing(
    name: str, value: Value, owner: ClassValue | None, tuned: Mapping[str, Value]
) -> Listing:
    """Return what `--list` says about a kernel.

    Args:
        name: Its name.
        value: The kernel.
        owner: The class whose method it is.
        tuned: The first configuration of its autotuner.
    """
    if isinstance(value, PrimFunc):
        return Listing(name=name, style="prim_func", line=value.function.line, parameters=())
    return Listing(
        name=name,
        style="factory" if has_inner_kernel(value.node) or dispatched(value) else "eager",
        line=value.line,
        parameters=_parameters(value, owner, tuned),
    )


def _parameters(
    function: Function, owner: ClassValue | None, tuned: Mapping[str, Value]
) -> tuple[Parameter, ...]:
    """Return what `--set` may give: of the class, of the function, of what it returns."""
    found: dict[str, Parameter] = {}
    if owner is not None and not function.static:
        found |= {p.name: p for p in parameters_of_class(owner)}
    own = parameters_of(function)
    if owner is not None and not function.static and function.parameters:
        first = function.parameters[0].arg
        own = tuple(p for p in own if p.name != first)
    found |= {p.name: p for p in own}
    for inner in _returned(function.node):
        for p in _of_definition(inner):
            found.setdefault(p.name, p)
    found |= {p.name: p for p in _left_by(dispatched(function)) if p.name not in found}
    for name in const_names(function.node):
        found[name] = Parameter(name=name, default=None, required=True)
    for name, value in tuned.items():
        if name in found and found[name].default is None:
            found[name] = Parameter(name=name, default=plain(value), required=False)
    return tuple(found.values())


def _left_by(factories: Sequence[Function]) -> Iterator[Parameter]:
    """Yield what factories leave to those who call what they return; required if all of them do."""
    left = []
    for factory in factories:
        own = {p.name for p in parameters_of(factory)}
        left.append({p.name: p for p in _parameters(factory, None, {}) if p.name not in own})
    for name, one in {n: p for of_one in left for n, p in of_one.items()}.items():
        everywhere = all(name in of_one for of_one in left)
        yield replace(one, required=one.required and everywhere)


def parameters_of_class(owner: ClassValue) -> tuple[Parameter, ...]:
    """Return what making an object of a class takes."""
    init = owner.find("__init__")
    if isinstance(init, Function):
        return parameters_of(init)[1:]
    return tuple(
        Parameter(
            name=statement.target.id,
            default=None if statement.value is None else _literal(statement.value),
            required=statement.value is None,
        )
        for statement in owner.node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    )


def parameters_of(function: Function) -> tuple[Parameter, ...]:
    """Return the compile-time parameters of a function itself."""
    tensors = tensor_parameters(function.node) if function.kind == "jit" else set()
    given = function.node.args
    defaults = _default_nodes(given)
    found: list[Parameter] = []
    for place in (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs):
        if place is None or place.arg in tensors or place.arg in function.bound:
            continue
        default = _default(function, place.arg, defaults)
        # `*shape` may be given as one tuple
        required = place.arg not in function.defaults and place is not given.vararg
        found.append(Parameter(name=place.arg, default=default, required=required))
    return tuple(found)


def _returned(outer: FunctionNode) -> Iterator[ast.FunctionDef]:
    """Yield the functions that a factory returns and that have to be called again."""
    returned: set[str | None] = set()
    for statement in ast.walk(outer):
        if isinstance(statement, ast.Return):
            value = statement.value
            inside = value.args if isinstance(value, ast.Call) else []
            returned |= {n.id for n in (value, *inside) if isinstance(n, ast.Name)}
    for node in ast.walk(outer):
        if not isinstance(node, ast.FunctionDef) or node is outer or node.name not in returned:
            continue
        words = {last_name(decorator) for decorator in node.decorator_list}
        if not words & {"prim_func", "macro"} and ("jit" in words or has_inner_kernel(node)):
            yield node


def _of_definition(node: ast.FunctionDef) -> Iterator[Parameter]:
    """Yield the parameters of a function that exists only once its factory was called."""
    tensors = tensor_parameters(node)
    defaults = _default_nodes(node.args)
    for place in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        default = defaults.get(place.arg)
        if place.arg not in tensors:
            yield Parameter(
                name=place.arg,
                default=None if default is None else _literal(default),
                required=default is None,
            )


def _literal(node: ast.expr) -> Any:
    try:
        return plain(ast.literal_eval(node))
    except (ValueError, TypeError, RecursionError):
        return text_of(node)


def _default(function: Function, name: str, nodes: dict[str, ast.expr]) -> Any:
    if name not in function.defaults:
        return None
    value = function.defaults[name]
    return plain(value) if known(value) or name not in nodes else text_of(nodes[name])


def _default_nodes(given: ast.arguments) -> dict[str, ast.expr]:
    places = [*given.posonlyargs, *given.args]
    with_default = places[len(places) - len(given.defaults) :]
    found = {p.arg: node for p, node in zip(with_default, given.defaults, strict=True)}
    found |= {p.arg: n for p, n in zip(given.kwonlyargs, given.kw_defaults, strict=True) if n}
    return found


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(getattr(value, "name", value))


def const_names(node: ast.AST) -> list[str]:
    """Return the names that ``T.const("M N K")`` declares in a function."""
    return [
        name
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call) and last_name(inner.func) == "const" and inner.args
        if isinstance(inner.args[0], ast.Constant) and isinstance(inner.args[0].value, str)
        for name in inner.args[0].value.replace(",", " ").split()
    ]
