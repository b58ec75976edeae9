"""How many stages fit: found by compiling, never by dividing.

The bytes of one stage only choose where to look first; the answer is a pair of lowerings, one
that fits and the next that does not. A ring that was written by hand has stages too: its depth is
an extent of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilefit._errors import TilefitError
from tilefit._kernel.kernel import Buffer, Kernel, StageRule
from tilefit._kernel.memory import STAGING, Memory
from tilefit._kernel.toolchain import STAGE_PARAMETERS
from tilefit._planning.outcome import same_code
from tilefit._planning.report import Stages, Versions
from tilefit._verdict.check import LaunchLimit, Status, fullest
from tilefit._verdict.judge import Verdict

Reader = Callable[[Mapping[str, Any]], tuple[Kernel, ...]]
Judge = Callable[[Kernel], Verdict]

# beyond this many stages nobody pipelines, and lowering time grows with each
MOST_STAGES = 32
_MOST_LOWERINGS = 12
# where a ring may be
_RINGED = (*STAGING, Memory.UB, Memory.L1)


def stage_parameter(names: Sequence[str], known: Sequence[str] = STAGE_PARAMETERS) -> str | None:
    """Return the parameter that sets the stages, by the names that people give it."""
    folded = {name.casefold(): name for name in names}
    return next((folded[name] for name in known if name in folded), None)


def stage_parameters(names: Sequence[str], known: Sequence[str] = STAGE_PARAMETERS) -> list[str]:
    """Return all parameters that may set stages or versions: a loop in a loop has its own."""
    first = stage_parameter(names, known)
    return [
        name
        for name in names
        if name == first or "stages" in name.casefold() or "versions" in name.casefold()
    ]


def ring_parameter(
    kernels: tuple[Kernel, ...], own: Mapping[str, Any], params: Mapping[str, Any], read: Reader
) -> str | None:
    """Return the parameter that is the depth of a ring written by hand, by what it does.

    One slot more has to make tiles deeper in that proportion and leave the tensor arguments, the
    grid and the other tiles as they are. Each parameter that may be one is lowered once for that.

    Args:
        kernels: The device functions as they are.
        own: All parameters with their values.
        params: Those of the current call.
        read: Lowers the kernel with other parameters.
    """
    for name, depth in own.items():
        if type(depth) is not int or not 1 < depth <= MOST_STAGES or not rings(kernels, depth):
            continue
        try:
            deeper = read({**params, name: depth + 1})
        except TilefitError:
            continue
        alike = len(kernels) == len(deeper)
        if alike and all(_deeper(a, b, depth) for a, b in zip(kernels, deeper, strict=True)):
            return name
    return None


def rings(kernels: tuple[Kernel, ...], depth: int) -> list[Buffer]:
    """Return the tiles that may be a ring of that depth: it comes first in their shape.

    Where a loop is pipelined, the compiler makes the copies and the shape tells nothing of them.
    """
    return [
        buffer
        for kernel in kernels
        if not any(loop.num_stages for loop in kernel.loops)
        for buffer in kernel.buffers
        if buffer.memory in _RINGED and len(buffer.shape) > 1 and buffer.shape[0] == depth
    ]


def _deeper(kernel: Kernel, other: Kernel, depth: int) -> bool:
    """Say whether another kernel is the same with rings of one slot more."""
    if kernel.arguments != other.arguments or kernel.launch != other.launch:
        return False
    tiles = [[b.shape for b in k.buffers if b.memory in _RINGED] for k in (kernel, other)]
    changed = [(a, b) for a, b in zip(*tiles, strict=False) if a != b]
    proportional = all(a[0] == depth and b == (depth + 1, *a[1:]) for a, b in changed)
    return bool(changed) and proportional and len(tiles[0]) == len(tiles[1])


def largest_stages(
    kernels: tuple[Kernel, ...],
    *,
    parameter: str | None,
    current: Any,
    params: Mapping[str, Any],
    read: Reader,
    judge: Judge,
) -> Stages:
    """Find the largest stage count that compiles and fits, its successor compiled as not.

    Args:
        kernels: The device functions at the current stage count, already lowered.
        parameter: Name of the stage parameter, None if the kernel has none.
        current: Its current value.
        params: All parameters of the current call.
        read: Lowers the kernel with other parameters.
        judge: Judges one device function.
    """
    rules = {kernel.stage_rule for kernel in kernels} - {StageRule.EXACT}
    pipelined = [loop for kernel in kernels for loop in kernel.loops if loop.num_stages]
    if rules and (pipelined or not _extents(kernels, current)):
        return _fewer(kernels, parameter, current, chosen=rules == {StageRule.CHOSEN})
    if parameter is None:
        return _none(None, None, "the kernel has no parameter for its stages")
    if not isinstance(current, int) or isinstance(current, bool) or current < 1:
        reason = f"{parameter}={current!r} pipelines nothing: give a number from 1 with --set"
        return _none(parameter, current if isinstance(current, int) else None, reason)
    if not pipelined and not _extents(kernels, current):
        return _none(parameter, current, f"no pipelined loop uses {parameter}")
    if pipelined and all(loop.extent == 0 for loop in pipelined):
        reason = f"the loop over {pipelined[0].variable} has no iterations at these sizes"
        return _none(parameter, current, reason)
    for kernel in kernels:
        # fewer stages may mend a want of blocks
        limits = [c for c in judge(kernel).limits if c.name is not LaunchLimit.BLOCKS]
        if any(c.status is Status.CANNOT_BUILD for c in limits):
            return _none(parameter, current, "it cannot be built as it is")
        blocked = next((c for c in limits if c.status is Status.DOES_NOT_FIT), None)
        if blocked is not None:
            return _none(parameter, current, f"the launch fails on {blocked.name}")
    return _Search(kernels, parameter, current, params, read, judge).run()


def _extents(kernels: tuple[Kernel, ...], stages: Any) -> bool:
    """Say whether stages may be an extent of a tile, alone or multiplied with another."""
    if type(stages) is not int or stages < 1:
        return False
    tiles = (b for kernel in kernels for b in kernel.buffers if b.memory in _RINGED)
    return any(isinstance(n, int) and n and n % stages == 0 for b in tiles for n in b.shape)


def _fewer(
    kernels: tuple[Kernel, ...], parameter: str | None, current: Any, *, chosen: bool
) -> Stages:
    """Say what was made of the stages: a count that is too high is no failure there."""
    return Stages(
        parameter=parameter,
        current=current if isinstance(current, int) else None,
        largest=None,
        reason="the scheduler takes fewer versions instead of failing, so no count is the largest"
        if chosen
        else "the source alone does not say how many versions are kept",
        versions=tuple(found for kernel in kernels for found in versions_of(kernel)),
    )


def versions_of(kernel: Kernel) -> tuple[Versions, ...]:
    """Return how many versions a scheduler chose of each buffer that it could multiply."""
    if kernel.stage_rule is not StageRule.CHOSEN:
        return ()
    return tuple(
        Versions(buffer=buffer.name, asked=buffer.stages, chosen=buffer.copies)
        for buffer in kernel.buffers
        if buffer.stages is not None
    )


def _none(parameter: str | None, current: int | None, reason: str) -> Stages:
    return Stages(parameter=parameter, current=current, largest=None, reason=reason)


class _StopError(Exception):
    """The search cannot go on; the message says why."""


class _Search:
    """One search; remembers what it lowered."""

    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        parameter: str,
        current: int,
        params: Mapping[str, Any],
        read: Reader,
        judge: Judge,
    ) -> None:
        self.parameter, self.current, self.params = parameter, current, params
        self.read, self.judge = read, judge
        self.kernels = kernels
        self.seen: dict[int, tuple[bool, int | None, int | None]] = {}
        self.lowered = {current: kernels}
        self.per_stage = _stage_bytes(kernels, current)

    def run(self) -> Stages:
        try:
            return self._run()
        except _StopError as stop:
            return _none(self.parameter, self.current, str(stop))

    def _run(self) -> Stages:
        self.seen[self.current] = self._outcome(self.kernels, self.current)
        guess = self._guess()
        if self._try(guess)[0]:
            self._try(guess + 1)
        elif guess > 1:
            self._try(guess - 1)
        step = 2
        while True:
            low = max((s for s, (fits, _, _) in self.seen.items() if fits), default=0)
            high = min((s for s in self.seen if s > low), default=None)
            if high == low + 1:
                break
            if low > MOST_STAGES:
                raise _StopError(f"{low} stages fit; larger counts were not compiled")
            self._no_effect(low)
            self._try(min(low + step, MOST_STAGES + 1) if high is None else (low + high) // 2)
            step *= 2
        if low == 0:
            raise _StopError(f"it does not fit even with {self.parameter}=1")
        return Stages(
            parameter=self.parameter,
            current=self.current,
            largest=low,
            largest_bytes=self.seen[low][1],
            next_bytes=self.seen[high][1],
        )

    def _guess(self) -> int:
        """Where to look first: as many stages as the bytes of one would allow."""
        fits, total, limit = self.seen[self.current]
        if self.per_stage == 0 or total is None or limit is None:
            return self.current
        if fits != (total <= limit) or (fits and self.current > MOST_STAGES):
            return self.current
        return max(1, min(MOST_STAGES, self.current + (limit - total) // self.per_stage))

    def _no_effect(self, stages: int) -> None:
        """Stop if this count and the one before it both fit in the same bytes."""
        fits, total, _ = self.seen.get(stages, (False, None, None))
        before_fits, before, _ = self.seen.get(stages - 1, (False, None, None))
        if fits and before_fits and total == before:
            size = "" if total is None else f" ({total:,} B at {stages - 1} and at {stages})"
            raise _StopError(f"{self.parameter} does not change the bytes of this kernel{size}")

    def _try(self, stages: int) -> tuple[bool, int | None, int | None]:
        if stages not in self.seen:
            if len(self.seen) >= _MOST_LOWERINGS:
                raise _StopError(f"not found within {_MOST_LOWERINGS} lowerings")
            try:
                kernels = self.read({**self.params, self.parameter: stages})
            except TilefitError as error:
                raise _StopError(f"{self.parameter}={stages} was refused: {error}") from None
            for other, before in self.lowered.items():
                if same_code(kernels, before):
                    few, more = sorted((other, stages))
                    raise _StopError(
                        f"{self.parameter} does nothing here: the compiler makes the same code "
                        f"at {few} and at {more}"
                    )
            self.lowered[stages] = kernels
            self.seen[stages] = self._outcome(kernels, stages)
        return self.seen[stages]

    def _outcome(
        self, kernels: tuple[Kernel, ...], stages: int
    ) -> tuple[bool, int | None, int | None]:
        """Return whether all functions fit, and the fullest shared memory with its limit.

        A launch limit counts when it is broken; one that is open (a symbolic grid) does not
        depend on the stages.
        """
        verdicts = [self.judge(kernel) for kernel in kernels]
        memories = [check for verdict in verdicts for check in verdict.memories]
        limits = [check for verdict in verdicts for check in verdict.limits]
        unbuilt = next((check for check in limits if check.status is Status.CANNOT_BUILD), None)
        if unbuilt is not None:
            raise _StopError(f"{self.parameter}={stages} cannot be built: {unbuilt.reason}")
        fits = all(check.status is not Status.DOES_NOT_FIT for check in (*memories, *limits))
        depending = [*memories, *(check for check in limits if check.name is LaunchLimit.BLOCKS)]
        unknown = next((check for check in depending if check.status is Status.UNKNOWN), None)
        if fits and unknown is not None:
            raise _StopError(f"unknown at {self.parameter}={stages}: {unknown.reason}")
        full = fullest(check for check in memories if check.name in _RINGED)
        if full is None or not isinstance(full.value, int):
            return fits, None, None
        return fits, full.value, full.limit


def _stage_bytes(kernels: tuple[Kernel, ...], current: int) -> int:
    """Return what one more stage would add if every multiplied buffer grew by one copy."""
    sizes = [
        sum(
            buffer.bytes // buffer.copies
            for buffer in kernel.buffers
            if buffer.memory in STAGING and buffer.bytes and buffer.copies
            if buffer.copies % current == 0 and buffer.why
        )
        or sum((ring.bytes or 0) // current for ring in rings((kernel,), current))
        for kernel in kernels
    ]
    return max(sizes, default=0)
