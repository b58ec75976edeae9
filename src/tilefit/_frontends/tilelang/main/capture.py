"""Every compilation of a running file is noted instead of done.

All of TileLang's ways to compile (``tilelang.compile``, a jit object lazy or eager, an autotuner,
``par_compile``) end in the name ``cached`` of the module ``tilelang.jit``. `Recorder.compiled`
takes its place (see `hooks`) and gives back a kernel that only allocates its outputs.
Which function made a PrimFunc, and with which arguments, is learnt where it was made: from
``JITImpl.get_tir``, or from the frame that decorates with ``T.prim_func``.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

from tilefit._errors import Cause, InputError, RefusedError
from tilefit._frontends.protocol import Unbuilt
from tilefit._frontends.tilelang.factory import Built, built_from, failure, first_config_note
from tilefit._frontends.tilelang.find import const_names, plain
from tilefit._frontends.tilelang.main.kernel import FakeKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Where a PrimFunc came from.

    Attributes:
        function: The Python function whose arguments made it; None if it is not to be found.
        arguments: Those arguments, without tensors.
        jit: The jit object around the function; None for a plain one.
        code: Code of the function.
    """

    function: FunctionType | None
    arguments: Mapping[str, Any]
    jit: Any = None
    code: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A kernel that the file compiled.

    Attributes:
        name: Name of the function that makes it.
        style: ``factory``, ``eager`` or ``prim_func``.
        line: Line of that function.
        made: Where it came from; None for a PrimFunc that stands alone.
        built: What was compiled.
    """

    name: str
    style: str
    line: int | None
    made: Made | None
    built: Built

    @property
    def parameters(self) -> dict[str, Any]:
        """Its arguments, as JSON can hold them; not the object whose method it is."""
        arguments = {} if self.made is None else self.made.arguments
        return {k: plain(v) for k, v in arguments.items() if k not in ("self", "cls")}

    def rebuilt(self, changed: Mapping[str, Any]) -> Built:
        """Build it again with some arguments changed.

        Raises:
            InputError: The function that made it cannot be called again.
        """
        made = self.made
        if made is None or (made.jit is None and made.function is None):
            raise InputError(f"{self.name} was made inside another function: nothing can be set")
        arguments = {**made.arguments, **changed}
        if made.jit is not None:
            prim_func = made.jit.get_tir(**arguments)
        else:
            assert made.function is not None
            prim_func = made.function(**arguments)
        return Built(
            prim_func=prim_func,
            pass_configs=self.built.pass_configs,
            compile_flags=self.built.compile_flags,
            target=self.built.target,
            notes=self.built.notes if not changed else (),
        )


@dataclass(slots=True)
class Recorder:
    """What a running file compiled.

    Attributes:
        captured: Kernels in order of compilation, each set of arguments once.
        path: The file, for messages.
        unbuilt: The kernels whose building raised.
        raised: The exceptions that those tell of.
    """

    path: Path
    captured: list[Captured] = field(default_factory=list)
    unbuilt: list[Unbuilt] = field(default_factory=list)
    raised: list[BaseException] = field(default_factory=list)
    _made: dict[int, tuple[Any, Made]] = field(default_factory=dict)
    _note: str | None = None
    _lock: Any = field(default_factory=threading.RLock)

    # ---- where PrimFuncs come from -----------------------------------------------------

    def note_jit(self, prim_func: Any, jit: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Note that a jit object made a PrimFunc."""
        function = getattr(jit.func, "orig_func", None)
        made = Made(function=function, arguments=_bound(jit, args, kwargs), jit=jit)
        self._made[id(prim_func)] = (prim_func, made)

    def note_frame(self, prim_func: Any, frame: FrameType | None) -> None:
        """Note that the code of a frame made a PrimFunc."""
        if frame is None or frame.f_code.co_name == "<module>":
            return
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        names = [n for n in code.co_varnames[:count] if n in frame.f_locals]
        made = Made(
            function=_function_of(frame),
            arguments={name: frame.f_locals[name] for name in names},
            code=code,
        )
        self._made[id(prim_func)] = (prim_func, made)

    # ---- compilations ------------------------------------------------------------------

    def compiled(self, func: Any = None, out_idx: Any = None, *_: Any, **options: Any) -> Any:
        """Take the place of TileLang's compiler: note the kernel, return a stand-in."""
        with self._lock:
            made = self._made.get(id(func), (None, None))[1]
            built = built_from(
                func,
                None,
                target=options.get("target"),
                pass_configs=options.get("pass_configs"),
                compile_flags=options.get("compile_flags"),
                notes=(self._note,) if self._note else (),
            )
            self._add(made, built)
        return FakeKernel(func, out_idx)

    def add_what_was_only_made(self) -> None:
        """Take the PrimFuncs that were made and never compiled: a file may only analyse them."""
        for prim_func, made in self._made.values():
            self._add(made, built_from(prim_func, made.jit))

    def _add(self, made: Made | None, built: Built) -> None:
        from tilelang import tvm

        new = Captured(
            name=_name_of(built.prim_func, made),
            style=_style(made),
            line=_line(built.prim_func, made),
            made=made,
            built=built,
        )
        for old in self.captured:
            if _maker(old) != _maker(new) or old.parameters != new.parameters:
                continue
            if old.built.pass_configs != new.built.pass_configs:
                continue
            if tvm.ir.structural_equal(old.built.prim_func, new.built.prim_func):
                return
        self.captured.append(new)

    @contextmanager
    def choosing(self, chosen: Mapping[str, Any], configs: Any) -> Iterator[None]:
        """Say of what is compiled inside that an autotuner's first configuration was taken."""
        if chosen:
            count = len(configs) if isinstance(configs, (list, tuple)) else None
            self._note = first_config_note(chosen, count)
        try:
            yield
        finally:
            self._note = None

    def failed(self, name: str, error: BaseException) -> None:
        """Note that building a kernel raised; the same exception is noted once."""
        if any(error is one for one in self.raised):
            return
        self.raised.append(error)
        reason = failure(error, self.path)
        other = Cause.OTHER_DEVICE if isinstance(reason, RefusedError) else None
        new = Unbuilt(kernel=name, reason=str(reason), cause=other)
        if new not in self.unbuilt:
            self.unbuilt.append(new)


