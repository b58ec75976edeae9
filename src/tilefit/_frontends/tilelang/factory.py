"""From a kernel as a library writes it to its PrimFunc.

A factory may return the PrimFunc, a jit object, a function that takes the rest of the parameters,
or a compiled kernel; it may be a method of a class whose objects take parameters too. Every step
gets those of the parameters that it names.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilefit._errors import Cause, InputError, KernelError, RefusedError, TilefitError
from tilefit._frontends.tilelang.find import (
    const_names,
    dispatched,
    first_config,
    match_dtype_objects,
    with_dtype_objects,
)
from tilefit._frontends.tilelang.unwrap import (
    Method,
    bound_by_partial,
    is_prim_func,
    jit_of,
    signature_of,
)
from tilefit._frontends.tilelang.versions import with_version
from tilefit._frontends.tilelang.words import in_words
from tilefit._frontends.user_code import describe

_STEPS = 4
# an exception of the user's own code that says which chip the kernel needs
_NEEDS_A_CHIP = re.compile(
    r"\bsm_?\d{2,3}[af]?\b|compute capabilit|\bgfx\d+|\bhopper\b|\bblackwell\b|\bampere\b"
    r"|\bascend\b|\bcdna|\brdna",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"requir|only|need|support|expect|must|for ", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A PrimFunc with what its author asks of the compiler.

    Attributes:
        prim_func: The kernel.
        pass_configs: Compiler options.
        compile_flags: Flags for the device compiler.
        target: The target that the author names, None where it is left open.
        notes: What was chosen for the user.
        parameters: What the steps that made it take, by name.
    """

    prim_func: Any
    pass_configs: Mapping[str, Any] = field(default_factory=dict)
    compile_flags: tuple[str, ...] = ()
    target: Any = None
    notes: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


def build(value: Any, params: Mapping[str, Any], name: str, path: Path) -> Built:
    """Call a kernel's factory until there is a PrimFunc.

    Args:
        value: What the user's file offers.
        params: All parameters that are given.
        name: The kernel's name, for messages.
        path: The user's file, for messages.

    Raises:
        InputError: A step needs a value that is not given.
        RefusedError: The factory says that it is for another chip.
        KernelError: It raised, or gave something else than a kernel.
    """
    given = {**bound_by_partial(value), **params}
    match_dtype_objects(value, given)
    try:
        try:
            made, makers = _made(value, given, name)
        except AttributeError as error:
            # a factory that asks a dtype for its bytes takes no text; nothing else says so
            objects = with_dtype_objects(given) if "'str' object" in str(error) else given
            if objects == given and all(type(objects[k]) is type(given[k]) for k in given):
                raise
            made, makers = _made(value, objects, name)
    except TilefitError:
        raise
    except (Exception, SystemExit) as error:
        raise failure(error, path) from error
    if not is_prim_func(made):
        raise KernelError(
            f"{path.name}: calling {name} gave a {type(made).__name__}, not a TileLang kernel"
        )
    jit = next((jit_of(maker) for maker in reversed(makers) if jit_of(maker) is not None), None)
    built = built_from(made, jit, notes=_autotuned(makers, given))
    taken = (one for maker in makers for one in _takes(maker))
    return replace(built, parameters=tuple(dict.fromkeys(taken)))


def _made(value: Any, given: Mapping[str, Any], name: str) -> tuple[Any, list[Any]]:
    """Call step after step; return what the last gave, and what was called."""
    makers: list[Any] = []
    for _ in range(_STEPS):
        if is_prim_func(value):
            break
        if is_prim_func(getattr(value, "prim_func", None)):  # a compiled kernel holds it
            if isinstance(value, _Uncompiled):
                makers.append(value.jit)
            value = value.prim_func
            break
        makers.append(value)
        value = _step(value, given, name)
    return value, makers


