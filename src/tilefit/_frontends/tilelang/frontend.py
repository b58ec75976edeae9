"""TileLang: the kernels of a file or of this process.

Runs in the child process, or in the caller's own for a kernel object that it already holds.
Kernels are found in `find`, built in `factory`, lowered in `lower`;
`main.run` runs a file's own main instead.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilefit._errors import Cause, InputError, KernelError, ToolchainError, UnknownNameError
from tilefit._frontends.importing import load_module
from tilefit._frontends.protocol import OTHER_PYTHON, stood_in_for
from tilefit._frontends.tilelang.factory import build
from tilefit._frontends.tilelang.find import forget_results, kernel_style, kernels_among, listing
from tilefit._frontends.tilelang.lower import lower_built, tvm_target
from tilefit._frontends.tilelang.sizes import noting_names
from tilefit._frontends.tilelang.versions import with_version
from tilefit._frontends.user_code import one_line
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.memory import Memory
from tilefit._kernel.request import Request
from tilefit._kernel.toolchain import Edits, Toolchain

if TYPE_CHECKING:
    from tilefit._frontends.tilelang.main.run import TileLangRun
    from tilefit._frontends.tilelang.main.sandbox import Sandbox


__all__ = ["TileLangFrontend", "TileLangSource", "tvm_target"]


_MERGE = Edits(pass_configs=(("tl.enable_aggressive_shared_memory_merge", True),))
# nothing there merges; a loop in a loop has stages of its own; the scheduler is what checks that
# the tiles of a loop fit
_ON_ASCEND = Edits(all_stages=True, unchecked=(("tl.enable_auto_schedule", False),))
_ASCEND = (Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C)

TILELANG = Toolchain(
    name="tilelang",
    title="TileLang",
    targets="tilelang",
    vendors=("nvidia", "amd", "ascend"),
    marks=("tilelang",),
    estimated_by="source",
    packers={
        **dict.fromkeys((Memory.SHARED, Memory.LDS), "tilelang"),
        **dict.fromkeys(_ASCEND, "tilelang-ascend"),
    },
    edits={"nvidia": _MERGE, "amd": _MERGE, "ascend": _ON_ASCEND},
)


class TileLangFrontend:
    """TileLang 0.1.15 and its neighbours."""

    toolchain = TILELANG
    name = TILELANG.name

    def version(self) -> str:
        """Import TileLang and return its version.

        Raises:
            ToolchainError: It is not installed, or importing it failed.
        """
        # source lines of buffers: read by TileLang when it builds a kernel
        os.environ.setdefault("TILELANG_ENABLE_IR_SPAN", "1")
        try:
            import tilelang
        except ModuleNotFoundError as error:
            raise ToolchainError(_how_to_install(error)) from error
        except Exception as error:
            raise ToolchainError(f"importing TileLang failed: {one_line(str(error))}") from error
        return str(tilelang.__version__).split("+")[0]

    def load(self, path: Path, device_facts: Mapping[str, Any] | None = None) -> TileLangSource:
        """Execute a file; see `Frontend.load`."""
        version = self.version()
        if device_facts is None:
            with noting_names():
                module, notes = _loaded(path)
            found = kernels_among(vars(module), module.__name__)
            return TileLangSource(path, found, version, notes=notes)
        from tilefit._frontends.tilelang.main.sandbox import Sandbox

        sandbox = Sandbox(path, device_facts)
        with sandbox:
            try:
                module, notes = _loaded(path)
            except KernelError as error:
                if not sandbox.missing.needed_after_all(str(error)):
                    raise
                module, notes = _loaded(path)
        found = kernels_among(vars(module), module.__name__)
        return TileLangSource(path, found, version, sandbox, notes=notes)

    def prepare_run(self) -> None:
        """Import what `run` needs; see `Frontend.prepare_run`."""
        from tilefit._frontends.tilelang.main.run import prepare

        try:
            prepare()
        except Exception as error:
            raise ToolchainError(f"importing torch failed: {one_line(str(error))}") from error

    def run(self, path: Path, device_facts: Mapping[str, Any], seconds: float) -> TileLangRun:
        """Run a file's main; see `Frontend.run`."""
        from tilefit._frontends.tilelang.main.run import run

        return run(path, device_facts, seconds, self.version())

    def wrap(self, kernel: Any, device_facts: Mapping[str, Any] | None = None) -> TileLangSource:
        """Return a source that offers one kernel object of the running process.

        Args:
            kernel: The object.
            device_facts: See `Compiling.wrap`.

        Raises:
            InputError: It is no PrimFunc, jit object or callable.
        """
        version = self.version()
        home = getattr(kernel, "__module__", "")
        any_callable = callable(kernel) and not isinstance(kernel, type)
        if kernel_style(kernel, home) is None and not any_callable:
            raise InputError(
                f"a {type(kernel).__name__} is no TileLang kernel: give 'file.py::kernel', a "
                "PrimFunc, a @tilelang.jit object or a callable that returns one"
            )
        found = listing("kernel", kernel, home)
        attrs = getattr(kernel, "attrs", None)
        name = str(dict(attrs)["global_symbol"]) if attrs and "global_symbol" in attrs else None
        name = name or getattr(getattr(kernel, "func", kernel), "__name__", found.name)
        path, sandbox = Path("<this process>"), None
        if device_facts is not None:
            from tilefit._frontends.tilelang.main.sandbox import Sandbox

            sandbox = Sandbox(path, device_facts)
            forget_results(kernel)
        return TileLangSource(path, {str(name): kernel}, version, sandbox)


