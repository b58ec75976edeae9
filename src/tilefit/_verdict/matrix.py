"""Whether the matrix instructions of a kernel exist on its target: without them it only traps."""

from __future__ import annotations

from collections.abc import Iterable

from tilefit._devices.matrix import has_matrix, where_it_is
from tilefit._kernel.kernel import Kernel
from tilefit._verdict.check import Check, LaunchLimit, Status


def matrix_checks(kernel: Kernel) -> Iterable[Check]:
    """Yield a check for a matrix instruction that the target lacks, or that came to traps.

    TileLang's templates write a trap where a target has no such instruction, and the assembler
    takes it: the kernel builds, launches, and ends there.
    """
    uses = kernel.matrix or ()
    lacking = [use for use in uses if has_matrix(kernel.target, use) is False]
    made = kernel.assembled
    reason = None
    if lacking:
        use = lacking[0]
        what = f"{use.path} on {use.dtype}" + (f" ({use.shape})" if use.shape else "")
        where = where_it_is(use, kernel.target)
        reason = f"{what} needs {where}: {kernel.target} has no such instruction"
        if kernel.target.startswith("sm_"):
            reason += ", and what is assembled for it are traps"
        if made is not None and made.traps:
            reason += f" ({made.traps:,} in its machine code)"
    elif uses and made is not None and made.traps and made.matrix_instructions == 0:
        reason = (
            f"its {uses[0].path} was assembled to {made.traps:,} traps and no matrix instruction"
        )
    if reason is not None:
        yield Check(
            name=LaunchLimit.BUILD,
            value=None,
            limit=None,
            status=Status.CANNOT_BUILD,
            reason=reason,
        )
