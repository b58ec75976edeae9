"""A frontend that does nothing but execute a Python file: its kernel takes ``BYTES`` of it.

It runs in the same child, by the same rules, as a toolchain that takes two seconds to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilefit._frontends.importing import load_module
from tilefit._kernel.kernel import Kernel, Launch, Listing, MemoryUse
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.request import Request
from tilefit._kernel.toolchain import Toolchain

EXECUTING = Toolchain(name="executing", title="Executing", targets="tilelang", vendors=("nvidia",))


class Executing:
    """See the module."""

    toolchain, name = EXECUTING, EXECUTING.name

    def version(self) -> str:
        return "1"

    def load(self, path: Path, device_facts: Mapping[str, Any] | None = None) -> Executed:
        return Executed(path)

    def prepare_run(self) -> None:
        pass


class Executed:
    """A file that was executed; ``BYTES`` may be a function, which the kernel calls."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes = load_module(path)[0].BYTES

    def kernels(self) -> tuple[Listing, ...]:
        return (Listing(name="k", style="made", line=1, parameters=()),)

    def read(self, request: Request) -> tuple[Kernel, ...]:
        taken = self._bytes() if callable(self._bytes) else self._bytes
        use = MemoryUse(memory=Memory.SHARED, owner=Owner.BLOCK, dynamic_bytes=int(taken))
        return (
            Kernel(
                name="k",
                function="k",
                toolchain="executing",
                toolchain_version="1",
                target=request.target,
                params=(),
                launch=Launch(threads_declared=64, threads=64, grid=None),
                buffers=(),
                memories=(use,),
                complete=True,
            ),
        )
