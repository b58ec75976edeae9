"""Opens users' files: what is asked of them is answered by the store, else by a child process.

One opener has one child at most, started at the first question that the store cannot answer. The
child executes a file once for each way in which it is asked, and lowers on request.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tilefit._errors import KernelError, TilefitError, WorkerError
from tilefit._frontends import registry
from tilefit._frontends.protocol import Ran
from tilefit._kernel.kernel import KERNEL_VERSION, Kernel, Listing
from tilefit._kernel.request import Request
from tilefit._kernel.toolchain import Toolchain
from tilefit._reading.child import Child, Limits
from tilefit._reading.from_source import Estimated
from tilefit._reading.question import question_of
from tilefit._reading.said import LASTING, error_of
from tilefit._reading.store import Store, clock

_LISTED = ("kernels",)
_RAN = ("kernels", "unbuilt", "ended", "stubbed", "notes", "compiled_nothing")


class Kernels(Protocol):
    """The kernels of one file, by whatever way they are read."""

    toolchain: Toolchain
    version: str

    @property
    def files(self) -> tuple[str, ...]:
        """What the answers so far rest on."""
        ...

    def load(self, stand_ins: Sequence[Mapping[str, Any]] = ()) -> tuple[Listing, ...]:
        """Return the kernels that the file offers.

        Args:
            stand_ins: Devices, of each target the first, of which user code is told where it
                fails without; none to let it fail.
        """
        ...

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Return the kernels that the file's own main compiles."""
        ...

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Return one kernel as it is for a target."""
        ...


class Opener(AbstractContextManager["Opener"]):
    """Opens files one after another, with one child at most, started when it is needed."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        python: str = sys.executable,
        store: Store | None = None,
        frontend: str | None = None,
        started: Callable[[Toolchain], None] | None = None,
    ) -> None:
        """Prepare to open files.

        Args:
            limits: What user code may use.
            python: Interpreter that has the toolchain.
            store: Where answers are kept; None asks the child every time.
            frontend: Name of the one that reads every file; None to recognise it by the file.
            started: Called before a child starts.
        """
        self.limits, self.python, self.store = limits or Limits(), python, store
        self._frontend, self._started = frontend, started
        self._child: Child | None = None
        self._last: Kernels | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def toolchain_of(self, path: Path) -> Toolchain:
        """Return what the toolchain can do that a file is written for.

        Raises:
            UnknownNameError: The frontend that was named is none.
        """
        text = b""
        with suppress(OSError):  # whoever reads it says why it cannot be read
            text = path.read_bytes()
        name = self._frontend or registry.recognised(text) or registry.DEFAULT
        return registry.frontend(name).toolchain

    def compiled(self, path: Path) -> OpenedFile:
        """Return a file whose kernels its toolchain compiles."""
        self._last = opened = OpenedFile(path, self.toolchain_of(path), self)
        return opened

    def estimated(
        self, path: Path, way: str, device_facts: Mapping[str, Any] | None = None
    ) -> Estimated:
        """Return a file of which the source alone is read; see `Estimated`."""
        self._last = opened = Estimated(path, way, device_facts)
        return opened

    @property
    def files(self) -> tuple[str, ...]:
        """What the file that was opened last depends on, as far as it was executed or read."""
        return self._last.files if self._last is not None else ()

    def stop(self) -> None:
        """From another thread: end the child at once, and start no other."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child.stop()

    def interrupt(self) -> None:
        """From another thread: end what the child executes now; it answers the next question."""
        with self._lock:
            if self._child is not None:
                self._child.interrupt()

    def child(self, toolchain: Toolchain) -> Child:
        """Return a child that has a toolchain, with no file in it; another one ends."""
        where = registry.reference(toolchain.name)
        if self._child is not None and self._child.alive:
            self._child.finish()  # the file before may have killed its worker, and been answered
        with self._lock:
            if self._stopped:
                raise WorkerError("stopped")
            kept = self._child
            if kept is not None and not (kept.alive and kept.frontend == where):
                kept.close()
                self._child = None
            if self._child is None:
                if self._started is not None:
                    self._started(toolchain)
                self._child = Child(where, python=self.python, limits=self.limits)
            return self._child

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._child is not None:
            self._child.close()


class OpenedFile:
    """A file's kernels from the store; a child starts at the first question that it lacks."""

    def __init__(self, path: Path, toolchain: Toolchain, opener: Opener) -> None:
        self.path = path
        self.toolchain = toolchain
        self.version = ""
        self._files: tuple[str, ...] = (str(path),)
        self._opener = opener
        self._store = opener.store
        self._child: Child | None = None
        self._executed: dict[str, Any] = {}  # what executing it in the present mode said
        self._executed_as: tuple[str, Mapping[str, Any] | None] | None = None
        self._mode: tuple[str, Mapping[str, Any] | None] = ("load", None)
        self._begun = 0
        self._cut_short = False
        self._stand_ins: tuple[Mapping[str, Any], ...] = ()
        self._lacking: str | None = None  # how the file fails without them

    def load(self, stand_ins: Sequence[Mapping[str, Any]] = ()) -> tuple[Listing, ...]:
        """Execute the file and return the kernels that it offers.

        A file that fails as it is, such as for want of a package or a device, is executed again
        as `run` does it: with stand-ins for both.

        Args:
            stand_ins: Devices, of each target the first, of which user code is told then (see
                `_devices.facts.facts_of`); none to let it fail.

        Raises:
            ToolchainError: The toolchain is not installed.
            KernelError: The file raised.
            WorkerError: It hung, crashed or used too much.
        """
        self._mode, self._stand_ins, self._lacking = ("load", None), tuple(stand_ins), None
        answer = self._answer_or_stand_in(None)
        return tuple(Listing.from_dict(item) for item in answer["kernels"])

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Run the file's own main, compiling nothing, and return the kernels that it compiled.

        Main is ended in time for an answer; what it compiled until then counts.

        Args:
            device_facts: The device that user code is told of (see `_devices.facts.facts_of`).

        Raises:
            ToolchainError: The toolchain is not installed.
            WorkerError: It crashed or used too much.
        """
        self._mode = ("run", device_facts)
        return Ran.from_dict(self._answer(None))

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Return one kernel as it is lowered for a target.

        Raises:
            InputError: No such kernel or parameter, or one is missing.
            RefusedError: The compiler refused it for this target.
            KernelError: The user's code raised.
            WorkerError: It hung, crashed or used too much.
        """
        answer = self._answer_or_stand_in(request)
        return tuple(Kernel.from_dict(item) for item in answer["kernels"])

    @property
    def files(self) -> tuple[str, ...]:
        """The file, and what executing it opened."""
        return self._files

    # ---- one question --------------------------------------------------------------------

    def _answer_or_stand_in(self, request: Request | None) -> dict[str, Any]:
        """Return the answer, where user code fails as it is with stand-ins for what it lacks."""
        if self._mode[0] != "load":
            return self._answer(request)
        if self._lacking is None:
            try:
                return self._answer(request)
            except KernelError as error:
                if not self._stand_ins:
                    raise
                plain = str(error)
        else:
            plain = self._lacking
        target = None if request is None else request.target
        alike = (one for one in self._stand_ins if one.get("target") == target)
        self._mode = ("load", next(alike, self._stand_ins[0]))
        try:
            answer = self._answer(request)
        except (KernelError, WorkerError) as error:
            if self._lacking is None:  # it is not for want of them
                self._mode, self._stand_ins = ("load", None), ()
                raise KernelError(plain) from error
            raise KernelError(f"{plain}; with a stand-in for what it lacks, {error}") from error
        self._lacking = plain
        return answer

    def _answer(self, request: Request | None) -> dict[str, Any]:
        """Return the kept answer or failure, else the child's, which is then kept.

        Args:
            request: The kernel to read; None to list what the file offers.
        """
        question = ""
        if self._store is not None:
            question = self._question(request)
            kept = self._store.get(question)
            if kept is not None:
                self.version = kept["version"]
                if "failed" in kept:
                    raise error_of(*kept["failed"])
                return dict(kept)
        failure: TilefitError | None = None
        content: dict[str, Any] = {}
        try:
            content = self._asked(request)
        except TilefitError as error:
            said = LASTING.get(type(error))
            if said is None:  # another time it may go better
                self._not_kept()
                raise
            failure, content = error, {"failed": [said, str(error), error.cause]}
        if self._child is not None:
            self._keep(question, {**content, "version": self.version}, self._child)
        if failure is not None:
            raise failure
        return content

    def _question(self, request: Request | None) -> str:
        mode, facts = self._mode
        return question_of(
            file=self.path,
            what=[self.toolchain.name, KERNEL_VERSION, mode, sorted((facts or {}).items())],
            asked=None if request is None else request.key,
            python=self._opener.python,
            # user code may ask for more than it may have, and say so
            memory_bytes=self._opener.limits.memory_bytes,
        )

    def _keep(self, question: str, content: dict[str, Any], child: Child) -> None:
        rests = child.rests
        self._files = (*(rests.files or self._files), *rests.absent)
        if self._cut_short or not rests.files or rests.unkept:
            self._not_kept()
        elif self._store is not None:
            self._store.put(
                question,
                rests.files,
                content,
                absent=rests.absent,
                present=rests.present,
                environment=rests.environment,
                installed=rests.installed,
                since=self._begun,
            )

    def _not_kept(self) -> None:
        if self._store is not None:
            self._store.complete = False

    def _asked(self, request: Request | None) -> dict[str, Any]:
        """Have the child answer; the file is executed first where it is not in this mode."""
        child = self._executing()
        if request is None:
            keys = _RAN if self._mode[0] == "run" else _LISTED
            return {key: self._executed[key] for key in keys}
        return {"kernels": child.ask({"op": "read", "request": request.to_dict()})["kernels"]}

    def _executing(self) -> Child:
        """Return a child in which the file was executed in the present mode."""
        if self._child is not None and not self._child.alive:
            self._child = self._executed_as = None  # it was stopped; begin again
        here = self._child is not None and self._child.holder is self
        if self._child is not None and here and self._executed_as == self._mode:
            return self._child
        child = self._child = self._child or self._opener.child(self.toolchain)
        mode, facts = self._mode
        seconds = self._opener.limits.seconds
        self._begun, start = clock(), time.monotonic()
        request: dict[str, Any] = {
            **{"op": mode, "file": str(self.path)},
            **{"device": None if facts is None else dict(facts)},
        }
        if mode == "run":
            # the clock is the machine's: the worker may still have to import its toolchain
            request["deadline"] = start + seconds
        self._executed_as = None
        child.holder = self
        self._executed = child.execute(self.path.name, request)
        # main is ended in time for an answer; on an idler machine it may come further
        self._cut_short = mode == "run" and time.monotonic() - start > seconds / 2
        self._executed_as = self._mode
        self.version = self._executed["version"]
        return child
