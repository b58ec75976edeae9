"""`plan`: which kernel, which devices, and one planner for each pair."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tilefit._devices.facts import facts_of
from tilefit._devices.names import Device, expand
from tilefit._devices.names import device as find_device
from tilefit._errors import (
    Cause,
    InputError,
    KernelError,
    TilefitError,
    ToolchainError,
    WorkerError,
)
from tilefit._frontends import registry
from tilefit._kernel.kernel import Listing
from tilefit._kernel.naming import check_source, file_and_kernel, pick, split_source
from tilefit._kernel.toolchain import Toolchain
from tilefit._planning.files import mentions, plan_file, plan_folder
from tilefit._planning.planner import Planner
from tilefit._planning.question import Options, Progress, Question, quiet
from tilefit._planning.reader import (
    Reader,
    target_of,
    told,
    way_to,
    why_unread,
)
from tilefit._planning.report import Report, Result
from tilefit._planning.values import Values, template
from tilefit._reading.child import Limits
from tilefit._reading.in_process import InProcess
from tilefit._reading.kept import source_files
from tilefit._reading.opener import Kernels, Opener
from tilefit._reading.store import Store
from tilefit._verdict.judge import Status

# what a file is told of that cannot be listed without a device, where none was named
_STAND_IN = "h100"

__all__ = ["Options", "kernels_in", "plan_below", "plan_with"]


def plan_with(
    source: Any,
    device: str | Device | Sequence[str | Device],
    params: Mapping[str, Any],
    *,
    shapes: Sequence[Mapping[str, Any]] = (),
    values: Values | None = None,
    limits: Limits | None = None,
    python: str = sys.executable,
    options: Options | None = None,
) -> Report:
    """Plan a kernel for every device and every set of parameters.

    Args:
        source: ``"file.py::kernel"``; ``"file.py"`` for all that its main compiles; or a
            PrimFunc, jit object or factory of this process.
        device: Name of a device, a `Device`, or several.
        params: Parameters of the kernel.
        shapes: Sets of further parameters; the kernel is planned with each of them in turn.
        values: More parameters, of single kernels, in sets.
        limits: What the user's file may use while it is read.
        python: Interpreter that has the toolchain.
        options: What is asked beyond the verdict.

    Raises:
        InputError: A wrong name or value.
        ToolchainError: The toolchain is missing.
        KernelError: The user's code raised.
        WorkerError: The user's code hung, crashed or used too much.
    """
    options = options or Options()
    devices = _devices(device)
    cases = [{**params, **shape} for shape in shapes] if shapes else [dict(params)]
    if options.suggest is None and len(devices) * len(cases) > 1:
        options = replace(options, suggest=False)  # edits are for one card at a time
    if not isinstance(source, (str, Path)):
        # a kernel object of this very process: nothing is executed but its factory
        frontend = registry.compiling(options.frontend or registry.DEFAULT)
        toolchain = frontend.toolchain
        _refuse_unreadable(devices, toolchain, options)
        version = frontend.version()
        wrapped = InProcess(frontend, source, told(devices, toolchain))
        name = f"{wrapped.path}::{wrapped.listing.name}"
        reader = Reader(wrapped.read, wrapped.listing, toolchain, version, options)
        return _report({toolchain.name: reader}, toolchain, name, devices, cases, options)
    with opener_for(options, limits=limits, python=python) as opener:
        return plan_opened(str(source), devices, cases, options, opener, values)


def opener_for(
    options: Options, *, limits: Limits | None = None, python: str = sys.executable
) -> Opener:
    """Return what opens files as the options ask."""
    say = options.progress or quiet
    return Opener(
        limits=limits,
        python=python,
        store=Store() if options.cache and not options.estimate else None,
        frontend=options.frontend,
        started=lambda toolchain: say(f"importing {toolchain.title}"),
    )


def plan_opened(
    source: str,
    devices: tuple[Device, ...],
    cases: Sequence[Mapping[str, Any]],
    options: Options,
    opener: Opener,
    values: Values | None = None,
) -> Report:
    """Plan one kernel, or all kernels of a file where none is named.

    Args:
        source: ``FILE`` or ``FILE::KERNEL``.
        devices: For which devices.
        cases: Sets of parameters, at least one.
        options: What is asked.
        opener: Opens the file.
        values: More parameters, of single kernels, in sets.
    """
    path, kernel = split_source(source)
    shown, _ = file_and_kernel(source)
    toolchain = opener.toolchain_of(path)
    check_source(path, toolchain.suffixes)
    _refuse_unreadable(devices, toolchain, options)
    if values is not None:
        values.refuse_other_files([path])
        sets = values.of(path).get(str(kernel))
        if kernel is not None and sets is not None:
            cases = [{**case, **one} for case in cases for one in sets]
    if kernel is None:
        if len(cases) > 1 or options.ladder is not None:
            kernel = _only_kernel(path, devices, options, opener)
        else:
            question = Question(devices, cases[0], options, values)
            report = plan_file(path, shown, question, opener)
            only = _needs_values(report, cases[0])
            if only is None:
                return report
            kernel = only
    readers: dict[str, Reader | TilefitError] = {}
    for device in devices:
        way = way_to(device, toolchain, options)
        if target_of(device, way) is not None and way.name not in readers:
            try:
                readers[way.name] = _reader(path, kernel, devices, opener, way, options)
            except (KernelError, WorkerError) as error:
                readers[way.name] = error
    return _report(readers, toolchain, f"{shown}::{kernel}", devices, cases, options)


def plan_below(
    folder: str,
    device: str | Device | Sequence[str | Device],
    params: Mapping[str, Any],
    *,
    values: Values | None = None,
    limits: Limits | None = None,
    python: str = sys.executable,
    options: Options | None = None,
    store: Store | None = None,
    workers: int = 1,
    step: Callable[[int, int, str], None] = lambda *_: None,
) -> Report:
    """Plan every kernel of every file below a folder; see `tilefit._planning.files.plan_folder`.

    ``store`` is where readings are kept, if the options allow it; the user's own if None.
    """
    options = replace(options or Options(), progress=None)
    devices = _devices(device)
    quick = replace(options, stages=False, suggest=False)
    question = Question(devices, params, quick, values)
    store = (store or Store()) if options.cache and not options.estimate else None
    if store is not None and registry.suffixes() != (".py",):
        store.complete = False  # a printed answer rests on the Python files alone
    return plan_folder(
        Path(folder),
        question,
        lambda: Opener(limits=limits, python=python, store=store, frontend=options.frontend),
        workers=workers,
        step=step,
    )


def _opened(path: Path, way: Toolchain, opener: Opener, facts: Mapping[str, Any]) -> Kernels:
    """Return a file as one toolchain reads it: executed in a child if it compiles."""
    return opener.compiled(path) if way.compiles else opener.estimated(path, way.name, facts)


def _reader(
    path: Path,
    kernel: str,
    devices: Sequence[Device],
    opener: Opener,
    way: Toolchain,
    options: Options,
) -> Reader:
    """Return what reads one kernel of a file for those devices that are read for in this way."""
    own = opener.toolchain_of(path)
    devices = [
        one
        for one in devices
        if target_of(one, way) is not None and way_to(one, own, options) is way
    ]
    opened = _opened(path, way, opener, facts_of(devices[0]))
    listing = _listing(opened, kernel, path, devices)
    return Reader(opened.read, listing, opened.toolchain, opened.version, options)


def _listing(opened: Kernels, kernel: str, path: Path, devices: Sequence[Device]) -> Listing:
    """Return the kernel that was named, also one that only the file's main makes."""
    listings = opened.load(told(devices, opened.toolchain)) if "#" not in kernel else ()
    for item in listings:
        if item.name == kernel:
            return item
    made = opened.run(facts_of(devices[0])).kernels
    known = {item.name: item for item in (*listings, *made)}
    return pick(tuple(known.values()), kernel, path)