def _bound(jit: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compile-time arguments of a call, with the sizes that its tensors give."""
    bound = jit.func._argument_binder.bind(args, dict(kwargs))
    arguments = dict(bound.compile_kwargs)
    names = const_names(jit)
    template = jit.func.p1_cache.get(bound.p1_key)
    matcher = getattr(template, "matcher", None)
    if names and matcher:
        values = template._parse_phase2_key(**bound.tensor_args, **bound.compile_kwargs)
        found = {entry[3]: value for entry, value in zip(matcher.values(), values, strict=True)}
        arguments |= {name: found[name] for name in names if name in found}
    return arguments


def _function_of(frame: FrameType) -> FunctionType | None:
    """Return the function whose call a frame is, where it can be found by its name."""
    value: Any = None
    parts = frame.f_code.co_qualname.split(".")
    if "<locals>" not in parts:
        value = frame.f_globals.get(parts[0])
        for part in parts[1:]:
            value = inspect.getattr_static(value, part, None)
    value = getattr(value, "func", value)
    value = getattr(value, "orig_func", value)
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, FunctionType) and value.__code__ is frame.f_code:
        return value
    return _living_function(frame.f_code)


def _living_function(code: Any) -> FunctionType | None:
    """Return the one function with this code that is alive; None if there are several."""
    import gc

    found = [r for r in gc.get_referrers(code) if isinstance(r, FunctionType)]
    return found[0] if len(found) == 1 else None


def jit_name(jit: Any) -> str:
    """Return the name of the function that a jit object decorates."""
    return str(getattr(getattr(jit.func, "orig_func", jit.func), "__name__", "kernel"))


def _maker(captured: Captured) -> Any:
    """Return what tells makers apart: a factory may make a jit object anew in every call."""
    made = captured.made
    return None if made is None else made.code or getattr(made.function, "__code__", None)


def _name_of(prim_func: Any, made: Made | None) -> str:
    if made is not None:
        if made.jit is not None:
            return jit_name(made.jit)
        return str(made.code.co_name)
    attrs = dict(prim_func.attrs or {})
    return str(attrs.get("global_symbol", "kernel"))


def _style(made: Made | None) -> str:
    if made is None:
        return "prim_func"
    return "eager" if made.jit is not None and made.jit.mode == "eager" else "factory"


def _line(prim_func: Any, made: Made | None) -> int | None:
    if made is not None:
        code = made.code or getattr(made.function, "__code__", None)
    else:
        code = getattr(getattr(prim_func, "orig_func", None), "__code__", None)
    return None if code is None else int(code.co_firstlineno)
