"""The driver of `plan`: read the kernel, place it, judge it, for each device."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilefit._device import Device, expand
from tilefit._errors import InputError, RefusedError
from tilefit._kernel import Kernel, Listing
from tilefit._memory import Evidence, weakest
from tilefit._naming import pick, split_source
from tilefit._plan import place
from tilefit._report import Report, Result, Stages
from tilefit._session import Limits, Session
from tilefit._stages import largest_stages, stage_parameter
from tilefit._verdict import Policy, Status, Verdict, judge
from tilefit.frontends._tilelang import TileLangFrontend

Progress = Callable[[str], None]


def plan(
    source: Any,
    device: str | Device | Sequence[str | Device],
    /,
    *,
    limits: Limits | None = None,
    policy: Policy | None = None,
    python: str = sys.executable,
    progress: Progress | None = None,
    **params: Any,
) -> Report:
    """Say whether a kernel fits, and how many stages do.

    Args:
        source: ``"file.py::kernel"``, or a PrimFunc, jit object or factory of this process.
        device: Name of a device, a `Device`, or several.
        limits: What the user's file may use while it is read.
        policy: What is asked beyond bare fitting.
        python: Interpreter that has the toolchain.
        progress: Called with a line before each slow step.
        params: Parameters of the kernel; see `plan_with` for one that is named like an
            argument of this function.

    Raises:
        InputError: A wrong name or value.
        ToolchainError: The toolchain is missing.
        KernelError: The user's code raised.
        WorkerError: The user's code hung, crashed or used too much.
    """
    return plan_with(
        source, device, params, limits=limits, policy=policy, python=python, progress=progress
    )


def plan_with(
    source: Any,
    device: str | Device | Sequence[str | Device],
    params: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    policy: Policy | None = None,
    python: str = sys.executable,
    progress: Progress | None = None,
) -> Report:
    """Do what `plan` does; the kernel's parameters, whatever their names, are one mapping."""
    devices = _devices(device)
    for one in devices:
        _target(one)
    say = progress or _quiet
    if not isinstance(source, (str, Path)):
        return _plan_object(source, devices, params, policy, say)
    path, kernel = split_source(str(source))
    say("importing TileLang")
    with Session(path, limits=limits, python=python) as session:
        listing = pick(session.load(), kernel, path)
        reader = _Reader(session.read, listing.name, (session.toolchain, session.version), say)
        return _on_devices(reader, listing, devices, params, str(source), policy)


def _plan_object(
    source: Any,
    devices: Sequence[Device],
    params: Mapping[str, Any],
    policy: Policy | None,
    say: Progress,
) -> Report:
    """Plan a kernel object of this very process: nothing is executed but its factory."""
    frontend = TileLangFrontend()
    wrapped = frontend.wrap(source)
    listing = wrapped.kernels()[0]
    reader = _Reader(wrapped.read, listing.name, (frontend.name, wrapped.version), say)
    return _on_devices(reader, listing, devices, params, f"{wrapped.path}::{listing.name}", policy)


def _on_devices(
    reader: _Reader,
    listing: Listing,
    devices: Sequence[Device],
    params: Mapping[str, Any],
    source: str,
    policy: Policy | None,
) -> Report:
    return Report(
        tuple(
            result
            for device in devices
            for result in _on_device(reader, listing, device, params, source, policy)
        )
    )


def kernels_in(
    source: str,
    *,
    limits: Limits | None = None,
    python: str = sys.executable,
    progress: Progress | None = None,
) -> tuple[Listing, ...]:
    """List the kernels of a file with their parameters; see `plan` for the errors."""
    path, _ = split_source(source)
    if progress:
        progress("importing TileLang")
    with Session(path, limits=limits, python=python) as session:
        return session.load()


def _devices(device: str | Device | Sequence[str | Device]) -> tuple[Device, ...]:
    given = [device] if isinstance(device, (str, Device)) else list(device)
    found: list[Device] = []
    for item in given:
        found.extend(expand([item]) if isinstance(item, str) else [item])
    unique = {one.name: one for one in found}
    return tuple(unique.values())


class _Reader:
    """Reads one kernel; every (target, parameters) is lowered once."""

    def __init__(
        self,
        read: Callable[[str, Mapping[str, Any], str], tuple[Kernel, ...]],
        kernel: str,
        toolchain: tuple[str, str],
        say: Progress,
    ) -> None:
        self.read, self.kernel, self.toolchain, self.say = read, kernel, toolchain, say
        self.done: dict[tuple[str, str], tuple[Kernel, ...] | RefusedError] = {}

    def __call__(self, params: Mapping[str, Any], target: str) -> tuple[Kernel, ...]:
        key = (target, repr(sorted(params.items())))
        if key not in self.done:
            self.say(f"lowering {self.kernel} for {target}")
            try:
                self.done[key] = self.read(self.kernel, params, target)
            except RefusedError as refusal:
                self.done[key] = refusal
        found = self.done[key]
        if isinstance(found, RefusedError):
            raise found
        return found


