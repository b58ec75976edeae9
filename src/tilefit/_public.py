"""`tilefit.plan` as users call it, and its answer, which a notebook shows as the terminal does.

This stands above the renderers, so that the report itself need not know them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilefit._devices.names import Device
from tilefit._devices.names import device as find_device
from tilefit._planning import report as _report
from tilefit._planning.plan import plan_with
from tilefit._planning.question import Options
from tilefit._reading.child import Limits


@dataclass(frozen=True, slots=True, repr=False)
class Report(_report.Report):
    __doc__ = _report.Report.__doc__

    def _repr_html_(self) -> str:
        """Return the map or the table for a notebook."""
        import io

        from rich.console import Console

        from tilefit._render.text.map import render

        console = Console(record=True, file=io.StringIO(), highlight=False)
        console.print(render(self), soft_wrap=True)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def plan(
    source: Any,
    device: str | Device | Sequence[str | Device],
    /,
    *,
    limits: Limits | None = None,
    python: str = sys.executable,
    options: Options | None = None,
    **params: Any,
) -> Report:
    """Say whether a kernel fits, and how many stages do.

    Args:
        source: ``"file.py::kernel"``; ``"file.py"`` for all that its main compiles; or a
            PrimFunc, jit object or factory of this process.
        device: Name of a device, a `Device`, or several.
        limits: What the user's file may use while it is read.
        python: Interpreter that has the toolchain.
        options: What is asked beyond the verdict, such as ``Options(headroom_bytes=4096)``.
        params: Parameters of the kernel.

    Raises:
        InputError: A wrong name or value.
        ToolchainError: The toolchain is missing.
        KernelError: The user's code raised.
        WorkerError: The user's code hung, crashed or used too much.
    """
    found = plan_with(source, device, params, limits=limits, python=python, options=options)
    return Report(found.results, found.files)


def limit(device: str | Device) -> int:
    """Return the bytes that one block may use of the memory that tiles are staged in.

    That is shared memory with the opt-in on NVIDIA, LDS on AMD, UB of a core on Ascend.

    Args:
        device: A `Device`, or a name in any spelling: ours, as torch or nvidia-smi print it, an
            architecture, or a TVM target (``cuda -arch=sm_90a``).

    Raises:
        InputError: No device has that name.
    """
    found = find_device(device) if isinstance(device, str) else device
    return found.main_pool.per_block_bytes
