"""Recognise TileLang kernels among the values of a module, and list their parameters."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any

from tilefit._kernel import Listing, Parameter


def kernel_style(value: Any, module_name: str) -> str | None:
    """Say how a module-level value describes a kernel; None if it does not.

    Returns:
        ``prim_func`` for a finished one, ``factory`` for a function that returns one,
        ``eager`` for a jit function whose body is the kernel.
    """
    from tilelang import tvm

    if isinstance(value, tvm.tirx.PrimFunc):
        return "prim_func"
    if hasattr(value, "get_tir") and hasattr(value, "signature"):
        return "factory" if _has_inner_kernel(_function(value)) else "eager"
    if isinstance(value, FunctionType) and value.__module__ == module_name:
        return "factory" if _has_inner_kernel(value) else None
    return None


def listing(name: str, value: Any, module_name: str) -> Listing:
    """Return what `--list` says about a kernel."""
    function = _function(value)
    return Listing(
        name=name,
        style=kernel_style(value, module_name) or "factory",
        line=function.__code__.co_firstlineno if function else None,
        parameters=_parameters(value),
    )


def match_dtype_objects(value: Any, params: dict[str, Any]) -> None:
    """Turn a dtype given as text into a dtype object where the default is one."""
    from tilelang import tvm

    function = _function(value)
    if function is None:
        return
    for p in inspect.signature(function).parameters.values():
        given = params.get(p.name)
        if isinstance(given, str) and isinstance(p.default, tvm.DataType):
            params[p.name] = tvm.DataType(given)


def _function(value: Any) -> FunctionType | None:
    """Return the Python function behind a jit object, a plain factory or a PrimFunc."""
    inner = getattr(value, "func", None)
    inner = getattr(inner, "orig_func", inner)
    for candidate in (inner, getattr(value, "orig_func", None), value):
        if isinstance(candidate, FunctionType):
            return candidate
    return None


def _tree(function: FunctionType | None) -> ast.AST | None:
    if function is None:
        return None
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return None


def _has_inner_kernel(function: FunctionType | None) -> bool:
    tree = _tree(function)
    if tree is None:
        return False
    outer = next(iter(ast.iter_child_nodes(tree)), None)
    return any(
        isinstance(node, ast.FunctionDef)
        and node is not outer
        and any(_last_name(d) in ("prim_func", "jit") for d in node.decorator_list)
        for node in ast.walk(tree)
    )


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _parameters(value: Any) -> tuple[Parameter, ...]:
    """Return what `--set` may give: compile-time arguments, then ``T.const`` sizes."""
    function = _function(value)
    if function is None or not (hasattr(value, "get_tir") or isinstance(value, FunctionType)):
        return ()
    signature = inspect.signature(function)
    tensors = set(getattr(getattr(value, "func", None), "tensor_args", None) or ())
    found = [
        Parameter(
            name=p.name,
            default=None if p.default is p.empty else plain(p.default),
            required=p.default is p.empty,
        )
        for p in signature.parameters.values()
        if p.name not in tensors and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    found += [Parameter(name=n, default=None, required=True) for n in _const_names(function)]
    return tuple(found)


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numbers, text and lists as they are, else as text."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def _const_names(function: FunctionType) -> list[str]:
    """Return the names that ``T.const("M N K")`` declares in an eager kernel."""
    tree = _tree(function)
    if tree is None:
        return []
    return [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _last_name(node.func) == "const" and node.args
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        for name in node.args[0].value.replace(",", " ").split()
    ]
