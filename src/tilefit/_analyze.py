"""`plan`: which kernel, which devices, and one planner for each pair."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tilefit._device import Device, expand
from tilefit._errors import InputError
from tilefit._kernel import Listing
from tilefit._naming import pick, split_source
from tilefit._planner import Options, Planner, Progress, Reader, quiet, target_of, why_unread
from tilefit._report import Report, Result
from tilefit._session import Limits, Session
from tilefit.frontends._tilelang import TileLangFrontend

__all__ = ["Options", "kernels_in", "plan", "plan_with"]


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
        source: ``"file.py::kernel"``, or a PrimFunc, jit object or factory of this process.
        device: Name of a device, a `Device`, or several.
        limits: What the user's file may use while it is read.
        python: Interpreter that has the toolchain.
        options: What is asked beyond the verdict.
        params: Parameters of the kernel.

    Raises:
        InputError: A wrong name or value.
        ToolchainError: The toolchain is missing.
        KernelError: The user's code raised.
        WorkerError: The user's code hung, crashed or used too much.
    """
    return plan_with(source, device, params, limits=limits, python=python, options=options)


def plan_with(
    source: Any,
    device: str | Device | Sequence[str | Device],
    params: Mapping[str, Any],
    *,
    shapes: Sequence[Mapping[str, Any]] = (),
    limits: Limits | None = None,
    python: str = sys.executable,
    options: Options | None = None,
) -> Report:
    """`plan` for parameters whose names are not known beforehand, such as ``device``.

    Args:
        source: As for `plan`.
        device: As for `plan`.
        params: Parameters of the kernel.
        shapes: Sets of further parameters; the kernel is planned with each of them in turn.
        limits: As for `plan`.
        python: As for `plan`.
        options: As for `plan`.
    """
    devices = _devices(device)
    options = options or Options()
    cases = [{**params, **shape} for shape in shapes] if shapes else [dict(params)]
    if options.suggest is None and len(devices) * len(cases) > 1:
        options = replace(options, suggest=False)  # edits are for one card at a time
    if not isinstance(source, (str, Path)):
        # a kernel object of this very process: nothing is executed but its factory
        frontend = TileLangFrontend()
        wrapped = frontend.wrap(source)
        listing = wrapped.kernels()[0]
        name = f"{wrapped.path}::{listing.name}"
        reader = Reader(wrapped.read, listing, (frontend.name, wrapped.version), options)
        return _report(reader, listing, name, devices, cases, options)
    path, kernel = split_source(str(source))
    (options.progress or quiet)("importing TileLang")
    with Session(path, limits=limits, python=python) as session:
        listing = pick(session.load(), kernel, path)
        reader = Reader(session.read, listing, (session.toolchain, session.version), options)
        return _report(reader, listing, str(source), devices, cases, options)


def _report(
    reader: Reader,
    listing: Listing,
    source: str,
    devices: Sequence[Device],
    cases: Sequence[Mapping[str, Any]],
    options: Options,
) -> Report:
    results: list[Result] = []
    for number, (case, device) in enumerate(product(cases, devices), 1):
        if len(cases) * len(devices) > 1:
            reader.prefix = f"[{number}/{len(cases) * len(devices)}] {device.name}: "
        results += Planner(reader, listing, case, source, options).on(device)
    return Report(tuple(results))


def kernels_in(
    source: str,
    *,
    limits: Limits | None = None,
    python: str = sys.executable,
    progress: Progress | None = None,
) -> tuple[Listing, ...]:
    """List the kernels of a file with their parameters; see `plan` for the errors."""
    path, _ = split_source(source)
    (progress or quiet)("importing TileLang")
    with Session(path, limits=limits, python=python) as session:
        return session.load()


def _devices(device: str | Device | Sequence[str | Device]) -> tuple[Device, ...]:
    given = [device] if isinstance(device, (str, Device)) else list(device)
    found: list[Device] = []
    for item in given:
        found.extend(expand([item]) if isinstance(item, str) else [item])
    unique = tuple({one.name: one for one in found}.values())
    if unique and all(target_of(one) is None for one in unique):
        # refused before a child process starts and the user's file runs
        raise InputError(f"{unique[0].name}: {why_unread(unique[0])}")
    return unique
