"""One file of `plan FILE` or `plan FOLDER`: each of its kernels on each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilefit._devices.facts import facts_of
from tilefit._devices.names import Device
from tilefit._errors import (
    Cause,
    InputError,
    InterpreterError,
    KernelError,
    TilefitError,
    ToolchainError,
    WorkerError,
)
from tilefit._frontends.protocol import Ran, Unbuilt, stood_in_for
from tilefit._kernel.kernel import Listing
from tilefit._kernel.toolchain import Toolchain
from tilefit._planning.planner import Planner
from tilefit._planning.question import Options, Question
from tilefit._planning.reader import Reader, target_of, told, way_to
from tilefit._planning.report import Failure, FileSeen, Result
from tilefit._planning.values import Sets
from tilefit._reading.from_source import AsMain
from tilefit._reading.opener import Kernels, Opener
from tilefit._verdict.judge import Status


class OneFile:
    """One file, asked for all devices."""

    def __init__(
        self, path: Path, shown: str, question: Question, opener: Opener, *, alone: bool = False
    ) -> None:
        self.path, self.shown, self.question, self.opener = path, shown, question, opener
        self.alone = alone
        self.names: set[str] = set()  # of the parameters that its kernels have
        self.results: list[Result] = []
        self.seen = FileSeen(file=shown)
        self._ran: dict[str, tuple[Kernels, Ran] | TilefitError] = {}
        self.broken: TilefitError | None = None  # why the file as a whole could not be read

    def plan(self) -> tuple[list[Result], FileSeen]:
        """Return the results, and what became of every kernel."""
        try:
            with self.path.open("rb"):
                pass
        except OSError as error:
            self.broken = InputError(f"cannot read {self.shown}: {error.strerror}")
            for device in self.question.devices:
                self._fails(None, device, f"cannot be read: {error.strerror}")
            return self.results, self.seen
        for way, devices in self._alike():
            try:
                self._plan_on(way, devices)
            except (ToolchainError, InterpreterError):
                raise
            except TilefitError as error:
                self.broken = self.broken or error
                for device in devices:
                    self._fails(None, device, str(error))
        return self.results, self.seen

    def _plan_on(self, way: Toolchain, devices: Sequence[Device]) -> None:
        """Plan for devices of one target: user code is told of the first."""
        kernels, ran = self._compiled(devices) if way.compiles else self._alone(way, devices)
        self._remark(ran)
        options = self.question.options
        if ran.seen > 1:
            options = replace(options, stages=False, suggest=bool(options.suggest))
        sets = {} if self.question.values is None else self.question.values.of(self.path)
        needing = [one for one in ran.unbuilt if one.needs]
        for one in ran.unbuilt:
            if one in needing:
                continue
            for device in devices:
                if one.refused:
                    self._refused(one.kernel, one.reason, device, kernels, options)
                else:
                    self._fails(one.kernel, device, one.reason, one.cause)
        params = self._params_of(ran)
        for listing in ran.kernels:
            for one_set in sets.get(listing.name, ({},)):
                given = {**params[listing.name], **one_set}
                planner = self._planner(kernels, listing, given, options)
                for device in devices:
                    self._plan_one(planner, device)
        named = self._plan_with_values(way, devices, needing, sets, options)
        if self.question.values is not None:
            known = [
                *(one.name for one in ran.kernels),
                *(one.kernel for one in ran.unbuilt),
                *named,
            ]
            self.question.values.refuse_other_kernels(self.path, known)

    def _plan_with_values(
        self,
        way: Toolchain,
        devices: Sequence[Device],
        needing: Sequence[Unbuilt],
        sets: Mapping[str, Sets],
        options: Options,
    ) -> list[str]:
        """Plan by their names the kernels that main does not compile, where values are given.

        Returns:
            The kernels that the file offers by name, empty where nobody asked.
        """
        listings: dict[str, Listing] = {}
        kernels: Kernels | None = None
        if (needing and self.question.params) or sets:
            kernels = (
                self.opener.compiled(self.path)
                if way.compiles
                else self.opener.estimated(self.path, way.name, facts_of(devices[0]))
            )
            listings = {one.name: one for one in kernels.load(told(devices, way))}
            self.names.update(p.name for one in listings.values() for p in one.parameters)
        for one in needing:
            listing = listings.get(one.kernel)
            for one_set in sets.get(one.kernel, ({},)):
                own = {p.name for p in listing.parameters} if listing else set()
                given = {k: v for k, v in self.question.params.items() if k in own} | {**one_set}
                missing = tuple(name for name in one.needs if name not in given)
                if missing or listing is None or kernels is None:
                    self._lacks(one, missing or one.needs)
                    continue
                planner = self._planner(kernels, listing, given, options)
                for device in devices:
                    self._plan_one(planner, device)
        return list(listings)

    def _lacks(self, one: Unbuilt, needs: tuple[str, ...]) -> None:
        """Note once, for all devices, that a kernel needs values."""
        found = Failure(one.kernel, None, one.reason, one.cause, needs)
        if found not in self.seen.failures:
            self.seen = replace(self.seen, failures=(*self.seen.failures, found))

    def _alone(self, way: Toolchain, devices: Sequence[Device]) -> tuple[Kernels, Ran]:
        """Return the kernels as declared, with main's values if it runs for another device."""
        kernels: Kernels = self.opener.estimated(self.path, way.name)
        for other, others in self._alike():
            if other.compiles:
                with suppress(KernelError, WorkerError):  # it is said where it is planned for
                    kernels = AsMain(self.path, self._compiled(others)[1], way.name)
                break
        return kernels, kernels.run(facts_of(devices[0]))

    def _compiled(self, devices: Sequence[Device]) -> tuple[Kernels, Ran]:
        """Return the kernels that main compiles; it runs once for devices of one target."""
        first = devices[0]
        if first.name not in self._ran:
            kernels = self.opener.compiled(self.path)
            try:
                ran = kernels.run(facts_of(first))
                if not ran.seen and ran.broke_off:
                    raise KernelError(ran.broke_off)
                self._ran[first.name] = kernels, ran
            except TilefitError as error:
                self._ran[first.name] = error
        found = self._ran[first.name]
        if isinstance(found, TilefitError):
            raise found
        return found

    def _plan_one(self, planner: Planner, device: Device) -> None:
        try:
            found = planner.on(device)
        except (ToolchainError, InterpreterError):
            raise
        except TilefitError as error:
            self._fails(planner.listing.name, device, str(error), error.cause)
            return
        self.results += found
        refused = any(one.status is Status.CANNOT_LOWER for one in found)
        self._count(refused=int(refused), planned=int(not refused))

    def _params_of(self, ran: Ran) -> dict[str, dict[str, Any]]:
        """Return for each kernel those of the given parameters that it has."""
        given = self.question.params
        known = {item.name: {p.name for p in item.parameters} for item in ran.kernels}
        self.names.update(*known.values())
        if self.alone and len(known) == 1:
            return {name: dict(given) for name in known}  # its own refusal of a name says more
        return {
            name: {key: value for key, value in given.items() if key in names}
            for name, names in known.items()
        }

    def _refused(
        self, name: str, reason: str, device: Device, kernels: Kernels, options: Options
    ) -> None:
        listing = Listing(name=name, style="", line=None, parameters=())
        planner = self._planner(kernels, listing, {}, options)
        self.results.append(planner.unread(Status.CANNOT_LOWER, reason, device))
        self._count(refused=1)

    def _planner(
        self,
        kernels: Kernels,
        listing: Listing,
        params: Mapping[str, Any],
        options: Options,
    ) -> Planner:
        reader = Reader(kernels.read, listing, kernels.toolchain, kernels.version, options)
        return Planner(reader, listing, params, f"{self.shown}::{listing.name}", options)

    def _remark(self, ran: Ran) -> None:
        lines = [ran.broke_off] if ran.broke_off else []
        if ran.stubbed:
            lines.append(stood_in_for(ran.stubbed))
        lines += ran.notes
        remarks = dict.fromkeys((*self.seen.remarks, *lines))
        self.seen = replace(self.seen, remarks=tuple(remarks))

    def _fails(
        self, kernel: str | None, device: Device, reason: str, cause: Cause | None = None
    ) -> None:
        named = device.name if len(self.question.devices) > 1 else None
        one = Failure(kernel, named, reason, cause)
        self.seen = replace(self.seen, failures=(*self.seen.failures, one))

    def _count(self, *, planned: int = 0, refused: int = 0) -> None:
        self.seen = replace(
            self.seen, planned=self.seen.planned + planned, refused=self.seen.refused + refused
        )

    def _alike(self) -> list[tuple[Toolchain, list[Device]]]:
        """Return the devices in groups of one target, in the order in which they were named."""
        own = self.opener.toolchain_of(self.path)
        groups: dict[tuple[str, str | None], tuple[Toolchain, list[Device]]] = {}
        for device in self.question.devices:
            way = way_to(device, own, self.question.options)
            groups.setdefault((way.name, target_of(device, way)), (way, []))[1].append(device)
        return list(groups.values())
