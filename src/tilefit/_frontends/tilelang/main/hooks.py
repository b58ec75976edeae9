"""What is replaced in TileLang's modules so that a `Recorder` sees every compilation."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

from tilefit._frontends.stand_ins.unknown import Unknown
from tilefit._frontends.tilelang.factory import left_open
from tilefit._frontends.tilelang.find import first_config
from tilefit._frontends.tilelang.main.capture import Recorder, jit_name
from tilefit._frontends.tilelang.main.kernel import FakeKernel
from tilefit._frontends.tilelang.unwrap import is_prim_func


def install(recorder: Recorder) -> None:
    """Replace what compiles, tunes and makes PrimFuncs, for good.

    Args:
        recorder: It is told of everything.
    """
    jit_module: Any = sys.modules["tilelang.jit"]  # the package's attribute is the decorator
    jit_module.cached = recorder.compiled
    jit_class = jit_module.JITImpl
    for name in ("get_tir", "compile", "__call__"):
        setattr(jit_class, name, _watched(recorder, getattr(jit_class, name), name == "get_tir"))
    tuner: Any = importlib.import_module("tilelang.autotuner.tuner")
    tuner.AutoTuneImpl.__call__ = _call_of_tuned(recorder)
    tuner.AutoTuner.run = _run_of_tuner(recorder)
    language: Any = importlib.import_module("tilelang.language")
    made = language.prim_func

    @functools.wraps(made)
    def prim_func(func: Any = None, **options: Any) -> Any:
        result = made(func, **options)
        if is_prim_func(result):
            recorder.note_frame(result, sys._getframe(1))
        return result

    for name in ("tilelang", "tilelang.engine"):  # its own modules keep the true one
        package: Any = sys.modules[name]
        package.lower = _lower(recorder)

    # TileLang compares the decorator that a function uses with the name in `eager`
    language.prim_func = language.eager.prim_func = prim_func


def _lower(recorder: Recorder) -> Any:
    """Return what takes the place of ``tilelang.lower`` in the hands of user code."""

    def lower(func: Any, target: Any = None, *_: Any, **__: Any) -> Any:
        from tilelang.engine.param import CompiledArtifact

        if is_prim_func(func):
            # an architecture that is named here is an example: a script that only lowers needs none
            kind = getattr(getattr(target, "kind", None), "name", None)
            recorder.compiled(func, target=str(kind) if kind else None)
        return CompiledArtifact(host_mod=None, device_mod=None, params=[], kernel_source="")

    return lower


def _watched(recorder: Recorder, method: Any, makes: bool) -> Any:
    """Return a method of a jit object that also says what it made, or why it could not."""

    @functools.wraps(method)
    def watched(jit: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            _refuse_unknown(jit, args, kwargs)
            result = method(jit, *args, **kwargs)
        except Exception as error:
            recorder.failed(jit_name(jit), error)
            raise
        if makes:
            recorder.note_jit(result, jit, args, kwargs)
        return result

    return watched


def _refuse_unknown(jit: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
    """Raise if a kernel is to be made for a value that is not known; a tensor may be unknown."""
    tensors = set(getattr(jit.func, "tensor_args", None) or ())
    parameters = jit.signature.parameters
    defaults = {name: one.default for name, one in parameters.items()}
    given = {**defaults, **dict(zip(parameters, args, strict=False)), **kwargs}
    for name, value in given.items():
        if isinstance(value, Unknown) and name not in tensors:
            raise TypeError(f"{name} comes from a package that is not installed here: {value!r}")


def _call_of_tuned(recorder: Recorder) -> Any:
    """Return the call of an autotuned kernel: one configuration instead of all."""

    def call(tuned: Any, *args: Any, **kwargs: Any) -> Any:
        only_kernel = kwargs.pop("__return_kernel", False)
        jit = tuned.jit_impl
        first = first_config(tuned, *args, **kwargs)
        chosen = left_open(jit.signature, first, args, kwargs)
        options = chosen.pop("pass_configs", None)
        before = jit.pass_configs
        jit.pass_configs = {**(before or {}), **(options or {})} or None
        try:
            with recorder.choosing(chosen, tuned.configs):
                call_or_compile = jit.compile if only_kernel else jit
                result = call_or_compile(*args, **{**kwargs, **chosen})
            if isinstance(result, FakeKernel):
                result.config = chosen or _values_of(first, jit.signature, args, kwargs)
            return result
        finally:
            jit.pass_configs = before

    return call


def _run_of_tuner(recorder: Recorder) -> Any:
    """Return ``AutoTuner.run``: one configuration instead of all."""

    def run(tuner: Any, *_: Any, **__: Any) -> Any:
        from tilelang.autotuner.param import AutotuneResult

        configs = tuner.configs
        if callable(configs):
            args, kwargs = tuner._kernel_parameters or ((), ())
            configs = configs(*args, **dict(kwargs))
        first = dict(next(iter(configs), {}))
        chosen = left_open(inspect.signature(tuner.fn), first, (), {})
        chosen.pop("pass_configs", None)
        compile_one, _elaborate = tuner._ensure_jit_functions()
        with recorder.choosing(chosen, configs):
            kernel = compile_one(**chosen)
        return AutotuneResult(
            latency=1.0,
            config=first,
            ref_latency=1.0,
            libcode="",
            func=kernel.prim_func,
            kernel=kernel,
        )

    return run


def _values_of(
    config: dict[str, Any], signature: inspect.Signature, args: Any, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a call gives for the names of a configuration, its defaults included."""
    named = {key: value for key, value in kwargs.items() if key in signature.parameters}
    bound = signature.bind_partial(*args, **named)
    bound.apply_defaults()
    return {key: bound.arguments[key] for key in config if key in bound.arguments}
