"""Torch without the device: tensors keep shapes and types, and data only where it is small.

A file's main makes inputs, runs kernels and compares results; what decides a kernel's memory is
shapes and a few small tables. While `TensorsWithoutDevice` is active, a tensor asked for on "cuda"
(or anywhere) is a CPU tensor with data if it is small, of whole numbers, and all it was computed
from is known: a list of offsets or a block table keeps its values. Every other tensor is a meta
tensor, without data: what a kernel returns, what is large, and floating-point numbers, which decide
no shape. Questions about data that is not there get an answer that lets a test pass, and code that
compares results goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.fx.experimental import _config
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

KNOWN_ELEMENTS = 1 << 16
"""A tensor of more elements has no data."""

_SCALAR = torch.ops.aten._local_scalar_dense.default
_BINCOUNT = torch.ops.aten.bincount.default
_META = torch.device("meta")
_CPU = torch.device("cpu")


class TensorsWithoutDevice:
    """A context in which tensors need no device."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> TensorsWithoutDevice:
        if hasattr(_config, "meta_nonzero_assume_all_nonzero"):
            _config.meta_nonzero_assume_all_nonzero = True  # an unknown mask selects everything
        self._stack.enter_context(_Data())  # type: ignore[no-untyped-call, unused-ignore]
        self._stack.enter_context(_Calls())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor whose data is not known."""
    return torch.empty(shape, dtype=dtype, device="meta")


# ---- which tensors have data -----------------------------------------------------------


class _Data(TorchDispatchMode):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """Runs an operation for its shapes, and with data where all of it is known and small."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch would import its compiler, which takes longer than most mains

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        tensors = [leaf for leaf in tree_leaves((args, named)) if isinstance(leaf, torch.Tensor)]
        known = not any(tensor.is_meta for tensor in tensors)
        if func is _SCALAR and not known:
            return _scalar(args[0].dtype)
        if known and not _makes_tensors(func):
            return func(*args, **named)
        if not known and _writes_to_data(func, args, named):
            return args[0] if "out" not in named else named["out"]
        try:
            shaped = func(*tree_map(_shape_of, args), **_on_meta(func, named))
        except (NotImplementedError, RuntimeError):
            if known:
                return func(*args, **named)
            if func is _BINCOUNT:  # as long as the largest number, which is not known
                least = named.get("minlength", args[2] if len(args) > 2 else 0)
                return torch.empty(max(int(least), 1), dtype=torch.int64, device=_META)
            raise
        if not known or not _worth_data(shaped):
            return shaped
        try:
            result = func(*args, **named)
        except (NotImplementedError, RuntimeError):
            return shaped  # the CPU has no such kernel
        if func.__name__.startswith(("empty", "new_empty")):
            result.zero_()  # sizes read from memory that nobody wrote would be any number
        return result


def _makes_tensors(func: Any) -> bool:
    return any("Tensor" in str(result.type) for result in func._schema.returns)


def _writes_to_data(func: Any, args: Any, named: Mapping[str, Any]) -> bool:
    """Say whether an operation writes to a tensor that has data; there is nothing to write."""
    if not func._schema.is_mutable:
        return False
    target = named.get("out", args[0] if args else None)
    return isinstance(target, torch.Tensor) and not target.is_meta


def _shape_of(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.is_meta:
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_META)