def _only_kernel(path: Path, devices: tuple[Device, ...], options: Options, opener: Opener) -> str:
    """Return the name of a file's only kernel, where the question is about one."""
    way = way_to(devices[0], opener.toolchain_of(path), options)
    opened = _opened(path, way, opener, {})
    return pick(opened.load(told(devices, opened.toolchain)), None, path).name


def _needs_values(report: Report, params: Mapping[str, Any]) -> str | None:
    """Return the one kernel of a file that has no plan for want of values that were given."""
    failures = [one for seen in report.files for one in seen.failures]
    names = {one.kernel for one in failures if one.kernel is not None}
    wanting = all(one.cause is Cause.NEEDS_VALUE for one in failures)
    if report.results or not params or len(names) != 1 or len(failures) != len(names):
        return None
    if not wanting:
        return None
    return names.pop()


def _report(
    readers: Mapping[str, Reader | TilefitError],
    toolchain: Toolchain,
    source: str,
    devices: Sequence[Device],
    cases: Sequence[Mapping[str, Any]],
    options: Options,
) -> Report:
    """Plan every case on every device; where user code fails on some of them, say so there.

    Raises:
        KernelError: User code raised everywhere; the first of the errors.
        WorkerError: As `KernelError`, where it crashed or hung.
    """
    ready = [reader for reader in readers.values() if isinstance(reader, Reader)]
    errors = [error for error in readers.values() if isinstance(error, TilefitError)]
    if not ready:
        raise errors[0]
    results: list[Result] = []
    planned = False
    for number, (case, device) in enumerate(product(cases, devices), 1):
        # any reader is enough to say that a device cannot be read for
        chosen = readers.get(way_to(device, toolchain, options).name, ready[0])
        reader = chosen if isinstance(chosen, Reader) else ready[0]
        if len(cases) * len(devices) > 1:
            reader.prefix = f"[{number}/{len(cases) * len(devices)}] {device.name}: "
        planner = Planner(reader, reader.listing, case, source, options)
        try:
            if isinstance(chosen, TilefitError):
                raise chosen
            results += planner.on(device)
            planned = True
        except (KernelError, WorkerError) as error:
            errors.append(error)
            reason = f"{error}; --estimate reads the source alone"
            results.append(planner.unread(Status.UNKNOWN, reason, device))
    if not planned:
        raise errors[0]
    return Report(tuple(results))