def _on_device(
    read: _Reader,
    listing: Listing,
    device: Device,
    params: Mapping[str, Any],
    source: str,
    policy: Policy | None,
) -> list[Result]:
    target = _target(device)
    parameter = stage_parameter([p.name for p in listing.parameters])
    current = _current(listing, parameter, params)

    def judged(kernel: Kernel) -> Verdict:
        return judge(kernel, place(kernel), device, policy)

    try:
        kernels = read(params, target)
    except RefusedError as refusal:
        return [
            _refused(refusal, read, listing, device, target, params, source, parameter, current)
        ]
    stages = largest_stages(
        kernels,
        parameter=parameter,
        current=current,
        params=params,
        read=lambda changed: read(changed, target),
        judge=judged,
    )
    return [_result(kernel, judged(kernel), device, stages, source, params) for kernel in kernels]


def _target(device: Device) -> str:
    """Return TileLang's target for a device.

    Raises:
        InputError: `plan` cannot judge kernels for it.
    """
    target = device.target("tilelang")
    if device.vendor != "nvidia" or target is None:
        raise InputError(
            f"plan reads TileLang kernels for NVIDIA devices; {device.name} is "
            f"{device.vendor} {device.arch}: try `tilefit budget` or `tilefit footprint` for it"
        )
    return target


def _current(listing: Listing, parameter: str | None, params: Mapping[str, Any]) -> Any:
    if parameter is None:
        return None
    if parameter in params:
        return params[parameter]
    return next(p.default for p in listing.parameters if p.name == parameter)


def _result(
    kernel: Kernel,
    verdict: Verdict,
    device: Device,
    stages: Stages,
    source: str,
    params: Mapping[str, Any],
) -> Result:
    uses = place(kernel)
    command, tried = None, False
    if verdict.status is Status.DOES_NOT_FIT:
        command, tried = _next_command(source, device, params, stages)
    return Result(
        file=source.partition("::")[0],
        kernel=kernel.name,
        params=kernel.params,
        device=device.name,
        device_title=device.title,
        arch=device.arch,
        target=kernel.target,
        toolchain=kernel.toolchain,
        toolchain_version=kernel.toolchain_version,
        status=verdict.status,
        reason=verdict.reason,
        lowered=kernel,
        uses=uses,
        memories=verdict.memories,
        limits=verdict.limits,
        stages=stages,
        evidence=weakest(use.evidence for use in uses),
        try_next=command,
        try_next_tried=tried,
    )


def _refused(
    refusal: RefusedError,
    read: _Reader,
    listing: Listing,
    device: Device,
    target: str,
    params: Mapping[str, Any],
    source: str,
    parameter: str | None,
    current: Any,
) -> Result:
    defaults = {p.name: p.default for p in listing.parameters if not p.required}
    return Result(
        file=source.partition("::")[0],
        kernel=listing.name,
        params=tuple({**defaults, **params}.items()),
        device=device.name,
        device_title=device.title,
        arch=device.arch,
        target=target,
        toolchain=read.toolchain[0],
        toolchain_version=read.toolchain[1],
        status=Status.CANNOT_LOWER,
        reason=str(refusal),
        lowered=None,
        uses=(),
        memories=(),
        limits=(),
        stages=Stages(
            parameter=parameter,
            current=current if isinstance(current, int) else None,
            largest=None,
            reason="the kernel cannot be lowered",
        ),
        evidence=Evidence.COMPILED,
    )


def _next_command(
    source: str, device: Device, params: Mapping[str, Any], stages: Stages
) -> tuple[str, bool]:
    """Return the command to paste after a misfit, and whether its answer was compiled here."""
    changed = dict(params)
    tried = stages.largest is not None and stages.parameter is not None
    if tried and stages.parameter is not None:
        changed[stages.parameter] = stages.largest
    words = ["tilefit", "plan", source, "-d", device.name]
    for name, value in changed.items():
        words += ["--set", f"{name}={value}"]
    if not tried:
        words.append("--list")
    return shlex.join(words), tried


def _quiet(_: str) -> None:
    """Take a progress line and show nothing."""
