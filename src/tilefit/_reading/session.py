"""One user file, executed in a child process: its kernels, lowered on request."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tilefit._frontends.protocol import Ran, Unbuilt
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._reading.child import Child, Limits

__all__ = ["Child", "Limits", "Session"]


class Session:
    """One user file, executed for as long as the session is open."""

    def __init__(
        self,
        path: Path,
        *,
        frontend: str = "tilelang",
        python: str = sys.executable,
        limits: Limits | None = None,
        child: Child | None = None,
    ) -> None:
        """Start a child, or use one that is there and leave it open at the end."""
        self.path = path
        self._own = child is None
        self.child = child or Child(frontend=frontend, python=python, limits=limits)
        self.limits = self.child.limits
        self.listings: tuple[Listing, ...] = ()
        self.toolchain = ""
        self.version = ""

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that the last answer, or the last failure, depends on."""
        return self.child.files

    @property
    def absent(self) -> tuple[str, ...]:
        """Files that are not there and whose coming would change it."""
        return self.child.absent

    def load(self, device_facts: Mapping[str, Any] | None = None) -> tuple[Listing, ...]:
        """Execute the file and return the kernels that it offers.

        Called again, the file is executed again in a fresh process.

        Args:
            device_facts: The device that user code is told of (see `_devices.facts.facts_of`);
                without it, code that asks for a device finds none.

        Raises:
            ToolchainError: The toolchain is not installed.
            KernelError: The file raised.
            WorkerError: It hung, crashed or used too much.
        """
        facts = None if device_facts is None else dict(device_facts)
        self._execute({"op": "load", "file": str(self.path), "device": facts})
        return self.listings

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Run the file's own main, compiling nothing, and return the kernels that it compiled.

        Main is ended in time for an answer; what it compiled until then counts. Called again, as
        for another device, the file runs again in a fresh process.

        Args:
            device_facts: The device that user code is told of (see `_devices.facts.facts_of`).

        Raises:
            ToolchainError: The toolchain is not installed.
            WorkerError: It crashed or used too much.
        """
        answer = self._execute(
            {
                **{"op": "run", "file": str(self.path), "device": dict(device_facts)},
                # the clock is the machine's: the worker may still have to import its toolchain
                "deadline": time.monotonic() + self.limits.seconds,
            }
        )
        return Ran(
            kernels=self.listings,
            unbuilt=tuple(Unbuilt(**item) for item in answer["unbuilt"]),
            ended=answer["ended"],
            stubbed=tuple(answer["stubbed"]),
        )

    def _execute(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self.child.execute(self.path.name, request)
        self.toolchain, self.version = answer["toolchain"], answer["version"]
        self.listings = tuple(Listing.from_dict(item) for item in answer["kernels"])
        return answer

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Build and lower one kernel; see `frontends._protocol.Source.read`.

        Raises:
            InputError: No such kernel or parameter, or one is missing.
            RefusedError: The compiler refused it for this target.
            KernelError: The user's code raised.
            WorkerError: It hung, crashed or used too much.
        """
        texts = {name: repr(value) for name, value in params.items()}
        answer = self.child.ask(
            {
                **{"op": "read", "kernel": kernel, "params": texts, "target": target},
                **{"pass_configs": dict(pass_configs or {}), "want_build": want_build},
            }
        )
        return tuple(Kernel.from_dict(item) for item in answer["kernels"])

    def close(self) -> None:
        """End the child and everything that it started, unless it was lent."""
        if self._own:
            self.child.close()
