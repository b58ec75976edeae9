"""TileLang's language module, as far as it decides what a kernel declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilefit._errors import InputError
from tilefit._frontends.source.operators import extent_of, number
from tilefit._frontends.source.unknown import mix, names_of, unknown, written
from tilefit._frontends.source.values import (
    Device,
    DTypeName,
    Launcher,
    LoopFrame,
    Tensor,
    Unknown,
    Value,
    Where,
)
from tilefit._kernel.dtype import DTYPES, parse_dtype
from tilefit._kernel.extent import called

# where the arguments stand that an operation writes; others count as writing all of theirs
_WRITES = {
    **dict.fromkeys(("clear", "fill", "atomic_add", "atomic_max", "atomic_min"), (0,)),
    **dict.fromkeys(("copy", "tma_copy", "async_copy", "im2col", "c2d_im2col", "dual_copy"), (1,)),
    **dict.fromkeys(("transpose", "cumsum", "reduce", "finalize_reducer"), (1,)),
    **dict.fromkeys(("gemm", "gemm_v1", "gemm_v2", "wgmma_gemm", "tcgen05_gemm"), (2,)),
    **dict.fromkeys(("gemm_sp", "gemm_sp_v2"), (3,)),
}
LAUNCHES = ("Kernel", "ClusterKernel", "MixedKernel", "CUDASourceCodeKernel")
LOOPS = (
    *("Pipelined", "Persistent", "serial", "Serial", "unroll", "Unroll", "vectorized"),
    *("Vectorized", "Parallel", "parallel", "grid", "thread_binding"),
)
TENSORS = ("Tensor", "StridedTensor", "Buffer", "match_buffer", "make_tensor", "empty")
_DTYPE_WORDS = (
    *("int", "uint", "float", "bfloat", "tfloat", "bool", "short", "long", "half", "double"),
    "ulong",
)
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("ceildiv", "cdiv"), lambda a, b: -(-a // b)),
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def dialect_of(path: str) -> tuple[str, str] | None:
    """Split a dotted name into the dialect of its language module and what follows.

    Returns:
        ``("tilelang.ascend", "alloc_l1")`` for ``tilelang.ascend.language.alloc_l1``; None for
        what is in no language module.
    """
    parts = path.split(".")
    if parts[0] != "tilelang" or "language" not in parts[1:3]:
        return None
    at = parts.index("language")
    dialect = "tilelang.ascend" if "ascend" in parts[1:at] else "tilelang"
    rest = parts[at + 1 :]
    # tilelang.language.allocate.alloc_shared; T.simd.alloc_local is a function of its own
    name = ".".join(rest[-2:]) if len(rest) > 1 and rest[-2] == "simd" else ".".join(rest[-1:])
    return dialect, name


def named_dtype(name: str) -> DTypeName | None:
    """Return the element type behind ``T.name``, None if it is none."""
    if name in DTYPES:
        return DTypeName(name)
    if not name.startswith(_DTYPE_WORDS):
        return None
    try:
        return DTypeName(parse_dtype(name).name)
    except InputError:
        return None


def arithmetic(name: str, args: Sequence[Value], where: Where) -> Value:
    """Return ``T.ceildiv`` and its kin of two numbers; None for another function."""
    function = _ARITHMETIC.get(name)
    if function is None or len(args) != 2:
        return None
    left, right = (number(a) for a in args)
    result = None
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        try:
            result = function(left, right)
        except (ZeroDivisionError, OverflowError):
            return unknown(where)
    if result is not None and not any(isinstance(a, Device) for a in args):
        return result
    symbolic = mix(where, *args)
    if isinstance(symbolic, Device) and isinstance(result, int):
        return replace(symbolic, value=result)
    a, b = (extent_of(argument) for argument in args)
    if isinstance(symbolic, Device) and a is not None and b is not None:
        return replace(symbolic, extent=called(name, a, b))
    return symbolic


def tensor_of(args: Sequence[Value], keywords: Mapping[str, Value], name: str = "") -> Tensor:
    """Return the tensor that ``T.Tensor(shape, dtype)`` describes."""
    shape = args[0] if args else keywords.get("shape", Unknown((), "shape"))
    dtype = args[1] if len(args) > 1 else keywords.get("dtype", "float32")
    if isinstance(shape, list):
        shape = tuple(shape)
    return Tensor(name, shape, dtype)


def launcher_of(args: Sequence[Value], keywords: Mapping[str, Value], line: int) -> Launcher:
    """Return what ``T.Kernel(...)`` gives."""
    return Launcher(tuple(args), keywords.get("threads"), keywords.get("cluster_dims"), line)


def loop_of(name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> LoopFrame:
    """Return what a loop of the language gives."""
    given = list(args)
    if name in ("Parallel", "parallel", "grid"):
        return LoopFrame(tuple(given))
    if name == "Persistent":
        return _persistent(given, keywords)
    start = given[0] if given else keywords.get("start", Unknown((), "start"))
    stop = given[1] if len(given) > 1 else keywords.get("stop")
    extent = start
    if stop is not None:
        extent = _minus(stop, start)
    if name != "Pipelined":
        step = given[2] if len(given) > 2 else keywords.get("step")
        if step is not None:
            extent = arithmetic("ceildiv", (extent, step), "iterations")
        return LoopFrame((extent,))
    stages = given[2] if len(given) > 2 else keywords.get("num_stages", 0)
    manual = given[4] if len(given) > 4 else keywords.get("stage")
    if isinstance(manual, (list, tuple)) and manual:
        if stages in (0, None):  # TileLang infers the depth
            whole = all(isinstance(one, int) for one in manual)
            stages = max(manual) + 1 if whole else Unknown(names_of(*manual), "stage")
        return LoopFrame((extent,), stages, explicit=True)
    return LoopFrame((extent,), _asked(stages))


def _asked(stages: Value) -> Value:
    """Return num_stages, None for 0: no pipeline was asked for."""
    return None if isinstance(stages, int) and stages <= 0 else stages


def _persistent(given: list[Value], keywords: Mapping[str, Value]) -> LoopFrame:
    domain = given[0] if given else keywords.get("domain")
    wave = given[1] if len(given) > 1 else keywords.get("wave_size")
    stages = given[4] if len(given) > 4 else keywords.get("num_stages", 0)
    tiles: Value = 1
    for extent in domain if isinstance(domain, (list, tuple)) else [domain]:
        tiles = _times(tiles, extent)
    extent = arithmetic("ceildiv", (tiles, wave), "T.ceildiv(tiles, wave)")
    return LoopFrame((extent,), _asked(stages), variable="w")


def _minus(stop: Value, start: Value) -> Value:
    if isinstance(stop, int) and isinstance(start, int):
        return stop - start
    if start == 0:
        return stop
    left, right = number(stop), number(start)
    both = isinstance(left, int) and isinstance(right, int)
    symbolic = mix(f"{written(stop)} - {written(start)}", stop, start)
    if isinstance(symbolic, Device):
        return replace(symbolic, value=left - right if both else None)
    return symbolic


def _times(left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return mix(f"{written(left)} * {written(right)}", left, right)


def written_by(name: str, args: Sequence[Value]) -> Sequence[int]:
    """Return which arguments an operation writes."""
    if name.startswith("reduce_"):
        return (1,)
    return _WRITES.get(name, range(len(args)))