def _takes(maker: Any) -> tuple[str, ...]:
    """Return the names of what one step takes."""
    jit = jit_of(maker)
    if jit is not None:
        return (*jit.signature.parameters, *const_names(maker))
    if isinstance(maker, Method):
        own = inspect.signature(maker.owner).parameters if maker.needs_object else {}
        return tuple(own)
    held = maker.method if isinstance(maker, _Bound) else maker
    return tuple(signature_of(held).parameters) if callable(held) else ()


def _step(value: Any, given: Mapping[str, Any], name: str) -> Any:
    """Call one step with those of the parameters that it takes."""
    if isinstance(value, Method):
        held = value.owner
        if value.needs_object:
            held = _called(held, inspect.signature(held), given, name)
        found = getattr(held, value.name)
        return _Bound(found) if value.is_called else found
    if isinstance(value, _Bound):
        value = value.method
    while isinstance(value, functools.partial):
        value = value.func  # what it binds is among what is given
    jit = jit_of(value)
    if jit is not None:
        own = {**_chosen(value, jit, given), **given}
        tensors = set(getattr(jit.func, "tensor_args", None) or ())
        taken = _own(jit.signature, own, name, without=tensors)
        consts = {key: given[key] for key in const_names(value) if key in given}
        return jit.get_tir(**{**consts, **taken})
    if not callable(value):
        raise KernelError(f"calling {name} gave a {type(value).__name__}, not a TileLang kernel")
    with _uncompiled() if dispatched(value) else nullcontext():
        return _called(value, signature_of(value), given, name)


@dataclass(frozen=True, slots=True)
class _Uncompiled:
    """What calling a jit object gives to a factory that passes it on: nothing is compiled."""

    jit: Any
    prim_func: Any


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Let calls of jit objects make their PrimFunc and stop there."""
    jit_class: Any = sys.modules["tilelang.jit"].JITImpl  # the package's attribute is the decorator
    call = jit_class.__call__
    jit_class.__call__ = lambda jit, *args, **kwargs: _Uncompiled(jit, jit.get_tir(*args, **kwargs))
    try:
        yield
    finally:
        jit_class.__call__ = call


def _called(
    function: Any, signature: inspect.Signature, given: Mapping[str, Any], name: str
) -> Any:
    """Call a function by position as far as that goes: a wrapper may take no names."""
    bound = inspect.BoundArguments(signature, OrderedDict(_own(signature, given, name)))
    bound.apply_defaults()
    return function(*bound.args, **bound.kwargs)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A bound method, apart from the classes and jit objects that have attributes of their own."""

    method: Any


def _own(
    signature: inspect.Signature, given: Mapping[str, Any], name: str, without: Any = ()
) -> dict[str, Any]:
    own: dict[str, Any] = {}
    missing = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_KEYWORD or p.name in without:
            continue
        if p.name in given:
            one = given[p.name]
            several = p.kind is p.VAR_POSITIONAL and not isinstance(one, (list, tuple))
            own[p.name] = (one,) if several else one
        elif p.default is p.empty and p.kind is not p.VAR_POSITIONAL:
            missing.append(p.name)
    if missing:
        add = " ".join(f"--set {one}=VALUE" for one in missing)
        reason = f"{name} needs a value for {', '.join(missing)}: add {add}"
        raise InputError(reason, cause=Cause.NEEDS_VALUE)
    return own


def _autotuned(makers: list[Any], given: Mapping[str, Any]) -> tuple[str, ...]:
    for maker in makers:
        jit = jit_of(maker)
        chosen = {} if jit is None else _chosen(maker, jit, given)
        if chosen:
            configs = maker.configs
            count = len(configs) if isinstance(configs, (list, tuple)) else None
            return (first_config_note(chosen, count),)
    return ()


