"""The author's side of a TileLang kernel: buffers, loops and launch of the PrimFunc."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilefit._frontends.tilelang.sizes import Sizes
from tilefit._kernel.extent import names_in
from tilefit._kernel.kernel import Dim, Launch, Loop


def visit(body: Any, visitor: Callable[[Any], None]) -> None:
    from tvm.tirx.stmt_functor import post_order_visit

    post_order_visit(body, visitor)


def launch_roots(prim_func: Any) -> list[Any]:
    """Return the body of each T.Kernel block of a PrimFunc, in program order."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if "tl.launch_threads" in dict(getattr(node, "annotations", None) or {}):
            found.append(node)

    visit(prim_func.body, look)
    return found


def launches(prim_func: Any) -> bool:
    """Say whether a PrimFunc launches threads: by T.Kernel, or by threads that it binds itself."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "For" and getattr(node, "thread_binding", None) is not None:
            found.append(node)
        if str(getattr(node, "attr_key", "")) == "thread_extent":
            found.append(node)

    visit(prim_func.body, look)
    return bool(found or launch_roots(prim_func))


def declared_buffers(root: Any) -> list[Any]:
    """Return the buffers that the author allocated in a statement, in order."""
    found: list[Any] = []

    def look(node: Any) -> None:
        found.extend(getattr(node, "alloc_buffers", ()))

    visit(root, look)
    return found


def names_of(root: Any) -> dict[Any, str]:
    """Return the name of each buffer that the author allocated, by its data variable.

    ``T.reshape`` and ``T.view`` give another buffer over the same variable.
    """
    return {buffer.data: str(buffer.name) for buffer in declared_buffers(root)}


def lowered_name(buffer: Any) -> str:
    """Return what lowering calls a buffer: the last name that any view of it was given."""
    return str(buffer.data.name)


def used_variables(root: Any) -> set[Any]:
    """Return the data variables of all buffers that a statement reads, writes or points into."""
    found: set[Any] = set()

    def look(node: Any) -> None:
        kind = type(node).__name__
        if kind in ("BufferLoad", "BufferStore"):
            found.add(node.buffer.data)
        elif kind == "Var":
            found.add(node)

    visit(root, look)
    return found


def loop_nodes(root: Any, sizes: Sizes) -> list[tuple[Any, Loop]]:
    """Return the loops that ask for stages and those that never run, outermost first."""
    found: list[tuple[Any, Loop]] = []
    known = names_of(root)

    def look(node: Any) -> None:
        if type(node).__name__ != "For":
            return
        extent = dim(node.extent, sizes)
        annotations = dict(node.annotations or {})
        stages = annotations.get("num_stages")
        manual = annotations.get("tl_pipeline_stage")
        if stages is None and manual:
            stages = max(int(s) for s in manual) + 1  # as TileLang infers the depth
        empty = isinstance(extent, int) and extent <= 0
        if stages is None and not empty:
            return
        loop = Loop(
            variable=str(node.loop_var.name),
            extent=extent,
            num_stages=None if stages is None else int(stages),
            buffers=_touched(node.body, known),
        )
        found.append((node, loop))

    visit(root, look)
    return found[::-1]


def _touched(body: Any, known: Mapping[Any, str]) -> tuple[str, ...]:
    names: dict[str, None] = {}

    def look(node: Any) -> None:
        if type(node).__name__ in ("BufferLoad", "BufferStore"):
            scope = str(node.buffer.scope())
            if scope != "global":
                names[known.get(node.buffer.data, str(node.buffer.name))] = None

    visit(body, look)
    return tuple(names)


def launch_of(root: Any, attrs: Mapping[str, Any], sizes: Sizes) -> Launch:
    declared: list[Any] = []

    def look(node: Any) -> None:
        threads = dict(getattr(node, "annotations", None) or {}).get("tl.launch_threads")
        if threads is not None:
            declared.extend(threads)

    visit(root, look)
    extent = {str(k): dim(v, sizes) for k, v in dict(attrs.get("thread_extent", {})).items()}
    cluster = attrs.get("cluster_dims")
    grid = tuple(extent.get(f"blockIdx.{axis}", 1) for axis in "xyz")
    mentioned = {name for blocks in grid for name in names_in(str(blocks))}
    return Launch(
        threads_declared=product([dim(d) for d in declared]) if declared else None,
        threads=product([extent.get(f"threadIdx.{axis}", 1) for axis in "xyz"]),
        grid=grid,
        sizes=tuple(size for size in sizes.open() if size.name in mentioned),
        cluster=tuple(int(d) for d in cluster) if cluster is not None else None,
    )


def allocated_in(function: Any) -> list[Any]:
    """Return the buffers that a lowered device function allocates, in program order."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "AllocBuffer":
            found.append(node.buffer)

    visit(function.body, look)
    return found


def dim(value: Any, sizes: Sizes | None = None) -> Dim:
    """Return an extent as an integer, or its expression as text while a size is open."""
    return (sizes or Sizes()).dim(value)


def product(dims: Sequence[Dim]) -> int | None:
    total = 1
    for dim in dims:
        if not isinstance(dim, int):
            return None
        total *= dim
    return total


def nbytes(shape: Any, dtype: Any) -> int | None:
    """Return the bytes of a buffer; sub-byte elements are packed, bool takes a byte."""
    from tilelang import tvm

    elements = product(list(shape))
    if elements is None:
        return None
    kind = tvm.DataType(str(dtype))
    bits = 8 if str(dtype).startswith("bool") else int(kind.bits)
    return -(-elements * bits * int(kind.lanes) // 8)