def kernels_in(
    source: str,
    *,
    limits: Limits | None = None,
    python: str = sys.executable,
    progress: Progress | None = None,
    estimate: bool = False,
    frontend: str | None = None,
) -> tuple[tuple[Listing, ...], str | None]:
    """List the kernels of a file with their parameters; see `plan_with` for the errors.

    Returns:
        The kernels, and why they were read from the source alone, in one line: a file that cannot
        be executed here is not executed. None where it was, or an estimate was asked for.
    """
    path, _ = split_source(source)
    options = Options(progress=progress, estimate=estimate, frontend=frontend)
    with opener_for(options, limits=limits, python=python) as opener:
        device = find_device(_STAND_IN)
        toolchain = opener.toolchain_of(path)
        check_source(path, toolchain.suffixes)
        way = way_to(device, toolchain, options)
        stand_ins = told((device,), way)
        try:
            return _opened(path, way, opener, {}).load(stand_ins), None
        except (KernelError, WorkerError, ToolchainError) as error:
            if not way.compiles or toolchain.estimated_by is None:
                raise
            found = opener.estimated(path, toolchain.estimated_by, {}).load(stand_ins)
            if not found:
                raise
            return found, f"listed from the source alone: {error}"


def values_template(source: str, folder: Path, *, frontend: str | None = None) -> str:
    """Return a values file for the kernels of a file, or below a folder, that need values.

    The sources are read, and nothing is executed.

    Args:
        source: The file or folder.
        folder: Where the values file will be.
        frontend: Name of the one that reads the files; None to recognise it by the file.

    Raises:
        InputError: Nothing reads the sources alone, or no kernel needs values.
    """
    path = Path(source)
    opener = Opener(frontend=frontend)
    files = [path]
    if path.is_dir():
        below = map(Path, source_files(source, registry.suffixes()))
        files = [one for one in below if mentions(one)]
    else:
        split_source(source)
    found: list[tuple[Path, Listing]] = []
    for file in files:
        way = way_to(find_device(_STAND_IN), opener.toolchain_of(file), Options(estimate=True))
        with suppress(TilefitError):  # `plan` says why it cannot be read
            kernels = opener.estimated(file, way.name, {})
            needing = {one.kernel for one in kernels.run({}).unbuilt if one.needs}
            found += [(file, one) for one in kernels.load() if one.name in needing]
    if not found:
        raise InputError(f"{source}: no kernel here needs a value")
    return template(found, folder)


def _devices(device: str | Device | Sequence[str | Device]) -> tuple[Device, ...]:
    given = [device] if isinstance(device, (str, Device)) else list(device)
    found: list[Device] = []
    for item in given:
        found.extend(expand([item]) if isinstance(item, str) else [item])
    return tuple({one.name: one for one in found}.values())


def _refuse_unreadable(devices: Sequence[Device], toolchain: Toolchain, options: Options) -> None:
    """Refuse devices of which none can be read for, before the user's file runs."""
    by = toolchain.estimated_by
    ways = [toolchain, *([registry.frontend(by).toolchain] if by else [])]
    way_to(devices[0], toolchain, options)  # refuses an estimate that nobody can make
    if all(target_of(one, way) is None for one in devices for way in ways):
        raise InputError(f"{devices[0].name}: {why_unread(devices[0], toolchain)}")
