"""The Ascend section of docs/accuracy.md: naive formula, estimate and plan against the source.

    python -m benchmarks.accuracy --only ascend

The truth of a device function is read by `tests.ascend_truth` from the source that TileLang
generates for Ascend 950: the highest address that it uses in L1, L0A, L0B and L0C. UB is what the
function asks for at its launch. `plan` reads neither: it takes both from the compiler's passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod

from tests import ascend_truth
from tests.ascend_corpus import MEMORIES, accepted, read
from tests.opened import ask
from tilefit._devices.names import Device, device
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.dtype import parse_dtype
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import round_up
from tilefit._placement.ascend_compare import arena_differs
from tilefit._verdict.ascend import limit_of

TITLE = "## Ascend"
# what TileLang rounds the end of a memory with several buffers up to
_END_BYTES = 32
_METHODS = ("naive formula", "estimate", "plan")


@dataclass(frozen=True)
class Figure:
    """One memory of one device function.

    Attributes:
        memory: Which one.
        truth_bytes: What the generated source needs.
        limit_bytes: What the chip lets this kernel use.
        by_method: What each of `_METHODS` says; None where it says that it does not know.
        packer: Whether our own packer gives every offset and the total; None if it would share
            more than the compiler does.
    """

    memory: str
    truth_bytes: int
    limit_bytes: int
    by_method: tuple[int | None, ...]
    packer: bool | None


def section() -> list[str]:
    """Return the lines of the section."""
    figures = collect()
    kernels = len({(case.file, case.kernel) for case in accepted()})
    functions = len(accepted())
    lines = [
        TITLE,
        "",
        f"{kernels} kernels of `tests/kernels/ascend` in {functions} sizes, lowered by TileLang's "
        "Ascend backend for Ascend 950, nothing launched. Truth: the highest address that the "
        "generated source uses, and for UB what the launch asks for. Some of the kernels are there "
        "because the compiler accepts what no chip has.",
        "",
        "- naive formula: elements x bits / 8 of each declared buffer, x num_stages if a pipelined "
        "loop touches it;",
        "- estimate: `plan --estimate`, which reads the source alone;",
        "- plan: `plan`, which asks the compiler.",
        "",
        "Each cell: equal / above / below the truth.",
        "",
        "| memory | functions | " + " | ".join(_METHODS) + " |",
        "|---|---|" + "---|" * len(_METHODS),
    ]
    lines += [_row(memory, figures) for memory in MEMORIES]
    lines += [
        "",
        "Verdicts of one memory that come out wrong, of "
        f"{len(figures)}, {sum(f.truth_bytes > f.limit_bytes for f in figures)} of them over the "
        "limit:",
        "",
        "| | " + " | ".join(_METHODS) + " |",
        "|---|" + "---|" * len(_METHODS),
        _verdicts("false fits", figures, lambda said, f: said <= f.limit_bytes < f.truth_bytes),
        _verdicts(
            "false rejections", figures, lambda said, f: f.truth_bytes <= f.limit_bytes < said
        ),
        "",
        _packer(figures),
    ]
    return lines


def collect() -> list[Figure]:
    """Lower every accepted case and hold the three methods against its source."""
    chip = device("ascend-950")
    found: list[Figure] = []
    for case in accepted():
        lowered = read(case)
        if lowered.source is None:  # laid out, and then no code: there is no truth
            continue
        estimates = SourceFrontend().load(case.path).read(ask(case.kernel, case.params, "ascend"))
        for kernel, estimate in zip(lowered.kernels, estimates, strict=True):
            truth = ascend_truth.totals(lowered.source, kernel.function)
            truth["ub"] = lowered.ub_bytes[kernel.function]
            found += _figures(kernel, estimate, truth, chip)
    return found


def _figures(
    kernel: Kernel, estimate: Kernel, truth: dict[str, int], chip: Device
) -> Iterable[Figure]:
    arenas = {str(a.memory): a for a in kernel.memories}
    for memory in MEMORIES:
        if not truth.get(memory):
            continue
        several = sum(b.memory == memory and b.copies != 0 for b in kernel.buffers) > 1
        end = truth[memory]
        yield Figure(
            memory=memory,
            truth_bytes=round_up(end, _END_BYTES) if several else end,
            limit_bytes=limit_of(kernel, Memory(memory), chip).bytes,
            by_method=(
                naive(kernel, memory),
                _total(estimate, memory),
                _total(kernel, memory),
            ),
            packer=_packed(arena_differs(kernel, arenas[memory])),
        )


def naive(kernel: Kernel, memory: str) -> int:
    """Return elements x bits / 8 x num_stages of what the author declared in a memory."""
    total = 0
    for buffer in kernel.buffers:
        if buffer.memory == memory and buffer.origin == "source":
            stages = [loop.num_stages or 1 for loop in kernel.loops if buffer.name in loop.buffers]
            total += _one_copy(buffer) * max(stages, default=1)
    return total


def _one_copy(buffer: Buffer) -> int:
    return parse_dtype(buffer.dtype).nbytes(prod(int(extent) for extent in buffer.shape))


def _total(kernel: Kernel, memory: str) -> int | None:
    return next((a.total_bytes for a in kernel.memories if a.memory == memory), 0)


def _packed(differs: str | None) -> bool | None:
    if differs is None:
        return True
    return None if "never live together" in differs else False


# ---- the lines -------------------------------------------------------------------------------


def _row(memory: str, figures: list[Figure]) -> str:
    mine = [f for f in figures if f.memory == memory]
    cells = []
    for number in range(len(_METHODS)):
        said = [(f.by_method[number], f.truth_bytes) for f in mine]
        known = [(value, truth) for value, truth in said if value is not None]
        equal = sum(value == truth for value, truth in known)
        above = sum(value > truth for value, truth in known)
        below = sum(value < truth for value, truth in known)
        unknown = f" ({len(said) - len(known)} unknown)" if len(known) < len(said) else ""
        cells.append(f"{equal} / {above} / {below}{unknown}")
    return f"| {memory.upper()} | {len(mine)} | {' | '.join(cells)} |"


def _verdicts(name: str, figures: list[Figure], wrong: Callable[[int, Figure], bool]) -> str:
    counts = [
        sum(said is not None and wrong(said, f) for f in figures for said in [f.by_method[number]])
        for number in range(len(_METHODS))
    ]
    return f"| {name} | {' | '.join(str(count) for count in counts)} |"


def _packer(figures: list[Figure]) -> str:
    agrees = sum(f.packer is True for f in figures)
    shares = sum(f.packer is None for f in figures)
    other = len(figures) - agrees - shares
    return (
        "Our own packer, which knows the rules and not the compiler, gives the sizes, offsets and "
        f"totals of {agrees} of {len(figures)} memories; in {shares} more it finds tiles that are "
        f"never live together and that the compiler keeps apart; in {other} it comes to something "
        "else."
    )
