"""Read a lowered TileLang kernel: what the author declared, and what the compiler made of it.

The declared side comes from the PrimFunc. The lowered side comes from the IR around the pass
that merges shared memory: before it every buffer still stands alone with its copies, after it
each has its offset. Alignments come from the generated source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tilefit._frontends.tilelang.buffers import buffers_of
from tilefit._frontends.tilelang.build import include_dirs_of_tilelang
from tilefit._frontends.tilelang.declared import (
    declared_buffers,
    dim,
    launch_of,
    launch_roots,
    loop_nodes,
    lowered_name,
    names_of,
    used_variables,
)
from tilefit._frontends.tilelang.liveness import DISABLE_REUSE
from tilefit._frontends.tilelang.matrix import matrix_of, slower_paths
from tilefit._frontends.tilelang.notes import gemms_of, notes_of, roles_of
from tilefit._frontends.tilelang.sizes import Sizes
from tilefit._frontends.tilelang.why import PIPELINE_PASS, WS_PASS, Causes, with_copied
from tilefit._frontends.uses import gpu_uses
from tilefit._kernel.kernel import Build, Kernel
from tilefit._kernel.memory import Evidence
from tilefit._kernel.scopes import memory_of

MERGE_PASS = "tl.MergeSharedMemoryAllocations"
_WATCHED = (MERGE_PASS, WS_PASS, PIPELINE_PASS)


class Capture:
    """Snapshots of the module around the passes that decide its memory."""

    watched: tuple[str, ...] = _WATCHED

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}

    @property
    def before(self) -> Any:
        """The module in which every buffer still stands alone, with its copies."""
        return self.modules.get(f"before {MERGE_PASS}")

    @property
    def after(self) -> Any:
        """The module in which every buffer has its offset."""
        return self.modules.get(f"after {MERGE_PASS}")

    def artifact(self) -> Any:
        """Return the device functions of a lowering that failed after it laid out memory.

        None if it failed before. There is no generated source.
        """
        module = self.modules.get("launched")
        if module is None:
            return None
        functions = {
            symbol: function
            for symbol, function in module.functions.items()
            if "tirx.kernel_launch_params" in dict(function.attrs or {})
        }
        return SimpleNamespace(kernel_source="", device_mod=SimpleNamespace(functions=functions))

    def instrument(self, tvm: Any) -> Any:
        """Return a TVM pass instrument that fills this capture."""
        modules, watched = self.modules, self.watched

        @tvm.ir.instrument.pass_instrument  # type: ignore[untyped-decorator, unused-ignore]
        class _Around:
            def run_before_pass(self, module: Any, info: Any) -> None:
                if info.name in watched:
                    modules[f"before {info.name}"] = module

            def run_after_pass(self, module: Any, info: Any) -> None:
                if info.name in watched:
                    modules[f"after {info.name}"] = module
                if info.name.endswith("LowerDeviceKernelLaunch"):
                    modules["launched"] = module

        return _Around()


def kernels_of(
    prim_func: Any,
    capture: Capture,
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
    """Return one `Kernel` per device function of a lowered PrimFunc."""
    source = str(artifact.kernel_source)
    build = None
    if build_flags is not None:
        build = Build(source=source, include_dirs=include_dirs_of_tilelang(), flags=build_flags)
    functions = in_order(artifact.device_mod)
    roots = launch_roots(prim_func)
    if len(roots) != len(functions):  # not one T.Kernel a function: they share the whole body
        roots = [prim_func.body] * len(functions)
    seen: dict[str, int] = {}
    vendor = "amd" if target.startswith("gfx") else "nvidia"
    found = []
    for (symbol, function), root in zip(functions, roots, strict=True):
        attrs = dict(function.attrs)
        declared = declared_buffers(root)
        nodes = with_copied(loop_nodes(root, sizes), names_of(root))
        causes = Causes(prim_func, nodes, capture.modules, sizes)
        before = function_named(capture.before, symbol) or function
        after = function_named(capture.after, symbol) or function
        buffers, static = buffers_of(
            declared,
            before,
            after,
            causes,
            source,
            configs,
            sizes=sizes,
            seen=seen,
            used=used_variables(root),
            vendor=vendor,
        )
        for buffer in declared:
            seen[lowered_name(buffer)] = seen.get(lowered_name(buffer), 0) + 1
        launch, uses = launch_of(root, attrs, sizes), matrix_of(function)
        found.append(
            Kernel(
                name=name,
                function=symbol,
                toolchain="tilelang",
                toolchain_version=version,
                target=target,
                params=tuple(params.items()),
                launch=launch,
                buffers=buffers,
                memories=gpu_uses(
                    buffers,
                    memory_of("tilelang", vendor, "shared.dyn"),
                    dynamic_bytes=_dynamic_bytes(attrs, sizes),
                    static_bytes=static,
                    align_bytes=_dynamic_align(source),
                    evidence=Evidence.COMPILED,
                ),
                complete=True,
                reuse=not configs.get(DISABLE_REUSE),
                loops=tuple(loop for _, loop in nodes),
                roles=roles_of(function),
                gemms=gemms_of(root),
                matrix=uses,
                notes=notes_of(
                    loops=nodes,
                    function=function,
                    specialised=causes.specialised,
                    configs=configs,
                    target=target,
                )
                + slower_paths(
                    root,
                    uses,
                    target=target,
                    threads=launch.threads_declared,
                    configs=configs,
                ),
                build=build,
            )
        )
    return tuple(found)


def in_order(device_mod: Any) -> list[tuple[str, Any]]:
    """Return the device functions in the order of the source: TileLang numbers their names."""
    named = [
        (str(dict(function.attrs).get("global_symbol", symbol.name_hint)), function)
        for symbol, function in device_mod.functions.items()
    ]
    return sorted(named, key=lambda pair: (len(pair[0]), pair[0]))


def function_named(module: Any, name: str) -> Any:
    """Return the function of that name in a module, None if there is none."""
    for symbol, function in module.functions.items() if module is not None else ():
        if name in (symbol.name_hint, str(dict(function.attrs or {}).get("global_symbol", ""))):
            return function
    return None


# ---- what the compiler made of it --------------------------------------------------------


def _dynamic_bytes(attrs: Mapping[str, Any], sizes: Sizes) -> int | None:
    size = dim(attrs.get("dyn_shared_memory_buf", 0), sizes)
    return size if isinstance(size, int) else None


def _dynamic_align(source: str) -> int | None:
    """Return the alignment of the module's dynamic array, None if it has none."""
    found = re.findall(r"extern\s+__shared__\s+__align__\((\d+)\)", source)
    return max(int(a) for a in found) if found else None
