"""Buffers that operations of TileLang's language allocate by themselves.

From ``language/{reduce_op,scan_op,tile_schedule}.py``, ``cuda/language/print.py`` and
``ascend/language/{reduce_op,simd,tile_schedule}.py`` of TileLang 0.1.15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefit._errors import InputError
from tilefit._frontends.source.allocate import allocation
from tilefit._frontends.source.values import Device, Tensor, Tile, Unknown, Value
from tilefit._kernel.dtype import parse_dtype

_SHARED = ("shared", "shared.dyn")
_FRAGMENT = "local.fragment"
# a vector register of the Ascend 950
_VECTOR_BITS = 2048
# what a tile scheduler counts with, a scalar variable each
_CURSOR = ("m_idx", "n_idx", "linear_idx", "current_iter")
_ASCEND_CURSOR = (*_CURSOR, "core_id", "valid_flag")
_SCHEDULERS = {
    "BaseTileScheduler": _CURSOR,
    "PersistentTileScheduler": _CURSOR,
    "AscendBaseTileScheduler": _ASCEND_CURSOR,
    "AscendTileScheduler": _ASCEND_CURSOR,
    "AscendBatchedTileScheduler": (*_ASCEND_CURSOR, "batch_idx"),
    "AscendMGroupedTileScheduler": (
        *_ASCEND_CURSOR,
        *("group_idx", "cur_num_m_blocks", "last_psum_m", "cur_psum_m", "m_block_cumsum"),
    ),
    "AscendKGroupedTileScheduler": (
        *_ASCEND_CURSOR,
        *("group_idx", "cur_shape_k", "last_psum_k", "cur_psum_k", "sf_k_cumsum"),
        "k_block_cumsum",
    ),
}


def implied(
    dialect: str,
    name: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    line: int,
    *,
    in_simd: bool,
) -> list[Tile] | None:
    """Return what an operation allocates, None if that cannot be said.

    Args:
        dialect: Dialect of the language module.
        name: The operation.
        args: Its arguments by position.
        keywords: By name.
        line: Line of the call.
        in_simd: It stands in a ``T.SimdVF`` region.
    """
    if name in _SCHEDULERS:
        return _scheduler_state(dialect, name, keywords, line)
    if name.endswith(("TileScheduler", "Emitter")):
        return None
    if name == "reduce" or name.startswith("reduce_"):
        source = args[0] if args else keywords.get("buffer")
        target = args[1] if len(args) > 1 else keywords.get("out")
        shared = [one for one in (source, target) if _scope(one) in _SHARED]
        if in_simd and len(shared) == 2:
            return []
        return [_like(dialect, one, "alloc_fragment", line) for one in shared]
    if name in ("cumsum", "cummax"):
        source = args[0] if args else keywords.get("src")
        if _scope(source) == _FRAGMENT:  # goes through shared memory
            return [_like(dialect, source, "alloc_shared", line, name="scan_smem")]
        return None if _scope(source) is None else []
    if name == "print" and dialect == "tilelang":
        source = args[0] if args else keywords.get("obj")
        if isinstance(source, Tile) and source.scope == _FRAGMENT:
            return [_like(dialect, source, "alloc_shared", line, name="smem", scope="shared")]
    return []


def _scheduler_state(
    dialect: str, name: str, keywords: Mapping[str, Value], line: int
) -> list[Tile] | None:
    stateful, prefix = keywords.get("stateful", True), keywords.get("name")
    if not isinstance(stateful, bool):
        return None
    made: list[Tile] = []
    for attribute in _SCHEDULERS[name] if stateful else ():
        tile = allocation((dialect,), "alloc_var", ["int32"], {}, line)
        assert tile is not None
        tile.name = f"{prefix}_{attribute}" if isinstance(prefix, str) else ""
        made.append(tile)
    return made


def _base(value: Value) -> Value:
    return value.base if isinstance(value, Device) else value


def _scope(value: Value) -> str | None:
    base = _base(value)
    if isinstance(base, Tile):
        return base.scope if isinstance(base.scope, str) else None
    return "global" if isinstance(base, Tensor) else None


def _like(
    dialect: str,
    value: Value,
    function: str,
    line: int,
    *,
    name: str | None = None,
    scope: str | None = None,
) -> Tile:
    """Return a tile of the shape and type of another, or of a part of it."""
    tile = _base(value)
    assert isinstance(tile, Tile)
    shape = tile.shape if isinstance(value, Tile) else Unknown((), value.text)
    where = {} if scope is None else {"scope": scope}
    made = allocation((dialect,), function, [shape, tile.dtype], where, line)
    assert made is not None
    made.name = f"{tile.name}_frag" if name is None else name
    return made


def vector_type(dtype: str | Unknown) -> str | Unknown:
    """Return the type of a whole vector register: what T.simd.alloc_local allocates."""
    if isinstance(dtype, Unknown):
        return dtype
    try:
        bits = parse_dtype(dtype).bits
    except InputError:
        return Unknown((), dtype)
    return f"{dtype}x{_VECTOR_BITS // bits}"
