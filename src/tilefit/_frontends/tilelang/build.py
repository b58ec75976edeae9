"""What TileLang passes to nvcc: include folders and the flags that a kernel asks for.

Runs in the child process; the parent hands it to the assembler.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from tilefit._errors import KernelError, ToolchainError


def include_dirs_of_tilelang() -> tuple[str, ...]:
    """Return the folders that hold the headers of generated source: TileLang's and CUTLASS's.

    Raises:
        ToolchainError: This TileLang came without them.
    """
    from tilelang.env import CUTLASS_INCLUDE_DIR, TILELANG_TEMPLATE_PATH

    found = tuple(str(path) for path in (TILELANG_TEMPLATE_PATH, CUTLASS_INCLUDE_DIR) if path)
    if len(found) < 2:
        raise ToolchainError("this TileLang came without its CUDA headers: nothing can be built")
    return found


def nvcc_flags(
    pass_configs: Mapping[str, Any], compile_flags: str | Iterable[str] | None = None
) -> tuple[str, ...]:
    """Return the flags that a kernel asks for, in TileLang's order.

    Args:
        pass_configs: Those of the kernel, by their names as text (``tl.enable_fast_math``).
        compile_flags: ``compile_flags=`` of the jit object and of ``T.annotate_compile_flags``.

    Raises:
        KernelError: A quotation mark in them is left open.
    """
    flags: list[str] = []
    for given in (pass_configs.get("tl.device_compile_flags"), compile_flags):
        for text in (given,) if isinstance(given, str) else given or ():
            try:
                flags += shlex.split(str(text))
            except ValueError as error:
                raise KernelError(f"compile flags {str(text)!r}: {error}") from None
    if pass_configs.get("tl.enable_fast_math"):
        flags.append("--use_fast_math")
    level = pass_configs.get("tl.ptxas_register_usage_level")
    if level is not None:
        flags.append(f"--ptxas-options=--register-usage-level={int(level)}")
    return tuple(flags)
