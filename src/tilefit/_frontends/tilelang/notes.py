"""What lowering gave up without a message: TMA copies and warp specialisation; and the roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilefit._frontends.ptx import has_tma
from tilefit._frontends.tilelang.declared import dim, lowered_name, product, visit
from tilefit._kernel.kernel import Loop, Role

# cp.async.bulk.tensor: strides and the inner extent are multiples of 16 bytes (PTX ISA)
_TMA_BYTES = 16
_ROLE_ATTR = "kWarpSpecializationScope"


def roles_of(function: Any) -> tuple[Role, ...]:
    """Return the warp-group roles of a specialised kernel with their setmaxnreg registers.

    The compiler writes the producer's branch first; ``setmaxnreg`` appears in each.
    """
    threads: list[int] = []
    registers: list[int] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "AttrStmt" and str(node.attr_key) == _ROLE_ATTR:
            threads.extend(int(t) for t in node.node)
        if str(getattr(getattr(node, "op", None), "name", "")) == "tl.set_max_nreg":
            registers.append(int(node.args[0]))

    visit(function.body, look)
    if len(threads) != 2:
        return ()
    known: list[int | None] = [*registers] if len(registers) == 2 else [None, None]
    return tuple(
        Role(name=name, threads=count, registers=limit)
        for name, count, limit in zip(("producer", "consumer"), threads, known, strict=True)
    )


def gemms_of(root: Any) -> int:
    """Return how many matrix multiplications the author wrote."""
    found: list[int] = []

    def look(node: Any) -> None:
        op = str(getattr(getattr(node, "op", None), "name", ""))
        if op.startswith("tl.tileop.") and "gemm" in op:
            found.append(1)

    visit(root, look)
    return len(found)


def notes_of(
    *,
    loops: list[tuple[Any, Loop]],
    function: Any,
    specialised: bool,
    configs: Mapping[str, Any],
    target: str,
) -> tuple[str, ...]:
    """Return a line for each thing that the author may think happens and does not."""
    if not has_tma(target):
        return ()
    with_tma = _tma_buffers(function)
    notes = []
    staged = [(node, loop) for node, loop in loops if loop.num_stages and loop.extent != 0]
    for node, loop in staged:
        for source, copied in _copies_from_global(node):
            name = str(copied.name)
            if lowered_name(copied) not in with_tma:
                why = _why_no_tma(source, copied, configs)
                notes.append(f"the copy into {name} (loop over {loop.variable}) uses no TMA: {why}")
    if staged and not specialised:
        why = "the compiler did not say why"
        if configs.get("tl.disable_warp_specialized"):
            why = "the kernel's pass configs turn it off"
        elif not with_tma:
            why = "none of its copies uses TMA"
        notes.append(f"no warp specialisation: {why}")
    return tuple(dict.fromkeys(notes))


def _tma_buffers(function: Any) -> set[str]:
    """Return the shared buffers that a TMA load of the lowered kernel fills."""
    names: set[str] = set()

    def look(node: Any) -> None:
        if not str(getattr(getattr(node, "op", None), "name", "")).startswith("tl.tma_load"):
            return
        for argument in node.args:
            op = str(getattr(getattr(argument, "op", None), "name", ""))
            if op.endswith("tvm_access_ptr"):
                names.add(str(argument.args[1].name))

    visit(function.body, look)
    return names


def _copies_from_global(loop: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (region call of the source, shared buffer written) of each T.copy in a loop."""
    found: list[tuple[Any, Any]] = []

    def look(node: Any) -> None:
        if str(getattr(getattr(node, "op", None), "name", "")) != "tl.tileop.copy":
            return
        source, target = node.args[0], node.args[1]
        if all(
            str(getattr(getattr(a, "op", None), "name", "")) == "tl.region"
            for a in (source, target)
        ):
            buffer = target.args[0].buffer
            from_global = str(source.args[0].buffer.scope()) == "global"
            if from_global and str(buffer.scope()).startswith("shared"):
                found.append((source, buffer))

    visit(loop.body, look)
    yield from found


def _why_no_tma(source: Any, shared: Any, configs: Mapping[str, Any]) -> str:
    """Return the first TMA rule that a copy breaks, as far as it can be proven."""
    from tilelang import tvm

    if configs.get("tl.disable_tma_lower"):
        return "the kernel's pass configs turn it off"
    tensor = source.args[0].buffer
    if str(tensor.dtype) != str(shared.dtype):
        return f"it converts {tensor.dtype} to {shared.dtype}"
    bits = int(tvm.DataType(str(tensor.dtype)).bits)
    extents = [dim(e) for e in source.args[2:]]
    inner = extents[-1] if extents else None
    if isinstance(inner, int) and inner * bits % (8 * _TMA_BYTES):
        return f"its inner extent is {inner * bits / 8:g} B, no multiple of {_TMA_BYTES}"
    for stride in _strides(tensor)[:-1]:
        if isinstance(stride, int) and stride * bits % (8 * _TMA_BYTES):
            return f"a row stride of {stride * bits // 8:,} B is no multiple of {_TMA_BYTES}"
        if not isinstance(stride, int):
            return f"the row stride {stride} is open until run time"
    return "the compiler did not say why"


def _strides(tensor: Any) -> list[int | str]:
    if tensor.strides:
        return [dim(s) for s in tensor.strides]
    shape = [dim(d) for d in tensor.shape]
    return [product(shape[i + 1 :]) or "?" for i in range(len(shape))]
