"""What one set of parameters came to: lowered, placed, judged."""

from __future__ import annotations

from collections.abc import Callable

from tilefit._errors import TilefitError
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._planning.report import Outcome
from tilefit._verdict.judge import Status, Verdict, fullest, worst

Judge = Callable[[Kernel], Verdict]


def outcome_of(read: Callable[[], tuple[Kernel, ...]], judge: Judge) -> Outcome:
    """Lower by ``read`` and judge; a refusal is an outcome too."""
    try:
        kernels = read()
    except TilefitError as error:
        return Outcome(status=Status.CANNOT_LOWER, reason=str(error))
    return judged(kernels, judge)


def judged(kernels: tuple[Kernel, ...], judge: Judge) -> Outcome:
    """Judge device functions that are already lowered."""
    verdicts = [judge(kernel) for kernel in kernels]
    status = worst(v.status for v in verdicts)
    checks = [check for verdict in verdicts for check in verdict.memories]
    tiles = [c for c in checks if c.name != Memory.TENSOR]
    full = fullest(tiles)
    known = all(isinstance(c.value, int) for c in tiles)
    total = full.value if full is not None and isinstance(full.value, int) else None
    return Outcome(
        status=status,
        reason=next((v.reason for v in verdicts if v.status is status and v.reason), None),
        total_bytes=total if known else None,
        limit_bytes=None if full is None else full.limit,
        memory=None if full is None else full.name,
        memories_fit=all(c.status is Status.FITS for c in checks),
        totals=_totals(kernels),
        kernels=kernels,
    )


def same_code(some: tuple[Kernel, ...], others: tuple[Kernel, ...]) -> bool:
    """Say whether the compiler made the same of both: one code, launched alike."""
    made = [[(k.code, k.launch, k.memories) for k in kernels] for kernels in (some, others)]
    return made[0] == made[1] and bool(some) and all(k.code is not None for k in some)


def _totals(kernels: tuple[Kernel, ...]) -> tuple[tuple[Memory, int | None], ...]:
    """Return the bytes of each memory; of several device functions, the most."""
    uses = [use for kernel in kernels for use in kernel.memories]
    by_memory = [(m, [use.total_bytes for use in uses if use.memory is m]) for m in Memory]
    return tuple(
        (memory, None if None in found else max(n for n in found if n is not None))
        for memory, found in by_memory
        if found
    )
