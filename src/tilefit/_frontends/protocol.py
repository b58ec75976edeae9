"""What a frontend offers. It runs inside the child process, beside the user's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.toolchain import Toolchain

COMPILED_NOTHING = "ran to its end and compiled nothing"


def stood_in_for(packages: Sequence[str]) -> str:
    """Say that packages were missing and what was done about it."""
    return f"not installed, stood in for: {', '.join(packages)}"


class Source(Protocol):
    """A user's file after it was executed."""

    def kernels(self) -> tuple[Listing, ...]:
        """List the kernels that the file offers."""
        ...

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Build one kernel with these parameters and lower it for a target.

        Args:
            kernel: Its name.
            params: Its parameters.
            target: As the toolchain names it.
            pass_configs: Compiler options on top of the author's own.
            want_build: Whether what it takes to assemble it is wanted.

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
        refused: True if its author says that it is for another device.
        reason: Why, in one line.
    """

    kernel: str
    refused: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What running a file's main showed.

    Attributes:
        kernels: The kernels that it compiled; where it compiled none, those of the file that
            need no value.
        unbuilt: Kernels that it asked for and that could not be built.
        ended: What ended main early, in one line; None if it came to its end.
        stubbed: Packages that are not installed and were stood in for.
    """

    kernels: tuple[Listing, ...]
    unbuilt: tuple[Unbuilt, ...]
    ended: str | None
    stubbed: tuple[str, ...]

    @property
    def seen(self) -> int:
        """How many kernels there are to account for: planned, refused or failed."""
        return len(self.kernels) + len(self.unbuilt)

    @property
    def broke_off(self) -> str | None:
        """What ended main before its end, in one line; None if it came to its end."""
        whole = self.ended is None or self.ended.endswith(COMPILED_NOTHING)
        return None if whole else self.ended

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


class Frontend(Protocol):
    """One toolchain.

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
        """Execute the user's file.

        Args:
            path: The file.
            device_facts: The device that user code is told of (see `_devices.facts.facts_of`);
                None leaves the process as it is, so that code which asks for one fails.

        Raises:
            KernelError: The file raised; the message names its line.
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
