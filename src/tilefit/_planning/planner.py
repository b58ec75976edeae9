"""One kernel on one device: lower it, place it, judge it, and look around it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tilefit._devices.names import Device
from tilefit._errors import KernelError, RefusedError, UnknownNameError
from tilefit._kernel.kernel import CannotAssemble, Kernel, Listing
from tilefit._kernel.memory import weakest
from tilefit._kernel.naming import blamed, refuse_text_for_numbers
from tilefit._kernel.toolchain import Toolchain
from tilefit._placement.account import account
from tilefit._placement.compare import packing_differs
from tilefit._placement.place import owned, place
from tilefit._planning.keep import conditions, kept_by, refuse_unknown
from tilefit._planning.ladder import ladder, parse_ladder, steps
from tilefit._planning.question import Options
from tilefit._planning.reader import Reader, target_of, why_unread
from tilefit._planning.report import NextStep, Result, Rung, Stages, Tried
from tilefit._planning.residency import by_core, residency, rounds, worst_residency
from tilefit._planning.stages import (
    largest_stages,
    ring_parameter,
    stage_parameter,
    versions_of,
)
from tilefit._planning.suggest import best_of, cuts_of, loss_of, tried_edits
from tilefit._planning.wanted import block_limit, refuse_headroom, with_blocks
from tilefit._verdict.advice import advice
from tilefit._verdict.ascend import as_scheduled
from tilefit._verdict.judge import Status, Verdict, judge
from tilefit._verdict.refusals import for_want_of_memory, in_plain_words, reuse_would_do


@dataclass(frozen=True, slots=True)
class Planner:
    """One kernel with its parameters, to be planned on devices.

    Attributes:
        reader: Lowers the kernel.
        listing: The kernel as the file offers it.
        params: The parameters that the user set.
        source: ``FILE::KERNEL`` as the user gave it.
        options: What is asked beyond the verdict.
    """

    reader: Reader
    listing: Listing
    params: Mapping[str, Any]
    source: str
    options: Options = field(default_factory=Options)

    @property
    def toolchain(self) -> Toolchain:
        """What reads the kernel, and what that can do."""
        return self.reader.toolchain

    def on(self, device: Device) -> list[Result]:
        """Return one result per device function."""
        target = target_of(device, self.toolchain)
        if target is None:
            why = why_unread(device, self.toolchain)
            return [self._without_kernel(Status.UNKNOWN, why, device, None, ())]
        refuse_text_for_numbers(self.listing, self.params)
        policy = self.options.policy
        refuse_headroom(policy.headroom_bytes, device)

        def judged(kernel: Kernel) -> Verdict:
            verdict = judge(kernel, place(kernel), device, policy)
            return with_blocks(verdict, kernel, device, policy.blocks)

        def read(
            params: Mapping[str, Any], configs: Mapping[str, Any] | None = None
        ) -> tuple[Kernel, ...]:
            try:
                return tuple(as_scheduled(k, device) for k in self.reader(params, target, configs))
            except RefusedError as refusal:
                words = in_plain_words(str(refusal), device)
                raise RefusedError(words, cause=refusal.cause) from refusal

        self._refuse_ladder()
        names = [p.name for p in self.listing.parameters]
        refuse_unknown(conditions(self.options.keep), self.listing.name, names)
        kernels: tuple[Kernel, ...] = ()
        refusal: RefusedError | None = None
        try:
            kernels = read(self.params)
        except KernelError as error:
            words = f"{blamed(self.listing, self.params)}{error}"
            raise KernelError(words, cause=error.cause) from error
        except RefusedError as error:
            refusal = error
        parameter, current = self._stage_parameter(kernels, read)
        rungs = tuple(
            replace(rung, residency=worst_residency(rung.outcome.kernels, device))
            for rung in self._ladder(read, judged, parameter)
        )
        if refusal is not None:
            reason = str(refusal)
            # Ascend's compiler refuses for want of memory: a smaller tile is what helps
            wanted = for_want_of_memory(str(refusal.__cause__), device)
            tried = self._tried(read, judged, device, misses=wanted) if wanted else ()
            if not wanted and refusal.cause is None:  # else it is for want of memory, or the chip
                reason = f"{blamed(self.listing, self.params)}{reason}"
            reason += self._reuse(read, tried, device)
            result = self._without_kernel(Status.CANNOT_LOWER, reason, device, target, rungs)
            if any(one.helps for one in tried):
                command, step = self._next_command(device, result.stages, tried)
                result = replace(result, try_next=command, next_step=step)
            return [replace(result, tried=tried)]
        stages = self._not_searched(parameter, current)
        if self.options.stages:
            stages = largest_stages(
                kernels,
                parameter=parameter,
                current=current,
                params=self.params,
                read=read,
                judge=judged,
            )
        verdicts = [judged(kernel) for kernel in kernels]
        misses = any(v.status is Status.DOES_NOT_FIT for v in verdicts)
        # code generation may fail for one stage count and not for another
        misses = misses or any(_has_no_code(kernel) for kernel in kernels)
        tried = self._tried(read, judged, device, misses=misses, kernels=kernels)
        make = partial(self._result, device=device, stages=stages, rungs=rungs, tried=tried)
        return [make(k, v) for k, v in zip(kernels, verdicts, strict=True)]

    def _reuse(self, read: Any, tried: tuple[Tried, ...], device: Device) -> str:
        """Return what to add to a refusal if sharing bytes would make the kernel fit."""
        lowered = next((t.outcome.kernels for t in tried if t.outcome.kernels), ())
        unchecked = self.toolchain.edits_for(device.vendor).unchecked
        if not lowered or not unchecked:
            return ""
        try:
            whole = read(self.params, dict(unchecked))
        except RefusedError:
            return ""
        words = reuse_would_do(whole, lowered, device)
        return f". {words}" if words else ""

    def _tried(
        self,
        read: Any,
        judged: Any,
        device: Device,
        *,
        misses: bool,
        kernels: tuple[Kernel, ...] = (),
    ) -> tuple[Tried, ...]:
        if not (self.options.suggest or (misses and self.options.suggest is None)):
            return ()
        tried = tried_edits(
            self._own_params(),
            self.toolchain,
            device.vendor,
            params=self.params,
            read=read,
            judge=judged,
            progress=self.options.progress,
            cuts=cuts_of(kernels, judged, self._own_params()),
            kernels=kernels,
            limit_bytes=block_limit(device, self.options.policy),
            allowed=kept_by(conditions(self.options.keep)),
        )
        return tuple(
            replace(one, residency=worst_residency(one.outcome.kernels, device)) for one in tried
        )

    def unread(self, status: Status, reason: str, device: Device) -> Result:
        """Return the result of a kernel that was not read for a device, and why."""
        target = target_of(device, self.toolchain)
        return self._without_kernel(status, reason, device, target, ())

    def _as_given(self, params: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
        """Return parameters in the order in which they were given, then the kernel's others."""
        given = {name: params[name] for name in self.params if name in params}
        return tuple({**given, **params}.items())

    def _own_params(self) -> dict[str, Any]:
        defaults = {p.name: p.default for p in self.listing.parameters if not p.required}
        return {**defaults, **self.params}

    def _stage_parameter(
        self, kernels: tuple[Kernel, ...] = (), read: Any = None
    ) -> tuple[str | None, Any]:
        """Return the parameter that sets the stages, by its name or by what it does."""
        own, names = self._own_params(), [p.name for p in self.listing.parameters]
        parameter = stage_parameter(names, self.toolchain.stage_parameters)
        if parameter is None and kernels and (self.options.stages or self.options.ladder):
            parameter = ring_parameter(kernels, own, self.params, read)
        return parameter, None if parameter is None else own.get(parameter)

    @staticmethod
    def _not_searched(parameter: str | None, current: Any) -> Stages:
        return Stages(
            parameter=parameter,
            current=current if isinstance(current, int) else None,
            largest=None,
            reason="not searched: plan the kernel alone, as FILE::KERNEL",
        )

    def _ladder_parameter(self) -> str | None:
        return None if self.options.ladder is None else parse_ladder(self.options.ladder)[0]

    def _refuse_ladder(self) -> None:
        """Refuse a ladder of a parameter that the kernel does not have."""
        name, names = self._ladder_parameter(), [p.name for p in self.listing.parameters]
        if name is not None and name not in names:
            raise UnknownNameError(f"parameter of {self.listing.name}", name, names)

    def _ladder(self, read: Any, judged: Any, parameter: str | None) -> tuple[Rung, ...]:
        if self.options.ladder is None:
            return ()
        name, values = parse_ladder(self.options.ladder)
        staged = name == parameter or stage_parameter([name]) is not None
        return ladder(
            name,
            steps(name, self._own_params().get(name), stages=staged) if values is None else values,
            params=self.params,
            read=read,
            judge=judged,
            to_the_end=values is not None,
        )

    def _result(
        self,
        kernel: Kernel,
        verdict: Verdict,
        *,
        device: Device,
        stages: Stages,
        rungs: tuple[Rung, ...],
        tried: tuple[Tried, ...],
    ) -> Result:
        uses = owned(place(kernel), device)
        held = residency(kernel, device)
        tried = tuple(replace(one, loss=loss_of(one, kernel, held)) for one in tried)
        helped = any(one.helps for one in tried)
        command, step = None, None
        if verdict.status is Status.DOES_NOT_FIT or (helped and _has_no_code(kernel)):
            command, step = self._next_command(device, stages, tried)
        return Result(
            file=self.source.rpartition("::")[0],
            kernel=kernel.name,
            params=self._as_given(dict(kernel.params)),
            device=device.name,
            device_title=device.title,
            arch=device.arch,
            target=kernel.target,
            toolchain=kernel.toolchain,
            toolchain_version=kernel.toolchain_version,
            estimated=not self.toolchain.compiles,
            by_core=by_core(device),
            status=verdict.status,
            reason=verdict.reason,
            lowered=kernel,
            uses=uses,
            memories=verdict.memories,
            limits=verdict.limits,
            stages=replace(stages, versions=versions_of(kernel)) if stages.versions else stages,
            evidence=weakest([use.evidence for use in uses] or [self.toolchain.evidence]),
            rows=account(kernel),
            packing_note=packing_differs(kernel, self.toolchain.packers),
            residency=held,
            rounds=rounds(kernel, device),
            ladder=rungs,
            ladder_parameter=self._ladder_parameter(),
            tried=tried,
            advice=() if helped else advice(kernel, (*verdict.memories, *verdict.limits), device),
            try_next=command,
            next_step=step,
        )

    def _without_kernel(
        self,
        status: Status,
        reason: str,
        device: Device,
        target: str | None,
        rungs: tuple[Rung, ...],
    ) -> Result:
        parameter, current = self._stage_parameter()
        return Result(
            file=self.source.rpartition("::")[0],
            kernel=self.listing.name,
            params=self._as_given(self._own_params()),
            device=device.name,
            device_title=device.title,
            arch=device.arch,
            target=target,
            toolchain=self.toolchain.name,
            toolchain_version=self.reader.version,
            estimated=not self.toolchain.compiles,
            by_core=by_core(device),
            status=status,
            reason=reason,
            lowered=None,
            uses=(),
            memories=(),
            limits=(),
            stages=Stages(
                parameter=parameter,
                current=current if isinstance(current, int) else None,
                largest=None,
                reason="the kernel was not lowered",
            ),
            evidence=self.toolchain.evidence,
            ladder=rungs,
            ladder_parameter=self._ladder_parameter(),
        )

    def _next_command(
        self, device: Device, stages: Stages, tried: tuple[Tried, ...]
    ) -> tuple[str, NextStep]:
        """Return the command to paste after a misfit, and what is known of its answer."""
        changed, configs, flags = dict(self.params), dict(self.options.pass_configs), []
        best = best_of(tried)
        kept = kept_by(conditions(self.options.keep))
        staged = {**self._own_params(), str(stages.parameter): stages.largest}
        step = NextStep.FITS
        keeps_tile = (stages.largest or 0) > 1 and kept(staged)
        if best is not None and not (keeps_tile and len(best.edit.params) > 1):
            changed.update(best.edit.params)
            configs.update(best.edit.pass_configs)
        elif stages.largest is not None and kept(staged):
            changed[str(stages.parameter)] = stages.largest
        else:
            step = NextStep.TRIES
            open_one = next((one for one in tried if one.unsettled), None)
            if open_one is not None and not self.options.assemble:
                changed.update(open_one.edit.params)
                configs.update(open_one.edit.pass_configs)
                flags = ["--assemble"]
            elif self.options.suggest is not False:
                flags, step = ["--list"], NextStep.LISTS
        words = ["tilefit", "plan", self.source, "-d", device.name]
        for name, value in changed.items():
            words += ["--set", f"{name}={value}"]
        for name, value in configs.items():
            words += ["--pass-config", f"{name}={value}"]
        words += [*_as_asked(self.options), *flags]
        return shlex.join(words), step


def _has_no_code(kernel: Kernel) -> bool:
    made = kernel.assembly
    return isinstance(made, CannotAssemble) and not made.for_want_of_tools


def _as_asked(options: Options) -> list[str]:
    """Return the flags without which a command to paste would answer another question."""
    flags = ["--estimate"] if options.estimate else []
    if options.frontend is not None:
        flags += ["--frontend", options.frontend]
    if options.headroom_bytes:
        flags += ["--headroom", str(options.headroom_bytes)]
    if options.blocks is not None:
        flags += ["--blocks", str(options.blocks), *(["--assemble"] if options.assemble else [])]
    for text in options.keep:
        flags += ["--keep", text]
    return flags