def _loaded(path: Path) -> tuple[ModuleType, list[str]]:
    """Import a user's file; an error says which TileLang this is where it is for want of another.

    Raises:
        KernelError: The file raised or exited.
    """
    try:
        return load_module(path)
    except KernelError as error:
        raise KernelError(with_version(str(error))) from error


def _how_to_install(error: ModuleNotFoundError) -> str:
    where, command = "here", "pip install 'tilefit[tilelang]'"
    other = os.environ.get(OTHER_PYTHON)
    if other:
        where, command = f"for {other}", f"{shlex.quote(other)} -m pip install tilelang"
    return (
        f"TileLang is not installed {where} ({error}): {command}, or add --estimate to read the "
        "source alone"
    )


class TileLangSource:
    """Some kernels: those of one executed file, or one object."""

    def __init__(
        self,
        path: Path,
        found: Mapping[str, Any],
        version: str,
        sandbox: Sandbox | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.version = version
        self._found = dict(found)
        self._sandbox = sandbox
        self._notes = tuple(notes)

    def kernels(self) -> tuple[Listing, ...]:
        """List the kernels in the order in which the file defines them."""
        return tuple(self._listing(name) for name in self._found)

    def _listing(self, name: str) -> Listing:
        value = self._found[name]
        return listing(name, value, getattr(value, "__module__", ""))

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Build a kernel and lower it; see `Source.read`."""
        kernel, params = request.kernel, request.params
        if kernel not in self._found:
            raise UnknownNameError("kernel", kernel, self._found)
        known = self._listing(kernel).parameters
        names = [p.name for p in known]
        missing = [p.name for p in known if p.required and p.name not in params]
        if missing:
            add = " ".join(f"--set {name}=VALUE" for name in missing)
            reason = f"{kernel} needs a value for {', '.join(missing)}: add {add}"
            raise InputError(reason, cause=Cause.NEEDS_VALUE)
        context = self._sandbox.aimed_at(request.target) if self._sandbox else nullcontext()
        with context, tvm_target(request.target), noting_names():
            built = build(self._found[kernel], params, kernel, self.path)
        notes = self._notes
        if self._sandbox and self._sandbox.missing.names:
            notes = (*notes, stood_in_for(self._sandbox.missing.names))
        built = replace(built, notes=(*built.notes, *notes))
        return lower_built(
            built,
            request,
            known={p.name: p.default for p in known if not p.required},
            names=[*names, *(one for one in built.parameters if one not in names)],
            version=self.version,
        )
