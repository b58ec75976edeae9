"""What a frontend offers. It runs inside the child process, beside the user's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tilefit._errors import Cause
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.request import Request
from tilefit._kernel.toolchain import Toolchain


def stood_in_for(packages: Sequence[str]) -> str:
    """Say that packages were missing and what was done about it."""
    return f"not installed, stood in for: {', '.join(packages)}"


class Source(Protocol):
    """A user's file after it was read, or one kernel object."""

    path: Path

    def kernels(self) -> tuple[Listing, ...]:
        """List the kernels that the file offers."""
        ...

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Build one kernel and lower it for a target.

        Raises:
            InputError: No such kernel or parameter, or one is missing.
            KernelError: The user's code raised.
            RefusedError: The compiler refused it.
        """
        ...


OTHER_PYTHON = "TILEFIT_PYTHON"
"""Environment variable of a child whose interpreter is not its parent's: what the user named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbuilt:
    """A kernel that a file's main asked for and that could not be built.

    Attributes:
        kernel: Its name.
        cause: Why, where others act on it.
        reason: Why, in one line.
        needs: Names of the parameters that it has no value for, where that is why.
    """

    kernel: str
    reason: str
    cause: Cause | None = None
    needs: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether its author says that it is for another device."""
        return self.cause is Cause.OTHER_DEVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What running a file's main showed.

    Attributes:
        kernels: The kernels that it compiled; where it compiled none, those of the file that
            need no value.
        unbuilt: Kernels that it asked for and that could not be built.
        ended: What ended main early, in one line; None if it came to its end.
        stubbed: Packages that are not installed and were stood in for.
        notes: What else was done for it to run, one line each.
        compiled_nothing: Whether main came to its end, and that it compiled nothing is all that
            `ended` says.
    """

    kernels: tuple[Listing, ...]
    unbuilt: tuple[Unbuilt, ...]
    ended: str | None
    stubbed: tuple[str, ...]
    notes: tuple[str, ...] = ()
    compiled_nothing: bool = False

    @property
    def seen(self) -> int:
        """How many kernels there are to account for: planned, refused or failed."""
        return len(self.kernels) + len(self.unbuilt)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ran:
        """Rebuild it from JSON."""
        return cls(
            kernels=tuple(Listing.from_dict(item) for item in data["kernels"]),
            unbuilt=tuple(
                Unbuilt(
                    **{
                        **one,
                        "cause": one["cause"] and Cause(one["cause"]),
                        "needs": tuple(one["needs"]),
                    }
                )
                for one in data["unbuilt"]
            ),
            ended=data["ended"],
            stubbed=tuple(data["stubbed"]),
            notes=tuple(data["notes"]),
            compiled_nothing=data["compiled_nothing"],
        )

    @property
    def broke_off(self) -> str | None:
        """What ended main before its end, in one line; None if it came to its end."""
        return None if self.compiled_nothing else self.ended

    @property
    def failures(self) -> tuple[str, ...]:
        """What went wrong, one line each: kernels that were not built, and what ended main."""
        lines = [f"{one.kernel}: {one.reason}" for one in self.unbuilt]
        return (*lines, *([self.ended] if self.ended else []))


class Run(Source, Protocol):
    """A user's file whose main was run with compilation intercepted.

    Its kernels are those that main compiled, also before something ended it.
    """

    @property
    def unbuilt(self) -> tuple[Unbuilt, ...]:
        """Kernels that could not be built: they were seen and have no plan."""
        ...

    @property
    def ended(self) -> str | None:
        """What ended main early, in one line; None if it came to its end."""
        ...

    @property
    def stubbed(self) -> tuple[str, ...]:
        """Packages that are not installed and were stood in for."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What else was done for it to run, one line each."""
        ...

    @property
    def compiled_nothing(self) -> bool:
        """Whether main came to its end and compiled nothing."""
        ...


class Frontend(Protocol):
    """One toolchain, or one way to read its kernels.

    Attributes:
        toolchain: What it can do.
        name: The name of it.
    """

    toolchain: Toolchain
    name: str

    def version(self) -> str:
        """Import the toolchain and return its version.

        Raises:
            ToolchainError: It is not installed or not usable.
        """
        ...

    def load(self, path: Path, device_facts: Mapping[str, Any] | None = None) -> Source:
        """Read a user's file: execute it, if this frontend compiles, in the process that asks.

        Args:
            path: The file.
            device_facts: The device that user code is told of (see `_devices.facts.facts_of`);
                None leaves the process as it is, so that code which asks for one fails.

        Raises:
            InputError: It cannot be read.
            KernelError: The file raised; the message names its line.
        """
        ...


class Compiling(Frontend, Protocol):
    """A frontend whose toolchain compiles: what it executes runs in the child process."""

    def wrap(self, kernel: Any, device_facts: Mapping[str, Any] | None = None) -> Source:
        """Return a source that offers one kernel object of the running process.

        Args:
            kernel: The object.
            device_facts: The device that user code is told of, for good: in a fork; None leaves
                the process as it is.

        Raises:
            InputError: It is no kernel of this toolchain.
        """
        ...

    def prepare_run(self) -> None:
        """Import what `run` needs, once, before the process forks."""
        ...

    def run(self, path: Path, device_facts: Mapping[str, Any], seconds: float) -> Run:
        """Run the user's file as ``python FILE`` would, compiling nothing.

        Args:
            path: The file.
            device_facts: The device that user code is told of.
            seconds: Time after which main is ended; what it compiled until then counts.
        """
        ...
