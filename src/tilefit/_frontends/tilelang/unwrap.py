"""What stands behind a value of a user's file: the function that holds a kernel's source.

Decorators put jit objects, caches and wrappers around it; some of them say what they wrap, and
some hide it, together with its arguments.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

_KERNEL_DECORATORS = ("prim_func", "jit")


@dataclass(frozen=True, slots=True)
class Method:
    """A method, or a property, that gives a kernel: it takes an object of its class first.

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

    @property
    def is_called(self) -> bool:
        """False for a property, which gives its value when it is looked up."""
        return not isinstance(self.function, (property, functools.cached_property))


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


def function_of(value: Any) -> FunctionType | None:
    """Return the Python function behind a kernel, below all of its decorators."""
    function = _said_function(value)
    if function is None or not hides_arguments(function):
        return function
    hidden = hidden_by(value)
    return function if hidden is None else function_of(hidden)


def hidden_by(value: Any) -> Any:
    """Return the kernel behind a wrapper that takes any arguments; None if it hides none.

    The wrapper closes over it, or holds it as an attribute.
    """
    if jit_of(value) is not None or is_prim_func(value) or isinstance(value, type):
        return None
    wrapper = _said_function(value)
    if wrapper is None or not hides_arguments(wrapper) or holds_kernel(wrapper):
        return None
    held = [*(cell.cell_contents for cell in wrapper.__closure__ or () if _is_set(cell))]
    if not isinstance(value, (FunctionType, MethodType, Method)):
        held += getattr(value, "__dict__", {}).values()
    for one in held:
        if one is value or not callable(one):
            continue
        if jit_of(one) is not None or holds_kernel(function_of(one)):
            return one
    return None


def signature_of(value: Any) -> inspect.Signature:
    """Return the arguments that a kernel takes, also where its wrapper hides them; no ``self``."""
    function = function_of(value)
    if function is None:
        return inspect.signature(value)
    signature = inspect.signature(function)
    held = value.function if isinstance(value, Method) else value
    is_method = isinstance(value, Method) and not isinstance(held, staticmethod)
    is_object = function.__name__ == "__call__" and not isinstance(held, FunctionType)
    is_bound = isinstance(value, MethodType)
    left = list(signature.parameters.values())[is_method or is_object or is_bound :]
    return signature.replace(parameters=left)


def bound_by_partial(value: Any) -> dict[str, Any]:
    """Return the arguments that ``functools.partial`` already gives."""
    if not isinstance(value, functools.partial):
        return {}
    inner = bound_by_partial(value.func)
    return inner | dict(
        signature_of(value.func).bind_partial(*value.args, **value.keywords).arguments
    )


def hides_arguments(function: FunctionType) -> bool:
    """Say whether a function takes whatever it is given: ``*args``, ``**kwargs`` or both."""
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    takes_any = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return bool(takes_any) and own in ((), ("self",), ("cls",))


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _said_function(value: Any) -> FunctionType | None:
    """Return the function below every decorator that says what it wraps."""
    if isinstance(value, Method):
        value = value.function
    if isinstance(value, (staticmethod, classmethod, MethodType)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, functools.partial):
        return function_of(value.func)
    jit = jit_of(value)
    inner = getattr(value if jit is None else jit, "func", None)
    inner = getattr(inner, "orig_func", inner)
    call = None if isinstance(value, type) else inspect.getattr_static(type(value), "__call__", 0)
    for candidate in (inner, getattr(value, "orig_func", None), value, call):
        if callable(candidate) and hasattr(candidate, "__wrapped__"):
            candidate = inspect.unwrap(candidate)
        if isinstance(candidate, FunctionType):
            return candidate
    return None


# ---- its source ----------------------------------------------------------------------------


def tree_of(function: FunctionType | None) -> ast.FunctionDef | None:
    """Return the source of a function; None where it is not to be had."""
    if function is None:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return None
    outer = next(iter(ast.iter_child_nodes(tree)), None)
    return outer if isinstance(outer, ast.FunctionDef) else None


def holds_kernel(function: FunctionType | None) -> bool:
    """Say whether a function defines a kernel inside."""
    if function is None or not any(isinstance(c, CodeType) for c in function.__code__.co_consts):
        return False  # it defines no function at all, and its source need not be read
    tree = tree_of(function)
    return tree is not None and defines_kernel(tree)


def defines_kernel(outer: ast.FunctionDef) -> bool:
    """Say whether the source of a function defines a kernel inside."""
    return any(is_decorated(node, *_KERNEL_DECORATORS) for node in inner_functions(outer))


def inner_functions(outer: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Yield the functions that a function defines, at any depth."""
    return (n for n in ast.walk(outer) if isinstance(n, ast.FunctionDef) and n is not outer)


def is_decorated(node: ast.FunctionDef, *names: str) -> bool:
    """Say whether one of the decorators of a function has one of these names."""
    return any(last_name(d) in names for d in node.decorator_list)


def last_name(node: ast.AST) -> str | None:
    """Return ``c`` of ``a.b.c`` or ``a.b.c(...)``."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
