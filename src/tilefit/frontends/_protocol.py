"""What a frontend offers. It runs inside the child process, beside the user's code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tilefit._kernel import Kernel, Listing


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


class Frontend(Protocol):
    """One toolchain."""

    name: str

    def version(self) -> str:
        """Import the toolchain and return its version.

        Raises:
            ToolchainError: It is not installed or not usable.
        """
        ...

    def load(self, path: Path) -> Source:
        """Execute the user's file.

        Raises:
            KernelError: The file raised; the message names its line.
        """
        ...
