"""A kernel object of the running process, read there or, where it asks for a device, in a fork."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tilefit._errors import InputError, KernelError, TilefitError, WorkerError
from tilefit._frontends.protocol import Compiling
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.request import Request
from tilefit._reading.said import LASTING, Said, error_of


class InProcess:
    """One kernel object: a PrimFunc, a jit object, or any callable that gives one.

    A factory that asks which device there is must be told of the one that is asked about, not of
    the one that happens to be attached, and its process must not be told for good: it is called
    in a fork then, with stand-ins that answer for that device.
    """

    def __init__(
        self, frontend: Compiling, kernel: Any, stand_ins: Sequence[Mapping[str, Any]]
    ) -> None:
        """Wrap it.

        Args:
            frontend: What reads it.
            kernel: The object.
            stand_ins: Devices, of each target the first, that a fork may be told of.

        Raises:
            InputError: It is no kernel of this frontend.
        """
        self._frontend, self._kernel, self._stand_ins = frontend, kernel, tuple(stand_ins)
        self._plain = frontend.wrap(kernel)
        self._asks = _a_device_is_attached()
        self.path = self._plain.path
        self.listing = self._plain.kernels()[0]

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Return the kernel for a target; see `Source.read`.

        Raises:
            WorkerError: The fork ended without an answer.
        """
        plain: KernelError | None = None
        if not self._asks:
            try:
                return self._plain.read(request)
            except KernelError as error:
                plain = error
        facts = next((o for o in self._stand_ins if o.get("target") == request.target), None)
        if facts is None:
            if plain is not None:
                raise plain
            return self._plain.read(request)
        try:
            kernels = self._in_fork(request, facts)
        except (KernelError, WorkerError) as error:
            raise plain or error from error
        self._asks = True
        return kernels

    def _in_fork(self, request: Request, facts: Mapping[str, Any]) -> tuple[Kernel, ...]:
        self._frontend.prepare_run()
        read_fd, write_fd = os.pipe()
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            pid = os.fork()  # of a process with threads, it warns; the fork only builds and lowers
        if pid == 0:
            os.close(read_fd)
            self._answer(request, facts, write_fd)
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as answers:
            text = answers.read()
        os.waitpid(pid, 0)
        if not text.endswith(b"\n"):
            raise WorkerError(f"{self.listing.name}: its fork ended without an answer")
        answer = json.loads(text)
        if "failed" in answer:
            raise error_of(*answer["failed"])
        return tuple(Kernel.from_dict(item) for item in answer["kernels"])

    def _answer(self, request: Request, facts: Mapping[str, Any], write_fd: int) -> NoReturn:
        """In the fork: read the kernel, and end without what the process would do at its end."""
        try:
            try:
                source = self._frontend.wrap(self._kernel, facts)
                content: Any = {"kernels": [one.to_dict() for one in source.read(request)]}
            except TilefitError as error:
                kind = Said.INPUT if isinstance(error, InputError) else Said.KERNEL
                said = LASTING.get(type(error), kind)
                content = {"failed": [said, str(error), error.cause]}
            data = json.dumps(content).encode() + b"\n"
            while data:
                data = data[os.write(write_fd, data) :]
        finally:
            os._exit(0)


def _a_device_is_attached() -> bool:
    """Say whether torch, where it is in use, has a device to answer with."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return bool(cuda is not None and cuda.is_available())
