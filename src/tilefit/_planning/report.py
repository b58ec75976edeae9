"""Finished answers: the only thing a renderer sees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tilefit._errors import Cause
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Evidence, Memory, weakest
from tilefit._placement.account import Row
from tilefit._placement.place import MemoryPlan
from tilefit._verdict.judge import Check, Status, fullest, worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """How many versions of a buffer the compiler chose, of how many that were asked for.

    Attributes:
        buffer: Its name.
        asked: The ``num_stages`` of the loop that decides it.
        chosen: The versions that it has; None if its bytes are no whole multiple.
    """

    buffer: str
    asked: int
    chosen: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """How many stages fit.

    Attributes:
        parameter: The kernel parameter that sets them; None if there is none.
        current: Its value in this plan.
        largest: The largest value compiled as fits, the next compiled as not; None with `reason`.
        next_bytes: Launch total of ``largest + 1``.
        largest_bytes: Launch total of ``largest``.
        reason: Why `largest` is None.
        versions: What the compiler made of the stages, where it is free to take fewer.
    """

    parameter: str | None
    current: int | None
    largest: int | None
    largest_bytes: int | None = None
    next_bytes: int | None = None
    reason: str | None = None
    versions: tuple[Versions, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one lowering on one device.

    Attributes:
        status: The worst verdict of its device functions.
        reason: Why, where it does not simply fit.
        total_bytes: Shared memory of one block at launch, the fullest function's; on Ascend
            the fullest memory's; None if unknown or not lowered.
        limit_bytes: What may be used of it.
        memory: Which memory that is.
        memories_fit: Whether every memory fits, whatever the launch limits say.
        totals: Bytes of each memory that is used, of several device functions the most; None if
            one of them is unknown.
        kernels: The device functions; empty if it could not be lowered.
    """

    status: Status
    reason: str | None
    total_bytes: int | None = None
    limit_bytes: int | None = None
    memory: str | None = None
    memories_fit: bool = False
    totals: tuple[tuple[Memory, int | None], ...] = ()
    kernels: tuple[Kernel, ...] = ()

    @property
    def margin_bytes(self) -> int | None:
        """What is left of that memory; negative if it does not fit, None if unknown."""
        if self.total_bytes is None or self.limit_bytes is None:
            return None
        return self.limit_bytes - self.total_bytes

    @property
    def spill_bytes(self) -> int | None:
        """The most bytes that a thread spills; None unless assembled."""
        made = (kernel.assembled for kernel in self.kernels)
        return max((one.spill_bytes for one in made if one is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """How many blocks one core can hold at once.

    Attributes:
        blocks: The number; an upper bound while registers are unknown; None if the rule does not
            cover the device or the kernel does not fit.
        exact: Whether registers were counted.
        limiters: What holds it to that number, all that tie.
        by_shared: What shared memory alone allows.
        by_registers: What registers alone allow; None if unknown.
        core: What a core is called on the device: SM, CU, WGP.
    """

    blocks: int | None
    exact: bool
    limiters: tuple[str, ...]
    by_shared: int | None
    by_registers: int | None
    core: str = "SM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How often the cores of an Ascend chip take a block until the grid is done.

    Attributes:
        rounds: The number; None with `reason`.
        blocks: Blocks of the grid; None if that is symbolic.
        cores: Cores that take one block each; None if only the architecture was named, or if
            the source does not say which ones.
        core: What they are: AIC for blocks that use the cube, AIV for others.
        reason: Why `rounds` is None, with what would tell.
    """

    rounds: int | None
    blocks: int | None
    cores: int | None
    core: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """One value of the ladder.

    Attributes:
        value: The parameter's value.
        outcome: What it came to.
        in_flight_bytes: Bytes of pipelined copies of one block; None where that is not known.
        residency: Blocks of one core, the fewest of its device functions.
        same_as: An earlier value of which the compiler made the same code; None without one.
    """

    value: int
    outcome: Outcome
    in_flight_bytes: int | None
    residency: Residency | None = None
    same_as: int | None = None

    @property
    def in_flight_bytes_per_core(self) -> int | None:
        """The same of all blocks of one core, as exact as their number; None if that is unknown."""
        held = self.residency
        if held is None or held.blocks is None or self.in_flight_bytes is None:
            return None
        return held.blocks * self.in_flight_bytes


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of some parameters and pass configs.

    Attributes:
        cost: By the table in `tilefit._planning.suggest`.
        params: The parameters that change, with their new values.
        pass_configs: The pass configs that change.
    """

    cost: int
    params: tuple[tuple[str, int], ...] = ()
    pass_configs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What an edit loses against the kernel as it is.

    Attributes:
        blocks_per_core: Resident blocks.
        spill_bytes: Bytes that a thread spills, where they are more than before; else 0.
        tensor_cores: Whether no matrix instruction is left of those that there were.
        matrix_path: The matrix path that it loses and the slower one (``wgmma to mma``).
    """

    blocks_per_core: int = 0
    spill_bytes: int = 0
    tensor_cores: bool = False
    matrix_path: str | None = None

    @property
    def slower(self) -> bool:
        """Whether its matrix path is a slower one."""
        return self.tensor_cores or self.matrix_path is not None


@dataclass(frozen=True, slots=True)
class Tried:
    """An edit that was lowered.

    Attributes:
        edit: The edit.
        outcome: What it came to.
        residency: Blocks of one core, the fewest of its device functions.
        loss: What it loses against the device function that it is shown with.
        idle: Whether it changes nothing: the compiler made the same code.
    """

    edit: Edit
    outcome: Outcome
    residency: Residency | None = None
    loss: Loss = Loss()
    idle: bool = False

    @property
    def unsettled(self) -> bool:
        """Whether its memory fits, and something else, such as registers, is not known."""
        return self.outcome.status is Status.UNKNOWN and self.outcome.memories_fit

    @property
    def helps(self) -> bool:
        """Whether it is to be suggested: it fits, changes something and spills nothing."""
        return self.outcome.status is Status.FITS and not self.idle and not self.loss.spill_bytes


class NextStep(StrEnum):
    """What is known of the answer of a command to paste."""

    FITS = "fits"  # it was read here, and fits
    TRIES = "tries"  # it tries small edits
    LISTS = "lists"  # it lists what can be changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One device function on one device.

    Attributes:
        file: Path as the user gave it.
        kernel: The factory or kernel that was named.
        params: Its parameters, defaults included.
        device: Name of the device.
        device_title: The device as its maker spells it.
        arch: Its architecture.
        target: The toolchain's target; None if it has none for this device.
        toolchain: Name of the toolchain.
        toolchain_version: Its version.
        status: The verdict.
        reason: Why, in one line.
        lowered: The kernel as lowered; None if it could not be.
        uses: What it needs of each memory.
        memories: One check per use.
        limits: One check per launch limit.
        stages: How many stages fit.
        evidence: The weakest evidence behind the verdict.
        estimated: Whether the source alone was read, and nothing was compiled.
        by_core: Whether memories belong to cores that blocks take in rounds, not to blocks.
        rows: Every byte of shared memory; empty if an offset is unknown.
        packing_note: Where our own packer differs from the compiler; None if it agrees.
        residency: Blocks of one core; None where no rule is known.
        rounds: On Ascend: rounds of blocks; None elsewhere.
        ladder: The values that were stepped through.
        ladder_parameter: The parameter that they are of.
        tried: Edits that were lowered.
        advice: What an edit of the source could do; nothing of it was tried.
        try_next: Command to paste when it does not fit.
        next_step: What is known of its answer; None without one.
    """

    file: str
    kernel: str
    params: tuple[tuple[str, Any], ...]
    device: str
    device_title: str
    arch: str
    target: str | None
    toolchain: str
    toolchain_version: str
    status: Status
    reason: str | None
    lowered: Kernel | None
    uses: tuple[MemoryPlan, ...]
    memories: tuple[Check, ...]
    limits: tuple[Check, ...]
    stages: Stages
    evidence: Evidence
    estimated: bool = False
    by_core: bool = False
    rows: tuple[Row, ...] = ()
    packing_note: str | None = None
    residency: Residency | None = None
    rounds: Rounds | None = None
    ladder: tuple[Rung, ...] = ()
    ladder_parameter: str | None = None
    tried: tuple[Tried, ...] = ()
    advice: tuple[str, ...] = ()
    try_next: str | None = None
    next_step: NextStep | None = None

    @property
    def main(self) -> Check | None:
        """The check of the memory that tiles are staged in; on Ascend the fullest one's."""
        return fullest(self.memories)

    @property
    def tightest(self) -> Check | None:
        """The check of the memory that is fullest for its limit; one that is unknown is fuller."""
        return max(self.memories, key=_share, default=None)

    @property
    def fitting(self) -> tuple[Tried, ...]:
        """The edits to suggest, those that lose a matrix path last."""
        helping = (one for one in self.tried if one.helps)
        return tuple(sorted(helping, key=lambda one: one.loss.slower))

    @property
    def silent_overflow(self) -> bool:
        """Whether the compiler accepted more bytes of a memory than the chip has."""
        return any(check.silent for check in self.memories)


def _share(check: Check) -> float:
    if not isinstance(check.value, int) or check.limit is None:
        return float("inf")
    return check.value / check.limit if check.limit else float(bool(check.value))


@dataclass(frozen=True, slots=True)
class Failure:
    """A kernel, or a whole file, without a plan.

    Attributes:
        kernel: Its name; None for the file.
        device: The device it was asked for; None where that made no difference.
        reason: Why, in one line.
        cause: Why, where others act on it.
        needs: Names of the parameters that it has no value for, where that is why.
    """

    kernel: str | None
    device: str | None
    reason: str
    cause: Cause | None = None
    needs: tuple[str, ...] = ()

    @property
    def needs_values(self) -> bool:
        """Whether it is no failure: nobody gave the values that it needs."""
        return self.cause is Cause.NEEDS_VALUE and bool(self.needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """What became of the kernels of one file; each counts once for every device.

    Attributes:
        file: Path as shown.
        planned: Kernels with a verdict.
        refused: Kernels that the compiler refused, or that their author made for another chip.
        failures: Kernels that could not be read, each with its reason; a file that could not be
            executed is one of them, and so are kernels that need values.
        remarks: What else a reader should know, one line each.
    """

    file: str
    planned: int = 0
    refused: int = 0
    failures: tuple[Failure, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """How many kernels, or the file as one, could not be read."""
        return len(self.failures) - self.needing

    @property
    def needing(self) -> int:
        """How many kernels have no plan for want of values."""
        return sum(one.needs_values for one in self.failures)

    @property
    def seen(self) -> int:
        """How many there are to account for."""
        return self.planned + self.refused + len(self.failures)


_NAMED = 3  # results that the `repr` of a report names


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The answer of `plan`: one result per device function and device.

    Attributes:
        results: In the order of files, kernels and devices.
        files: What was seen of each file, where whole files were asked about.
    """

    results: tuple[Result, ...]
    files: tuple[FileSeen, ...] = ()

    def __repr__(self) -> str:
        """Return one line: how many results of each verdict, and the first of them by name."""
        parts = [f"{count} {status}" for status, count in self.verdicts.items() if count]
        parts += [f"{self.counts['failed']} failed"] if self.counts["failed"] else []
        counts = ", ".join(parts) or "no results"
        named = [f"{r.kernel} on {r.device} {r.status}" for r in self.results[:_NAMED]]
        more = ["..."] if self.results[_NAMED:] else []
        return f"<Report: {'; '.join([counts, *named, *more])}>"

    @property
    def varying(self) -> tuple[str, ...]:
        """Names of the parameters that are not the same in all results."""
        names = {name: None for result in self.results for name, _ in result.params}
        values = [dict(result.params) for result in self.results]
        return tuple(n for n in names if len({repr(v.get(n)) for v in values}) > 1)

    @property
    def evidence(self) -> Evidence | None:
        """The weakest evidence of all results; None without any."""
        return weakest([r.evidence for r in self.results]) if self.results else None

    @property
    def verdicts(self) -> dict[Status, int]:
        """How many results have each verdict, worst first."""
        return _counted(r.status for r in self.results)

    @property
    def kernel_verdicts(self) -> dict[Status, int]:
        """The same for each kernel, set of values and device: the worst of its device functions."""
        found: dict[tuple[str, str, str, str], Status] = {}
        for one in self.results:
            key = (one.file, one.kernel, one.device, repr(one.params))
            found[key] = worst((found.get(key, Status.FITS), one.status))
        return _counted(found.values())

    @property
    def stages_everywhere(self) -> int | None:
        """The largest stage count that fits wherever it was lowered; None if one is not known."""
        counts = [r.stages.largest for r in self.results if r.lowered is not None]
        known = [count for count in counts if count is not None]
        return min(known) if known and len(known) == len(counts) else None

    @property
    def lowered_everywhere(self) -> bool:
        """Whether every result has a kernel."""
        return all(r.lowered is not None for r in self.results)

    @property
    def counts(self) -> dict[str, int]:
        """What became of the kernels of all files, as `FileSeen` counts them."""
        names = ("seen", "planned", "refused", "failed", "needing")
        return {name: sum(getattr(seen, name) for seen in self.files) for name in names}

    @property
    def files_without_kernels(self) -> int:
        """How many files had nothing to account for."""
        return sum(not seen.seen for seen in self.files)

    @property
    def several_kernels(self) -> bool:
        """True if whole files were asked about, and there is more to tell than one kernel."""
        names = {(result.file, result.kernel) for result in self.results}
        return bool(self.files) and (len(names) != 1 or any(f.failures for f in self.files))

    @property
    def fits(self) -> bool:
        """True if every result fits."""
        return self.verdicts[Status.FITS] == len(self.results)

    @property
    def exit_code(self) -> int:
        """1 if anything does not fit, lower or build, 2 if anything is unknown, else 0.

        2 also where a kernel, or a whole file, could not be read.
        """
        statuses = {r.status for r in self.results}
        if statuses & {Status.DOES_NOT_FIT, Status.CANNOT_LOWER, Status.CANNOT_BUILD}:
            return 1
        failed = any(seen.failures for seen in self.files)
        return 2 if failed or Status.UNKNOWN in statuses else 0


def _counted(statuses: Iterable[Status]) -> dict[Status, int]:
    """Return how often each verdict of a kernel occurs, worst first, those that do not too."""
    found = list(statuses)
    return {one: found.count(one) for one in Status if one is not Status.NOT_ASKED}
