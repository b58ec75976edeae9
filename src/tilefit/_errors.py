"""The errors that tilefit raises, each with a one-line message fit to show a user.

Tree::

    TilefitError
    ├── InputError          a value that the caller gave is wrong
    │   ├── UnknownNameError   a name that is in no list, with near misses
    │   └── InterpreterError   the interpreter that was named cannot be run
    ├── ToolchainError      a toolchain is missing or is not the right one
    ├── WorkerError         the child process ended, hung or grew too large
    ├── KernelError         the user's file or kernel raised while being read
    └── RefusedError        the compiler refused the kernel for this target

The command line prints ``str(error)`` on one line and exits with 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Cause(StrEnum):
    """Why a kernel was not read, where others act on it."""

    NEEDS_VALUE = "needs-value"  # a parameter has no default and was not given
    OTHER_DEVICE = "other-device"  # its author made it for another chip
    CHIP_LACKS = "chip-lacks"  # it uses what the chip does not have
    NOT_SHOWN = "not-shown"  # the source alone does not show how it is made


class TilefitError(Exception):
    """Base of every error that tilefit raises on purpose; the message is one line.

    Attributes:
        cause: Why, where others act on it; None for all that the message alone says.
    """

    def __init__(self, message: str = "", *, cause: Cause | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class InputError(TilefitError):
    """A value that the caller gave is wrong; the message names it and what would be right."""


class UnknownNameError(InputError):
    """A name that is in no list.

    Attributes:
        kind: What the name should have been, for example ``"device"``.
        name: The name as given.
        near: The known names closest to it, best first (may be empty).
    """

    def __init__(self, kind: str, name: str, choices: Iterable[str], hint: str = "") -> None:
        self.kind = kind
        self.name = name
        known = sorted(set(choices))
        self.near = near_misses(name, known)
        if self.near:
            rest = f"did you mean {' or '.join(self.near)}?"
        elif known and len(known) <= 12:
            rest = f"known: {', '.join(known)}"
        else:
            rest = ""
        words = f"unknown {kind} {name!r}"
        for part in (rest, hint):
            if part:
                words += f"{' ' if words.endswith('?') else '; '}{part}"
        super().__init__(words)


class InterpreterError(InputError):
    """The interpreter that was named cannot be run."""


class ToolchainError(TilefitError):
    """A toolchain is missing, or its version cannot do what was asked."""


class WorkerError(TilefitError):
    """The child process that runs user code ended early, hung or grew past its limits."""


class KernelError(TilefitError):
    """The user's file or kernel factory raised while it was being read."""


class RefusedError(TilefitError):
    """The compiler refused the kernel for this target; the message is its reason."""


def near_misses(name: str, choices: Iterable[str], count: int = 3) -> list[str]:
    """Return up to ``count`` of ``choices`` that look like ``name``, best first."""
    import difflib  # costs 5 ms: only on the way to an error

    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(name.casefold(), folded, n=count, cutoff=0.6)
    return [folded[c] for c in close]
