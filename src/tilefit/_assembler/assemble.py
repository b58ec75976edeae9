"""Kernels with what the assembler of their target adds: launch registers, spills, static bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tilefit._assembler.nvcc import Assembly, assemble
from tilefit._kernel.kernel import Assembled, Build, CannotAssemble, Kernel


def assembled(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Assemble the module that these device functions share, and fill in what it tells.

    Those of a target for which there is no assembler come back as they are.

    Raises:
        ToolchainError: There is no nvcc and no wheel of it, or no host compiler.
    """
    if not kernels or kernels[0].build is None:
        return kernels
    target = kernels[0].target
    run = next((run for prefix, run in _ASSEMBLERS.items() if target.startswith(prefix)), None)
    if run is None:
        note = f"nothing assembles code for {target} here: its registers are not known"
        return tuple(replace(k, build=None, notes=(*k.notes, note)) for k in kernels)
    assembly = run(kernels[0].build, target)
    return tuple(_filled(kernel, assembly) for kernel in kernels)


def _filled(kernel: Kernel, assembly: Assembly) -> Kernel:
    use = next((f for f in assembly.functions if f.name == kernel.function), None)
    if use is None:
        reason = assembly.reason or f"the assembler shows no function {kernel.function}"
        failed = CannotAssemble(reason, for_want_of_tools=assembly.for_want_of_tools)
        return replace(kernel, assembly=failed, build=None)
    notes = (*kernel.notes, *assembly.notes)
    if kernel.gemms and use.matrix_instructions == 0 and not use.traps and kernel.matrix != ():
        notes = (
            *notes,
            f"{kernel.gemms} T.gemm but no matrix instruction for {kernel.target}: "
            "it assembles, and does not use the tensor cores",
        )
    made = Assembled(
        registers_per_thread=use.registers_per_thread,
        spill_bytes=use.spill_store_bytes,
        stack_bytes=use.stack_bytes,
        static_bytes=use.static_bytes,
        matrix_instructions=use.matrix_instructions,
        matrix_kinds=use.matrix_kinds,
        traps=use.traps,
    )
    return replace(kernel, assembly=made, notes=notes, build=None)


def _by_nvcc(build: Build, target: str) -> Assembly:
    return assemble(build.source, target, build.include_dirs, flags=build.flags)


_ASSEMBLERS: Mapping[str, Callable[[Build, str], Assembly]] = {"sm_": _by_nvcc}
"""What assembles for a target, by how the target begins."""
