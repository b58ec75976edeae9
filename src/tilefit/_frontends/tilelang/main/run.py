"""A file's own main, run with compilation intercepted: the kernels that it compiles."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilefit._errors import Cause, KernelError, TilefitError, UnknownNameError
from tilefit._frontends.protocol import Unbuilt
from tilefit._frontends.tilelang.factory import Built, build, failure, wants_another_device
from tilefit._frontends.tilelang.find import kernels_among, like, listing
from tilefit._frontends.tilelang.lower import lower_built, tvm_target
from tilefit._frontends.tilelang.main.capture import Captured
from tilefit._frontends.tilelang.main.main import run_as_main
from tilefit._frontends.tilelang.main.sandbox import Sandbox
from tilefit._frontends.tilelang.sizes import noting_names
from tilefit._frontends.tilelang.unwrap import is_prim_func
from tilefit._kernel.kernel import Kernel, Listing, Parameter
from tilefit._kernel.request import Request

_SHARE_OF_TIME = 0.75  # the rest is for listing and answering


def run(path: Path, device_facts: Mapping[str, Any], seconds: float, version: str) -> TileLangRun:
    """Run a file's main; see `Frontend.run`.

    Args:
        path: The file.
        device_facts: The device that user code is told of.
        seconds: The time there is for all of it.
        version: TileLang's version, for the record.
    """
    sandbox = Sandbox(path, device_facts)
    with sandbox:
        end = time.monotonic() + _SHARE_OF_TIME * seconds
        told = sandbox.recorder.raised
        module, ended, notes = run_as_main(path, _SHARE_OF_TIME * seconds, told)
        if sandbox.missing.needed_after_all(ended or ""):
            left = end - time.monotonic()
            module, ended, notes = run_as_main(path, left, told)
    if not sandbox.recorder.captured:
        sandbox.recorder.add_what_was_only_made()
    unbuilt = list(sandbox.recorder.unbuilt)
    found: dict[str, Any] = {}
    compiled_nothing = False
    if not sandbox.recorder.captured and not unbuilt:
        # nothing was compiled: what stands in the file and needs no value is planned instead
        for name, value in kernels_among(vars(module), "__main__").items():
            if ended and wants_another_device(ended):
                unbuilt.append(Unbuilt(kernel=name, reason=ended, cause=Cause.OTHER_DEVICE))
                continue
            open_ones = [p.name for p in listing(name, value, "__main__").parameters if p.required]
            if not open_ones:
                found[name] = value
                continue
            add = " ".join(f"--set {one}=VALUE" for one in open_ones)
            reason = f"main does not compile it, and it needs a value for {', '.join(open_ones)}"
            reason = f"{reason}: name it, as in {path.name}::{name} {add}"
            unbuilt.append(
                Unbuilt(
                    kernel=name,
                    reason=reason,
                    cause=Cause.NEEDS_VALUE,
                    needs=tuple(open_ones),
                )
            )
        compiled_nothing = ended is None
        ended = ended or f"{path.name} ran to its end and compiled nothing"
    return TileLangRun(
        *(path, version, sandbox, found, tuple(unbuilt), ended),
        compiled_nothing=compiled_nothing,
        notes=notes,
    )


class TileLangRun:
    """The kernels of one run of a file's main; see `Run`."""

    def __init__(
        self,
        path: Path,
        version: str,
        sandbox: Sandbox,
        found: Mapping[str, Any],
        unbuilt: tuple[Unbuilt, ...],
        ended: str | None,
        *,
        compiled_nothing: bool,
        notes: tuple[str, ...],
    ) -> None:
        self.path = path
        self.version = version
        self.unbuilt = unbuilt
        self.ended = ended
        self.compiled_nothing = compiled_nothing
        self.stubbed = tuple(sandbox.missing.names)
        self.notes = notes
        self._sandbox = sandbox
        self._found: dict[str, Any] = dict(found)
        for kernel in sandbox.recorder.captured:
            self._found[_free_name(kernel.name, self._found)] = kernel

    @property
    def failures(self) -> tuple[str, ...]:
        """What went wrong, one line each: kernels that were not built, and what ended main."""
        lines = [f"{one.kernel}: {one.reason}" for one in self.unbuilt]
        return (*lines, *([self.ended] if self.ended else []))

    def kernels(self) -> tuple[Listing, ...]:
        """List the kernels in the order in which they were compiled."""
        return tuple(self._listing(name) for name in self._found)

    def _listing(self, name: str) -> Listing:
        value = self._found[name]
        if not isinstance(value, Captured):
            return listing(name, value, "__main__")
        parameters = tuple(
            Parameter(name=key, default=default, required=False)
            for key, default in value.parameters.items()
        )
        return Listing(name=name, style=value.style, line=value.line, parameters=parameters)

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Lower a kernel, built again where a parameter differs; see `Source.read`."""
        kernel = request.kernel
        if kernel not in self._found:
            raise UnknownNameError("kernel", kernel, self._found)
        known = {p.name: p.default for p in self._listing(kernel).parameters}
        aimed = self._sandbox.aimed_at(request.target)
        with aimed, tvm_target(request.target), noting_names():
            given = {k: v for k, v in request.params.items() if k in known}
            built = self._built(kernel, given)
        return lower_built(
            built,
            request,
            known=known,
            names=list(known),
            version=self.version,
        )

    def _built(self, kernel: str, given: dict[str, Any]) -> Built:
        value = self._found[kernel]
        if not isinstance(value, Captured):
            return build(value, given, kernel, self.path)
        changed = {k: v for k, v in given.items() if v != value.parameters[k]}
        if not changed:
            return value.built
        assert value.made is not None
        arguments = value.made.arguments
        try:
            built = value.rebuilt({k: like(arguments[k], v) for k, v in changed.items()})
        except TilefitError:
            raise
        except (Exception, SystemExit) as error:
            raise failure(error, self.path) from error
        if not is_prim_func(built.prim_func):
            kind = type(built.prim_func).__name__
            raise KernelError(f"{self.path.name}: calling {kernel} again gave a {kind}, no kernel")
        return built


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    number = 1
    while name in taken:
        number += 1
        name = f"{name.partition('#')[0]}#{number}"
    return name


def prepare() -> None:
    """Import what a run needs, in the process that will fork."""
    import torch

    for name in ("tilelang.autotuner", "tilelang.carver.arch"):
        importlib.import_module(name)
    from tilefit._frontends.stand_ins.torch import TensorsWithoutDevice

    with TensorsWithoutDevice():
        table = torch.tensor([0, 1])
        (table[1:] - table[:-1]).max().item()  # torch imports its decompositions at the first use
