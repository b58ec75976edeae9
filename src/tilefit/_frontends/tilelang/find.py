"""Recognise TileLang kernels among the values of a module, and list their parameters."""

from __future__ import annotations

import ast
import functools
import inspect
import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import Any

from tilefit._frontends.returns import returned_calls
from tilefit._frontends.tilelang.unwrap import (
    Method,
    bound_by_partial,
    defines_kernel,
    function_of,
    hidden_by,
    holds_kernel,
    inner_functions,
    is_decorated,
    is_prim_func,
    jit_of,
    last_name,
    signature_of,
    tree_of,
)
from tilefit._kernel.dtype import names_dtype
from tilefit._kernel.kernel import Listing, Parameter

_MAX_CHOICES = 4  # factories that choose among factories that choose


def kernels_among(values: Mapping[str, Any], module_name: str) -> dict[str, Any]:
    """Return the kernels of a module by name, those of its classes as ``Class.method``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            if value.__module__ == module_name and not inspect.isabstract(value):
                found |= {f"{name}.{method.name}": method for method in _methods(value)}
        elif _is_kernel(value, module_name):
            hidden = hidden_by(value)
            # called through its wrapper, a jit object would compile
            found[name] = value if jit_of(hidden) is None else hidden
    return found


def _is_kernel(value: Any, module_name: str) -> bool:
    try:
        return kernel_style(value, module_name) is not None
    except Exception:  # an object that raises when it is asked for an attribute
        return False


def _methods(owner: type) -> Iterator[Method]:
    """Yield the methods of a class that give a kernel, its own and those it inherits."""
    names = dict.fromkeys(n for c in reversed(owner.__mro__) if c is not object for n in vars(c))
    for name in names:
        method = Method(owner, name)
        if name != "__init__" and holds_kernel(function_of(method)):
            yield method


def kernel_style(value: Any, module_name: str) -> str | None:
    """Say how a module-level value describes a kernel; None if it does not.

    Returns:
        ``prim_func`` for a finished one, ``factory`` for a function that returns one,
        ``eager`` for a jit function whose body is the kernel.
    """
    if is_prim_func(value):
        return "prim_func"
    if isinstance(value, Method):
        return "factory"
    function = function_of(value)
    if jit_of(value) is not None:
        return "factory" if holds_kernel(function) else "eager"
    if function is None:
        return None
    if function.__module__ != module_name and not isinstance(value, functools.partial):
        return None
    if jit_of(hidden_by(value)) is not None:
        return kernel_style(hidden_by(value), module_name)
    return "factory" if holds_kernel(function) or dispatched(value) else None


def dispatched(value: Any, depth: int = 0) -> tuple[Any, ...]:
    """Return the factories of whose kernels a plain function returns one."""
    function = None if jit_of(value) is not None else function_of(value)
    if function is None or depth > _MAX_CHOICES or holds_kernel(function):
        return ()
    names = function.__globals__
    if not any(_may_give(names.get(name)) for name in function.__code__.co_names):
        return ()  # its source need not be read
    tree = tree_of(function)
    chosen = [] if tree is None else [_named(names, name) for name in returned_calls(tree)]
    return tuple(
        one
        for one in chosen
        if one is not value and _may_give(one)
        if holds_kernel(function_of(one)) or dispatched(one, depth + 1)
    )


def _may_give(value: Any) -> bool:
    """Say whether a value of a module can be, or hold, a factory: a function or a module."""
    if isinstance(value, ModuleType):
        return True
    return not isinstance(value, type) and function_of(value) is not None


def _named(names: Mapping[str, Any], dotted: str) -> Any:
    """Return what ``a.b.c`` stands for; None for nothing."""
    first, *rest = dotted.split(".")
    value = names.get(first)
    for name in rest:
        value = inspect.getattr_static(value, name, None)
    return value


def first_config(value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the first configuration of an autotuned kernel, empty if there is none to see."""
    configs = value.configs if getattr(value, "jit_impl", None) is not None else None
    if callable(configs):
        try:
            configs = configs(*args, **kwargs)
        except Exception:  # it needs the sizes, or what is not there
            return {}
    return dict(next(iter(configs or ()), {}))


def listing(name: str, value: Any, module_name: str) -> Listing:
    """Return what `--list` says about a kernel."""
    function = function_of(value)
    return Listing(
        name=name,
        style=kernel_style(value, module_name) or "factory",
        line=function.__code__.co_firstlineno if function else None,
        parameters=_parameters(value),
    )


def forget_results(value: Any) -> None:
    """Empty the caches of a factory and of those that it chooses among: they know no device."""
    for one in (value, *dispatched(value)):
        clear = getattr(getattr(one, "func", one), "cache_clear", None)
        if callable(clear):
            clear()


def match_dtype_objects(value: Any, params: dict[str, Any]) -> None:
    """Turn a dtype given as text into a dtype object where the default or the annotation is one."""
    if function_of(value) is not None:
        for p in signature_of(value).parameters.values():
            if p.name in params:
                params[p.name] = like(p.default, params[p.name])
                if str(getattr(p.annotation, "__name__", p.annotation)).endswith("dtype"):
                    params |= with_dtype_objects({p.name: params[p.name]})


