"""Allocation functions of TileLang's dialects: arguments to a declared buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefit._errors import InputError
from tilefit._frontends.source.unknown import names_of
from tilefit._frontends.source.values import (
    Device,
    Path,
    Tile,
    TorchDType,
    Unknown,
    Value,
)
from tilefit._kernel.dtype import parse_dtype
from tilefit._kernel.scopes import ScopeRow, scope_rows

# the two spellings of the adapter tilelang-ascend, the newer one first
ADAPTER = ("tilelang-ascend@0.1.2", "tilelang-ascend@0.1.1")
# a file of the common dialect on a chip that only the adapter serves: what the adapter lacks is
# read as the common dialect has it
BORROWED = (*ADAPTER, "tilelang")
_COMMON = {row.function for row in scope_rows("tilelang")}
# names that only the adapter has: they tell its files apart
ADAPTER_FUNCTIONS = frozenset(
    row.function
    for dialect in ADAPTER
    for row in scope_rows(dialect)
    if row.function not in _COMMON
)

# types that TVM does not know itself, as it spells them
_CUSTOM = ("tfloat32", "float4_e2m1_unpacked")


def dtype_of(value: Value) -> str | Unknown:
    """Return an element type as TileLang spells it, Unknown if it is none that we know."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Device) or value is None:
        return Unknown(names_of(value), "the dtype")
    text = value.last if isinstance(value, Path) else str(getattr(value, "name", value))
    if isinstance(value, Path) and text == "ptr":
        return "int64"
    if not isinstance(value, (str, TorchDType, Path)):
        return Unknown((), text)
    try:
        name = parse_dtype(text).name
    except InputError:
        return Unknown((), f"dtype {text}")
    return f"custom[{name}]" if name in _CUSTOM else name


def is_borrowed(tile: Tile) -> bool:
    """Return whether a tile of the common dialect is read as the adapter would read it."""
    return tile.row.dialect in ADAPTER and any(row.dialect == "tilelang" for row in tile.others)


def is_allocation(name: str) -> bool:
    """Return whether a function of the language allocates a buffer."""
    return name.removeprefix("simd.").startswith("alloc") and name != "alloc_global_barrier"


def allocation(
    dialects: Sequence[str],
    name: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    line: int,
) -> Tile | None:
    """Return the buffer that an allocation function makes, None if we do not know the function.

    Args:
        dialects: Those that the file may be written in, the likeliest first.
        name: The function.
        args: Its arguments by position.
        keywords: By name.
        line: Line of the call.
    """
    shape, dtype, scope = _described(name, list(args), keywords)
    found = [
        _row(rows, dtype, keywords)
        for dialect in dialects
        if (rows := [row for row in scope_rows(dialect) if row.function == name])
    ]
    if not found:
        return None
    row = found[0]
    # TileLang puts bool tiles into the static part whatever the author says
    if scope is None or row.when == "dtype bool":
        return Tile("", row.scope, shape, dtype, row, line, others=tuple(found[1:]))
    return Tile("", scope, shape, dtype, row, line, others=tuple(found[1:]), scope_given=True)


def _row(rows: list[ScopeRow], dtype: str | Unknown, keywords: Mapping[str, Value]) -> ScopeRow:
    for row in rows:
        if row.when == "dtype bool" and dtype == "bool":
            return row
        if row.when.startswith("replication=") and keywords.get("replication") is not None:
            return row
    return next(row for row in rows if not row.when)


def _described(
    name: str, args: list[Value], keywords: Mapping[str, Value]
) -> tuple[tuple[Value, ...] | Unknown, str | Unknown, str | Unknown | None]:
    """Return shape, dtype and scope of an allocation; None for the default scope."""

    def argument(at: int, key: str, default: Value = None) -> Value:
        return args[at] if at < len(args) else keywords.get(key, default)

    kind = name.removeprefix("simd.")
    if kind in ("alloc_barrier", "alloc_cluster_barrier"):
        counts = argument(0, "arrive_count")
        if isinstance(counts, (list, tuple)):
            return (len(counts),), "uint64", None
        return (counts, "uint64", None) if isinstance(counts, Unknown) else ((1,), "uint64", None)
    if kind == "alloc_var":
        scope = keywords.get("scope")
        texts = [a for a in args[1:] if isinstance(a, str)]
        return (1,), dtype_of(argument(0, "dtype")), _scope(texts[-1] if texts else scope)
    if "desc" in kind:
        at = 1 if kind == "alloc_descriptor" else 0
        default = "uint32" if "instr" in kind else "uint64"
        which = argument(0, "kind", "wgmma") if at else None
        scope = f"local.descriptor.{which}" if isinstance(which, str) else None
        return (1,), dtype_of(argument(at, "dtype", default)), scope
    if kind in ("alloc_l0a_sf", "alloc_l0b_sf"):
        dtype = dtype_of(argument(1, "sf_dtype", "uint16"))
        return _scale_shape(argument(0, "buf"), dtype, argument(2, "sf_shape")), dtype, None
    shape = _shape(argument(0, "shape", Unknown((), "the shape")))
    dtype = dtype_of(argument(1, "dtype", "float32" if kind == "alloc_buffer" else None))
    third = None if kind in ("alloc_tmem", "alloc_reducer") else argument(2, "scope")
    return shape, dtype, _scope(third if kind != "alloc_buffer" else keywords.get("scope"))


def _scope(value: Value) -> str | Unknown | None:
    return value if value is None or isinstance(value, (str, Unknown)) else Unknown((), "the scope")


def _shape(value: Value) -> tuple[Value, ...] | Unknown:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    if isinstance(value, (int, Device)):
        return (value,)
    return value if isinstance(value, Unknown) else Unknown((), "the shape")


def _scale_shape(tile: Value, dtype: str | Unknown, given: Value) -> tuple[Value, ...] | Unknown:
    """Return the shape of an L0 tile's scales: one for every 32 elements of K in each byte."""
    if given is not None:
        return _shape(given)
    if not isinstance(tile, Tile) or isinstance(tile.shape, Unknown) or isinstance(dtype, Unknown):
        return Unknown(names_of(tile), "the shape of the scales")
    per_scale = 32 * (parse_dtype(dtype).bits // 8)
    depth = tile.shape[-1]
    if not isinstance(depth, int) or not per_scale:
        return Unknown(names_of(depth), "the shape of the scales")
    return (*tile.shape[:-1], depth // per_scale)
