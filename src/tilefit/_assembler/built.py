"""Kernels with what the assembler adds: launch registers, spills, true static bytes."""

from __future__ import annotations

from dataclasses import replace

from tilefit._assembler.nvcc import Assembly, assemble
from tilefit._kernel.kernel import Kernel


def built(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Assemble the module that these device functions share, and fill in what it tells.

    Raises:
        ToolchainError: There is no nvcc and no wheel of it, or no host compiler.
    """
    if not kernels or kernels[0].build is None:
        return kernels
    recipe = kernels[0].build
    assembly = assemble(recipe.source, kernels[0].target, recipe.include_dirs, flags=recipe.flags)
    return tuple(_filled(kernel, assembly) for kernel in kernels)


def _filled(kernel: Kernel, assembly: Assembly) -> Kernel:
    use = next((f for f in assembly.functions if f.name == kernel.function), None)
    if use is None:
        reason = assembly.reason or f"the assembler shows no function {kernel.function}"
        return replace(kernel, built="cannot-assemble", built_reason=reason, build=None)
    notes = (*kernel.notes, *assembly.notes)
    if kernel.gemms and use.matrix_instructions == 0:
        notes = (
            *notes,
            f"{kernel.gemms} T.gemm but no matrix instruction for {kernel.target}: "
            "it assembles, and does not use the tensor cores",
        )
    return replace(
        kernel,
        built="assembled",
        registers_per_thread=use.registers_per_thread,
        spill_bytes=use.spill_store_bytes,
        stack_bytes=use.stack_bytes,
        assembled_static_bytes=use.static_bytes,
        matrix_instructions=use.matrix_instructions,
        matrix_kinds=use.matrix_kinds,
        notes=notes,
        build=None,
    )
