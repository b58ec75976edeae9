"""Read a lowered kernel of TileLang's Ascend backend: five memories instead of one.

UB belongs to a vector core (AIV), L1, L0A, L0B and L0C to a cube core (AIC). The backend lays out
each of them, and it does so after its scheduler has decided how many versions a buffer gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilefit._frontends.ascend import OWNERS
from tilefit._frontends.tilelang.ascend.bounds import stores_past_the_end
from tilefit._frontends.tilelang.ascend.buffers import Reader
from tilefit._frontends.tilelang.ascend.hidden import (
    cores_of,
    gemms_of_l1,
    has_simt,
    overlaps_of,
    slot_buffers,
)
from tilefit._frontends.tilelang.ascend.ir import (
    AscendCapture,
    allocated,
    bodies,
    keyed,
    totals,
)
from tilefit._frontends.tilelang.ascend.steps import Steps, steps_of
from tilefit._frontends.tilelang.ascend.why import Versions
from tilefit._frontends.tilelang.declared import (
    declared_buffers,
    launch_of,
    loop_nodes,
    names_of,
    visit,
)
from tilefit._frontends.tilelang.ir import in_order
from tilefit._frontends.tilelang.notes import gemms_of
from tilefit._frontends.tilelang.sizes import Sizes
from tilefit._frontends.tilelang.why import with_copied
from tilefit._kernel.kernel import Buffer, Kernel, Launch, MemoryUse, StageRule
from tilefit._kernel.memory import Memory
from tilefit._kernel.reasons import Why

_DISABLE_REUSE = "tl.disable_shared_memory_reuse"


def kernels_of(
    prim_func: Any,
    capture: AscendCapture,
    artifact: Any,
    *,
    name: str,
    params: Mapping[str, Any],
    sizes: Sizes,
    target: str,
    version: str,
    configs: Mapping[str, Any],
    build_flags: tuple[str, ...] | None = None,
) -> tuple[Kernel, ...]:
    """Return one `Kernel` per device function of a PrimFunc lowered for Ascend.

    `build_flags` is what other targets need to assemble; nothing assembles these kernels here.
    """
    del build_flags
    functions = in_order(artifact.device_mod)
    roots = _launch_roots(prim_func)
    if len(roots) != len(functions):  # not one T.Kernel a function: they share the whole body
        roots = [prim_func.body] * len(functions)
    keys = keyed(declared_buffers(prim_func.body))
    steps = _steps(capture)
    versions = Versions(capture, steps)
    found = []
    for (symbol, function), root in zip(functions, roots, strict=True):
        before, after = capture.merged(symbol)
        before, after = before or function, after or function
        gemms = gemms_of_l1(before)
        loops = tuple(loop for _, loop in with_copied(loop_nodes(root, sizes), names_of(root)))
        reader = Reader(capture, steps, versions, loops, sizes)
        own, added = reader.buffers(declared_buffers(root), keys, before, after)
        overlaps = overlaps_of(own, gemms, steps)
        buffers = [*(b for b, _ in own), *added, *slot_buffers(gemms, own, steps)]
        found.append(
            Kernel(
                name=name,
                function=symbol,
                toolchain="tilelang",
                toolchain_version=version,
                target=target,
                params=tuple(params.items()),
                launch=_launch(launch_of(root, dict(function.attrs), sizes)),
                buffers=tuple(buffers),
                memories=_uses(buffers, totals(after, sizes)),
                stage_rule=StageRule.CHOSEN,
                conditions=("simt",) if has_simt(before) else (),
                cores=cores_of(before, gemms),
                overlaps=overlaps,
                complete=True,
                reuse=not configs.get(_DISABLE_REUSE),
                loops=loops,
                gemms=gemms_of(root),
                notes=stores_past_the_end(before),
            )
        )
    return tuple(found)


def _launch_roots(prim_func: Any) -> list[Any]:
    """Return the loop over blocks of each T.Kernel, in program order."""
    found: list[Any] = []

    def look(node: Any) -> None:
        binding = getattr(node, "thread_binding", None)
        if str(getattr(binding, "thread_tag", "")) == "blockIdx.x":
            found.append(node)

    visit(prim_func.body, look)
    return found


def _launch(launch: Launch) -> Launch:
    """Return a launch without threads: an Ascend grid is one of cores."""
    return replace(launch, threads_declared=None, threads=None)


def _steps(capture: AscendCapture) -> Steps:
    module = capture.scheduled
    keys = keyed(allocated(module))
    (body,) = bodies(module)
    return steps_of(body, keys)


def _uses(buffers: list[Buffer], laid_out: Mapping[str, int | None]) -> tuple[MemoryUse, ...]:
    """Return the use of each memory: what was laid out, and the hidden slots beside it."""
    found = []
    for memory in OWNERS:
        scope = "shared" if memory is Memory.UB else f"shared.{memory}"
        slots = [b.bytes or 0 for b in buffers if b.memory is memory and b.why is Why.L1_GEMM_SLOTS]
        if scope not in laid_out and not slots:
            continue
        total = laid_out.get(scope, 0)
        if total is not None:
            total = max(total, *slots, 0)
        found.append(MemoryUse(memory=memory, owner=OWNERS[memory], dynamic_bytes=total))
    return tuple(found)
