"""Recognise TileLang kernels among the values of a module, and list their parameters."""

from __future__ import annotations

import ast
import inspect
import numbers
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tilefit._kernel import Listing, Parameter

_KERNEL_DECORATORS = ("prim_func", "jit")


@dataclass(frozen=True, slots=True)
class Method:
    """A method that returns a kernel: it takes an object of its class first.

    Attributes:
        owner: The class.
        name: The method.
    """

    owner: type
    name: str

    @property
    def function(self) -> Any:
        """The method as the class holds it."""
        return inspect.getattr_static(self.owner, self.name)

    @property
    def needs_object(self) -> bool:
        """False for static and class methods."""
        return not isinstance(self.function, (staticmethod, classmethod))


def kernels_among(values: Mapping[str, Any], module_name: str) -> dict[str, Any]:
    """Return the kernels of a module by name, those of its classes as ``Class.method``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith("__"):
            continue
        if isinstance(value, type) and value.__module__ == module_name:
            for method, function in vars(value).items():
                if method != "__init__" and _has_inner_kernel(_function(function)):
                    found[f"{name}.{method}"] = Method(value, method)
        elif kernel_style(value, module_name):
            found[name] = value
    return found


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
    if jit_of(value) is not None:
        return "factory" if _has_inner_kernel(_function(value)) else "eager"
    function = _function(value)
    if function is not None and getattr(value, "__module__", None) == module_name:
        return "factory" if _has_inner_kernel(function) else None
    return None


def is_prim_func(value: Any) -> bool:
    """Say whether a value is a finished PrimFunc."""
    from tilelang import tvm

    return isinstance(value, tvm.tirx.PrimFunc)


def jit_of(value: Any) -> Any:
    """Return the jit object in a value: itself, or the one that an autotuner holds; else None."""
    for candidate in (value, getattr(value, "jit_impl", None)):
        if hasattr(type(candidate), "get_tir") and hasattr(candidate, "signature"):
            return candidate
    return None


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
    function = _function(value)
    return Listing(
        name=name,
        style=kernel_style(value, module_name) or "factory",
        line=function.__code__.co_firstlineno if function else None,
        parameters=_parameters(value),
    )


def match_dtype_objects(value: Any, params: dict[str, Any]) -> None:
    """Turn a dtype given as text into a dtype object where the default is one."""
    function = _function(value)
    if function is not None:
        for p in inspect.signature(function).parameters.values():
            if p.name in params:
                params[p.name] = like(p.default, params[p.name])


def like(default: Any, given: Any) -> Any:
    """Return a value as the kind of object that its default is: a dtype by its name."""
    from tilelang import tvm

    if isinstance(given, str) and isinstance(default, tvm.DataType):
        return tvm.DataType(given)
    if isinstance(given, str) and str(default).startswith("torch."):
        import torch

        return getattr(torch, given.removeprefix("torch."), given)
    return given


def _function(value: Any) -> FunctionType | None:
    """Return the Python function behind a kernel, below every decorator that says what it wraps."""
    if isinstance(value, Method):
        value = value.function
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    jit = jit_of(value)
    inner = getattr(value if jit is None else jit, "func", None)
    inner = getattr(inner, "orig_func", inner)
    for candidate in (inner, getattr(value, "orig_func", None), value):
        if callable(candidate) and hasattr(candidate, "__wrapped__"):
            candidate = inspect.unwrap(candidate)
        if isinstance(candidate, FunctionType):
            return candidate
    return None


def _tree(function: FunctionType | None) -> ast.FunctionDef | None:
    if function is None:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return None
    outer = next(iter(ast.iter_child_nodes(tree)), None)
    return outer if isinstance(outer, ast.FunctionDef) else None


def _inner_functions(outer: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    return (n for n in ast.walk(outer) if isinstance(n, ast.FunctionDef) and n is not outer)


def _is_decorated(node: ast.FunctionDef, *names: str) -> bool:
    return any(_last_name(d) in names for d in node.decorator_list)


def _has_inner_kernel(function: FunctionType | None) -> bool:
    tree = _tree(function)
    return tree is not None and any(
        _is_decorated(node, *_KERNEL_DECORATORS) for node in _inner_functions(tree)
    )


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


# ---- parameters --------------------------------------------------------------------------


def _parameters(value: Any) -> tuple[Parameter, ...]:
    """Return what `--set` may give: compile-time arguments, then ``T.const`` sizes.

    A kernel in two steps (a factory whose result takes arguments again, a class and its method)
    has the parameters of both.
    """
    function = _function(value)
    jit = jit_of(value)
    if function is None or is_prim_func(value):
        return ()
    found: dict[str, Parameter] = {}
    if isinstance(value, Method) and value.needs_object:
        found |= _of_signature(inspect.signature(value.owner), ())
    tensors = set(getattr(getattr(jit, "func", None), "tensor_args", None) or ())
    signature = inspect.signature(function)
    takes_self = isinstance(value, Method) and not isinstance(value.function, staticmethod)
    found |= _of_signature(signature, {*tensors, *list(signature.parameters)[:takes_self]})
    tree = _tree(function)
    if tree is not None:
        for inner in _returned(tree):
            found = {**found, **{k: v for k, v in _of_definition(inner).items() if k not in found}}
        names = dict.fromkeys(_const_names(tree))
        found |= {n: Parameter(name=n, default=None, required=True) for n in names}
    for name, default in first_config(value).items():
        if name in found and found[name].default is None:
            found[name] = Parameter(name=name, default=plain(default), required=False)
    return tuple(found.values())


def _of_signature(signature: inspect.Signature, without: Any) -> dict[str, Parameter]:
    return {
        p.name: Parameter(
            name=p.name,
            default=None if p.default is p.empty else plain(p.default),
            required=p.default is p.empty,
        )
        for p in signature.parameters.values()
        if p.name not in without and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
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
    for node in _inner_functions(outer):
        if node.name not in returned or _is_decorated(node, "prim_func", "macro"):
            continue
        holds = any(_is_decorated(inner, *_KERNEL_DECORATORS) for inner in _inner_functions(node))
        if holds or _is_decorated(node, "jit"):
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
    tree = _tree(_function(value))
    return [] if tree is None else _const_names(tree)


def _const_names(tree: ast.FunctionDef) -> list[str]:
    return [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _last_name(node.func) == "const" and node.args
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        for name in node.args[0].value.replace(",", " ").split()
    ]
