"""What a child says went wrong: the kinds of failure that travel on its pipe."""

from __future__ import annotations

from enum import StrEnum

from tilefit._errors import (
    Cause,
    InputError,
    KernelError,
    RefusedError,
    TilefitError,
    ToolchainError,
)


class Said(StrEnum):
    """One kind of failure."""

    TOOLCHAIN = "toolchain"
    REFUSED = "cannot-lower"
    INPUT = "input"
    KERNEL = "kernel"
    DIED = "died"  # the process of a file ended without an answer


_ERRORS: dict[Said, type[TilefitError]] = {
    Said.TOOLCHAIN: ToolchainError,
    Said.REFUSED: RefusedError,
    Said.INPUT: InputError,
    Said.KERNEL: KernelError,
}
# those that come again if the same is asked of the same files
LASTING = {RefusedError: Said.REFUSED, KernelError: Said.KERNEL}


def error_of(said: str, message: str, cause: str | None = None) -> TilefitError:
    """Return the error that a failure is raised as."""
    return _ERRORS[Said(said)](message, cause=None if cause is None else Cause(cause))