def _chosen(maker: Any, jit: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an autotuned kernel takes of its first configuration."""
    asks = maker.configs if callable(getattr(maker, "configs", None)) else None
    wanted = inspect.signature(asks).parameters if asks is not None else {}
    config = first_config(maker, **{k: v for k, v in given.items() if k in wanted})
    return left_open(jit.signature, config, (), given)


def left_open(
    signature: inspect.Signature, config: dict[str, Any], args: Any, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of an autotuner's configuration that a call does not give.

    The author's own defaults come first: none if they are complete.
    """
    parameters = signature.parameters
    named = {key: value for key, value in kwargs.items() if key in parameters}
    given = signature.bind_partial(*args, **named).arguments
    no_default = (inspect.Parameter.empty, None)
    if not any(
        name in parameters and name not in given and parameters[name].default in no_default
        for name in config
    ):
        return {}
    return {k: v for k, v in config.items() if k not in given}


def first_config_note(chosen: Mapping[str, Any], count: int | None) -> str:
    """Say that an autotuner's first configuration was taken."""
    shown = ", ".join(f"{key}={value}" for key, value in chosen.items())
    of = f" of {count}" if count else ""
    return f"autotuned: this is its first configuration{of} ({shown}); --set takes another"


def built_from(
    prim_func: Any,
    jit: Any,
    *,
    target: Any = None,
    pass_configs: Mapping[str, Any] | None = None,
    compile_flags: Any = None,
    notes: tuple[str, ...] = (),
) -> Built:
    """Gather what the author asks for: in the PrimFunc, then the jit object, then the call.

    Args:
        prim_func: The kernel.
        jit: The jit object that made it; None without one.
        target: The target of the call that compiled it.
        pass_configs: The options of that call.
        compile_flags: The flags of that call.
        notes: What was chosen for the user.
    """
    attrs = dict(prim_func.attrs or {})
    flags: list[Any] = list(attrs.get("tilelang_compile_flags", ()))
    for more in (getattr(jit, "compile_flags", None), compile_flags):
        flags += [more] if isinstance(more, str) else more or ()
    return Built(
        prim_func=prim_func,
        pass_configs={
            **dict(attrs.get("tilelang_pass_configs", {})),
            **(getattr(jit, "pass_configs", None) or {}),
            **(pass_configs or {}),
        },
        compile_flags=tuple(str(flag) for flag in flags),
        target=target if target is not None else getattr(jit, "target", None),
        notes=notes,
    )


def failure(error: BaseException, path: Path) -> TilefitError:
    """Return the error to raise for an exception of the user's code.

    A factory that says that it is for another chip refuses, like a compiler does.
    """
    line = in_words(with_version(describe(error, path)), "this chip")
    if wants_another_device(str(error)):
        return RefusedError(line, cause=Cause.OTHER_DEVICE)
    return KernelError(line)


def wants_another_device(message: str) -> bool:
    """Say whether a message of the user's own code says which device it is for."""
    return bool(_NEEDS_A_CHIP.search(message) and _NEEDS.search(message))


def wrong_target(named: Any, target: str) -> str | None:
    """Say why a kernel whose author names a target is not one for `target`; None if it may be.

    Args:
        named: What the author gave: a name, options, a TVM target, or None.
        target: What the kernel is planned for: ``sm_90a``, ``gfx942`` ...
    """
    if named is None or named == "auto":
        return None
    options = getattr(named, "attrs", None) if not isinstance(named, (str, Mapping)) else None
    if isinstance(named, str):
        kind, arch = named.split()[0].strip(), ""
        if "-arch=" in named:
            arch = named.split("-arch=")[1].split()[0]
    elif isinstance(named, Mapping):
        kind, arch = str(named.get("kind", "")), str(named.get("arch", named.get("mcpu", "")))
    else:
        kind = str(getattr(getattr(named, "kind", None), "name", ""))
        arch = str((options or {}).get("arch", (options or {}).get("mcpu", "")))
    ours = "hip" if target.startswith("gfx") else "cuda" if target.startswith("sm_") else target
    if kind == "cutedsl":
        kind = "cuda"
    if kind and kind != ours:
        return f"its author compiles it for {kind}, not for {ours}"
    if _plain_arch(arch) and _plain_arch(arch) != _plain_arch(target):
        return f"its author compiles it for {arch}, not for {target}"
    return None


def _plain_arch(arch: str) -> str:
    return arch.rstrip("af") if arch.startswith("sm_") else arch
