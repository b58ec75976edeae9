"""Assemble generated CUDA source without a GPU: nvcc to a cubin, and what ptxas says of it.

The command is TileLang's own (``tilelang.cuda.backend``: ``--cubin -O3 -std=c++20``, its two
include folders, then the flags that the kernel asks for), less ``-lineinfo``, which leaves the
code as it is, and with ``-Xptxas -v``. What a kernel asks for changes registers and spills:
``--use_fast_math``, ``--ptxas-options=--register-usage-level=N`` and its compile flags.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilefit._assembler import ptxas as _ptxas
from tilefit._assembler.ptxas import FunctionUse
from tilefit._assembler.toolkit import Origin, Toolkit, find_toolkit

_NO_DISASSEMBLER = (
    "matrix instructions were not counted: no nvdisasm here (pip install 'tilefit[cuda]')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What became of one source for one target.

    Attributes:
        reason: The first error in one line; None if there is machine code.
        for_want_of_tools: Whether that is what the toolkit lacks, and not a fault of the source.
        functions: Its kernel functions by name, none if it could not be assembled.
        notes: The assembler's warnings and performance remarks.
        toolkit_origin: ``system`` or ``wheels``.
        toolkit_version: nvcc's release.
    """

    reason: str | None
    for_want_of_tools: bool
    functions: tuple[FunctionUse, ...]
    notes: tuple[str, ...]
    toolkit_origin: Origin
    toolkit_version: str


def assemble(
    source: str,
    target: str,
    include_dirs: Sequence[Path | str],
    *,
    flags: Sequence[str] = (),
    toolkit: Toolkit | None = None,
    timeout_seconds: float = 300.0,
) -> Assembly:
    """Assemble CUDA source for one target and read what each kernel function needs.

    Args:
        source: CUDA C++.
        target: ``sm_90a`` ...
        include_dirs: Where its headers lie.
        flags: More flags for nvcc, as the kernel asks for them.
        toolkit: Which one to use; `find_toolkit` by default.
        timeout_seconds: For the compiler and again for the disassembler; then its whole process
            group is killed.

    Raises:
        ToolchainError: There is no toolkit or no host compiler.
    """
    kit = toolkit or find_toolkit()
    with tempfile.TemporaryDirectory(prefix="tilefit-") as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(source, encoding="utf-8")
        cubin = Path(folder, "kernel.cubin")
        command = [
            *(str(kit.nvcc), f"-ccbin={kit.host_compiler}", "--cubin", "-O3", "-std=c++20"),
            *(f"-arch={target}", "-Xptxas", "-v"),
            *(f"-I{include}" for include in include_dirs),
            *(*flags, "-o", str(cubin), str(path)),
        ]
        code, output = _run(command, folder, timeout_seconds)
        if code != 0:
            reason = _reason(code, output, target, kit, timeout_seconds)
            lacking = code is None or _ptxas.lacks_target(output)
            return _result(kit, reason=reason, for_want_of_tools=lacking)
        notes = list(_ptxas.remarks(output))
        matrix = None
        if kit.nvdisasm is None:
            notes.append(_NO_DISASSEMBLER)
        else:
            code, sass = _run([str(kit.nvdisasm), "-c", str(cubin)], folder, timeout_seconds)
            if code == 0:
                matrix = _ptxas.matrix_instructions(sass)
            else:
                last = " ".join(sass.split())[-200:]
                notes.append(f"matrix instructions were not counted: nvdisasm failed: {last}")
        return _result(kit, functions=_ptxas.function_uses(output, matrix), notes=tuple(notes))


def _result(
    kit: Toolkit,
    *,
    reason: str | None = None,
    for_want_of_tools: bool = False,
    functions: tuple[FunctionUse, ...] = (),
    notes: tuple[str, ...] = (),
) -> Assembly:
    return Assembly(
        reason=reason,
        for_want_of_tools=for_want_of_tools,
        functions=functions,
        notes=notes,
        toolkit_origin=kit.origin,
        toolkit_version=kit.version,
    )


def _reason(code: int | None, output: str, target: str, kit: Toolkit, seconds: float) -> str:
    if code is None:
        return f"nvcc did not finish within {seconds:g} s and was stopped"
    found = _ptxas.first_error(output, target, kit.version)
    return found or f"nvcc ended with {code} and named no error"


def _run(command: list[str], folder: str, seconds: float) -> tuple[int | None, str]:
    """Run a tool in a process group of its own; None for its status if it took too long.

    Its temporary files go to ``folder``, so that a killed one leaves none behind.
    """
    environment = {**os.environ, "TMPDIR": folder, "LC_ALL": "C"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except BaseException as error:  # an interrupt too: the tool's children share its group
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            return None, ""
        raise
    return process.returncode, output.decode(errors="replace")
