"""Functions of the standard library that are pure and cheap on plain values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilefit._frontends.source.operators import MAX_LENGTH, items_of, small
from tilefit._frontends.source.unknown import known, mix, unknown
from tilefit._frontends.source.values import (
    Device,
    DTypeName,
    Path,
    TorchDType,
    Value,
    Where,
)

_TYPES: dict[str, type] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "range": range,
    "NoneType": type(None),
}
# these look at a container, not into its items
_CONTAINERS: dict[str, Callable[..., Any]] = {
    "builtins.len": len,
    "builtins.range": range,
    "builtins.list": list,
    "builtins.tuple": tuple,
    "builtins.dict": dict,
    "builtins.zip": lambda *a, strict=False: list(zip(*a, strict=strict)),
    "builtins.enumerate": lambda *a, **k: list(enumerate(*a, **k)),
    "builtins.reversed": lambda items: list(items)[::-1],
    "itertools.product": lambda *a, **k: list(itertools.product(*a, **k)),
    "itertools.chain": lambda *a: list(itertools.chain(*a)),
    "copy.copy": lambda value: type(value)(value),
}
_VALUES: dict[str, Callable[..., Any]] = {
    f"builtins.{f.__name__}": f
    for f in (min, max, abs, sum, int, float, bool, str, sorted, round, divmod, all, any, repr)
}
_VALUES |= {
    f"math.{name}": getattr(math, name)
    for name in (
        *("ceil", "floor", "trunc", "sqrt", "isqrt", "log", "log2", "log10", "exp", "pow"),
        *("prod", "gcd", "lcm", "fabs", "isclose"),
    )
}
_VALUES["builtins.set"] = set
_VALUES["copy.deepcopy"] = lambda value: _deep_copy(value)
_LIMITED = (int, float, str, bytes, tuple, list, dict, set, range, type(None), TorchDType)


def call_builtin(
    path: str, args: Sequence[Value], keywords: Mapping[str, Value], where: Where
) -> Value:
    """Call a function of the standard library that is known to be pure; Unknown for others."""
    everything = (*args, *keywords.values())
    if path == "builtins.isinstance" and len(args) == 2:
        return _isinstance(args[0], args[1], where)
    if path in ("builtins.min", "builtins.max") and any(isinstance(v, Device) for v in args):
        return mix(where, *args)
    function = _VALUES.get(path)
    if function is not None and all(known(value) for value in everything):
        return _guarded(function, args, keywords, where)
    function = _CONTAINERS.get(path)
    if function is not None and all(isinstance(v, _LIMITED) for v in everything):
        if path == "itertools.product":
            size = math.prod(len(a) for a in args if hasattr(a, "__len__"))
            if size > MAX_LENGTH or keywords:
                return unknown(where)
        return _guarded(function, args, keywords, where)
    return mix(where, *everything)


def _deep_copy(value: Value) -> Value:
    """Copy a value; a container in a container, which would take long, is not followed."""
    inside = value.values() if isinstance(value, dict) else items_of(value) or ()
    if any(isinstance(one, (list, dict, set)) for one in inside):
        raise TypeError
    return value.copy() if isinstance(value, (list, dict, set)) else value


def _guarded(
    function: Callable[..., Any], args: Sequence[Value], keywords: Mapping[str, Value], where: Where
) -> Value:
    if any(isinstance(a, range) and items_of(a) is None for a in args):
        return unknown(where)
    try:
        result = function(*args, **keywords)
    except Exception:
        return unknown(where)
    return unknown(where) if small(result) is None and result is not None else result


def _isinstance(value: Value, kinds: Value, where: Where) -> Value:
    paths = kinds if isinstance(kinds, (tuple, list)) else (kinds,)
    types = [_TYPES.get(p.last) if isinstance(p, Path) else None for p in paths]
    # a dtype object is no str, though it is one here
    if not known(value) or isinstance(value, (DTypeName, TorchDType)):
        return mix(where, value)
    if any(t is not None and isinstance(value, t) for t in types):
        return True
    return unknown(where) if None in types else False