def _on_meta(func: Any, named: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {key: tree_map(_shape_of, value) for key, value in named.items()}
    if any(argument.name == "device" for argument in func._schema.arguments):
        changed["device"] = _META
    changed.pop("pin_memory", None)
    changed.pop("generator", None)
    return changed


def _worth_data(result: Any) -> bool:
    """Say whether a result is small and of whole numbers."""
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    whole = not any(t.is_floating_point() or t.is_complex() for t in tensors)
    return whole and sum(t.numel() for t in tensors) <= KNOWN_ELEMENTS


# ---- what Python asks of a tensor ------------------------------------------------------


class _Calls(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Takes "cuda" out of every call, and answers for data that is not there."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(*args, **named)
        instead = _WITHOUT_DATA.get(func)
        if instead and isinstance(args[0], torch.Tensor) and args[0].is_meta:
            return instead(*args, **named)
        args = tuple(_off_device(value) for value in args)
        if func is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:
            args = (args[0], _CPU, *args[2:])
        if type(named.get("device")) is int:
            named["device"] = _CPU
        named.pop("pin_memory", None)
        return func(*args, **{key: _off_device(value) for key, value in named.items()})


def _off_device(value: Any) -> Any:
    if isinstance(value, torch.device):
        return _CPU if value.type == "cuda" else value
    if type(value) is str and value.partition(":")[0] == "cuda":
        return _CPU
    return value


def _scalar(dtype: torch.dtype) -> Any:
    """Return a number for data that is not known: above 0, and below any tolerance."""
    if dtype is torch.bool:
        return True
    return 1 if not dtype.is_floating_point else 1e-9


class _AnyInt(int):
    """A whole number that is not known: every comparison with it holds."""

    def _holds(self, _: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _holds
    __hash__ = int.__hash__


class _AnyFloat(float):
    """A number that is not known: every comparison with it holds."""

    def _holds(self, _: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _holds
    __hash__ = float.__hash__


def _item(tensor: torch.Tensor) -> Any:
    value = _scalar(tensor.dtype)
    if type(value) is bool:
        return value
    return _AnyInt(value) if type(value) is int else _AnyFloat(value)


def _list(tensor: torch.Tensor) -> Any:
    if tensor.dim() == 0:
        return _item(tensor)
    if tensor.numel() > KNOWN_ELEMENTS:
        raise RuntimeError("tolist() of a tensor whose data depends on the device")
    return [_list(part) for part in tensor.unbind()]


def _array(tensor: torch.Tensor, **_: Any) -> Any:
    import numpy as np

    if tensor.numel() > 1 << 24:
        raise RuntimeError("numpy() of a tensor whose data depends on the device")
    try:
        kind = np.dtype(str(tensor.dtype).removeprefix("torch."))
    except TypeError:  # a type that NumPy lacks
        raise TypeError(f"Got unsupported ScalarType {tensor.dtype}") from None
    return np.zeros(tuple(tensor.shape), dtype=kind)


def _device(kind: Any, *rest: Any, **named: Any) -> torch.device:
    """Make a device as it is asked for; a bare number is a CUDA device's."""
    return torch.device(*(("cuda", kind) if type(kind) is int else (kind, *rest)), **named)


def _gradient(tensor: Any) -> Any:
    """Return the gradient; what was not computed backwards, but could be, is not known."""
    found = tensor.grad
    if found is None and tensor.requires_grad:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=_META)
    return found


def _itself(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


def _no_nan(*_: Any, **__: Any) -> torch.Tensor:
    return torch.zeros((), dtype=torch.bool)


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


_T: Any = torch.Tensor
_ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.device: _device,
    _T.cuda: _itself,
    _T.pin_memory: _itself,
    _T.device.__get__: _constant(torch.device("cuda", 0)),
    _T.is_cuda.__get__: _constant(True),
    _T.get_device: _constant(0),
    _T.record_stream: _constant(None),
    _T.grad.__get__: _gradient,
    **dict.fromkeys((torch.allclose, torch.equal, _T.allclose, _T.equal), _constant(True)),
}
_WITHOUT_DATA: dict[Any, Callable[..., Any]] = {
    _T.cpu: _itself,
    _T.item: _item,
    _T.tolist: _list,
    _T.numpy: _array,
    _T.__array__: _array,
    _T.__bool__: _constant(True),
    _T.__int__: _constant(1),
    _T.__index__: _constant(1),
    _T.__float__: _constant(1e-9),
    _T.__contains__: _constant(True),
    _T.__format__: _constant("?"),
    **dict.fromkeys((torch.isnan, torch.isinf, _T.isnan, _T.isinf), _no_nan),
}
