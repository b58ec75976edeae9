"""Stores of vector registers that begin past the end of the buffer that they mean.

TileLang 0.1.15 lowers T.reduce in a SIMD region to a store of a whole register a row, though the
target that it asks for has one element a row. Lowering says nothing, and the next buffer in UB is
written over.
"""

from __future__ import annotations

from typing import Any

from tilefit._frontends.tilelang.declared import dim, product, visit

_WRITES = 2  # access mask of tvm_access_ptr
_UNBOUNDED = 1 << 40


def stores_past_the_end(function: Any) -> tuple[str, ...]:
    """Return a line for each buffer that a SIMD region stores behind.

    Args:
        function: A device function in which every buffer still stands alone.
    """
    from tilelang import tvm

    analyzer = tvm.arith.Analyzer()
    elements: dict[Any, int] = {}
    regions: list[Any] = []
    guarded: list[Any] = []

    def look(node: Any) -> None:
        kind = type(node).__name__
        if kind == "AllocBuffer":
            size = product([dim(d) for d in node.buffer.shape])
            if size is not None and str(node.buffer.scope()) == "shared.dyn":
                elements[node.buffer.data] = size
        elif kind == "For":
            if isinstance(dim(node.min), int) and isinstance(dim(node.extent), int):
                span = tvm.ir.Range.from_min_extent(node.min, node.extent)
                analyzer.bind(node.loop_var, span)
        elif kind == "SBlock" and str(node.name_hint) == "SIMD_VF":
            regions.append(node)
            visit(node, lambda inner: guarded.append(inner) if _is_condition(inner) else None)

    visit(function.body, look)
    if guarded:  # a condition may keep a store inside
        return ()
    lines: dict[str, None] = {}

    def store(node: Any) -> None:
        name = str(getattr(getattr(node, "op", None), "name", ""))
        if not name.endswith("tvm_access_ptr") or not int(node.args[4]) & _WRITES:
            return
        size = elements.get(node.args[1])
        last = int(analyzer.const_int_bound(node.args[2]).max_value)
        if size is not None and size <= last < _UNBOUNDED:
            name = str(node.args[1].name)
            lines[
                f"the compiler stores vector registers up to element {last:,} of {name}, which "
                f"has {size:,}: what lies behind it in UB is written over"
            ] = None

    for region in regions:
        visit(region, store)
    return tuple(lines)


def _is_condition(node: Any) -> bool:
    return type(node).__name__ == "IfThenElse"