def with_dtype_objects(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with TileLang's dtypes for the texts that name one; they are texts too."""
    from tilelang import language

    found = dict(params)
    for name, value in params.items():
        if type(value) is str and names_dtype(value):
            with suppress(Exception):  # TileLang knows fewer names than we do
                found[name] = language.dtype(value)
    return found


def like(default: Any, given: Any) -> Any:
    """Return a value as the kind of object that its default is: a dtype by its name."""
    from tilelang import tvm

    if isinstance(given, str) and isinstance(default, tvm.DataType):
        return tvm.DataType(given)
    if isinstance(given, str) and str(default).startswith("torch."):
        import torch

        return getattr(torch, given.removeprefix("torch."), given)
    return given


# ---- parameters --------------------------------------------------------------------------


def _parameters(value: Any) -> tuple[Parameter, ...]:
    """Return what `--set` may give: compile-time arguments, then ``T.const`` sizes.

    A kernel in two steps (a factory whose result takes arguments again, a class and its method)
    has the parameters of both.
    """
    function = function_of(value)
    jit = jit_of(value)
    if function is None or is_prim_func(value):
        return ()
    found: dict[str, Parameter] = {}
    if isinstance(value, Method) and value.needs_object:
        found |= _of_signature(inspect.signature(value.owner), ())
    tensors = set(getattr(getattr(jit, "func", None), "tensor_args", None) or ())
    found |= _of_signature(signature_of(value), tensors)
    tree = tree_of(function)
    if tree is not None:
        for inner in _returned(tree):
            found = {**found, **{k: v for k, v in _of_definition(inner).items() if k not in found}}
        left = _left_by(dispatched(value))
        found |= {p.name: p for p in left if p.name not in found}
        names = dict.fromkeys(_const_names(tree))
        found |= {n: Parameter(name=n, default=None, required=True) for n in names}
    for name, default in bound_by_partial(value).items():
        found[name] = Parameter(name=name, default=plain(default), required=False)
    for name, default in first_config(value).items():
        if name in found and found[name].default is None:
            found[name] = Parameter(name=name, default=plain(default), required=False)
    return tuple(found.values())


def _left_by(factories: Sequence[Any]) -> Iterator[Parameter]:
    """Yield what factories leave to those who call what they return; required if all of them do."""
    left = []
    for factory in factories:
        own = _of_signature(signature_of(factory), ())
        left.append({p.name: p for p in _parameters(factory) if p.name not in own})
    for name, one in {n: p for of_one in left for n, p in of_one.items()}.items():
        everywhere = all(name in of_one for of_one in left)
        yield replace(one, required=one.required and everywhere)


def _of_signature(signature: inspect.Signature, without: Any) -> dict[str, Parameter]:
    return {
        p.name: Parameter(
            name=p.name,
            default=None if p.default is p.empty else plain(p.default),
            # `*shape` may be given as one tuple
            required=p.default is p.empty and p.kind is not p.VAR_POSITIONAL,
        )
        for p in signature.parameters.values()
        if p.name not in without and p.kind is not p.VAR_KEYWORD
    }


def _returned(outer: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Yield the functions that a factory returns and that have to be called again."""
    returned = {
        node.id
        for statement in ast.walk(outer)
        if isinstance(statement, ast.Return) and statement.value is not None
        for node in (statement.value, *getattr(statement.value, "args", ()))
        if isinstance(node, ast.Name)
    }
    for node in inner_functions(outer):
        if node.name not in returned or is_decorated(node, "prim_func", "macro"):
            continue
        holds = defines_kernel(node)
        if holds or is_decorated(node, "jit"):
            yield node


def _of_definition(node: ast.FunctionDef) -> dict[str, Parameter]:
    """Return the parameters of a function that exists only once its factory was called."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    missing = [None] * (len(arguments) - len(node.args.defaults))
    pairs = [
        *zip(arguments, [*missing, *node.args.defaults], strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    annotated = {
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    return {
        argument.arg: Parameter(
            name=argument.arg,
            default=None if default is None else _literal(default),
            required=default is None,
        )
        for argument, default in pairs
        if argument.arg not in annotated and not _is_tensor(argument.annotation)
    }


def _is_tensor(annotation: ast.expr | None) -> bool:
    return annotation is not None and "Tensor" in ast.unparse(annotation)


def _literal(node: ast.expr) -> Any:
    try:
        return plain(ast.literal_eval(node))
    except (ValueError, TypeError):
        return ast.unparse(node)


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers, text and lists as they are, else as text."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, numbers.Real):  # of numpy, or an enumeration's
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(str(value))  # twice: TVM has its own kind of str, which crashes when it is copied


def const_names(value: Any) -> list[str]:
    """Return the names that ``T.const("M N K")`` declares in an eager kernel."""
    tree = tree_of(function_of(value))
    return [] if tree is None else _const_names(tree)


def _const_names(tree: ast.FunctionDef) -> list[str]:
    return [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and last_name(node.func) == "const" and node.args
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        for name in node.args[0].value.replace(",", " ").split()
    ]
