"""How the kernels of a file are read: from the store, by a child process, or from the source."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from tilefit._errors import KernelError, RefusedError, TilefitError, WorkerError
from tilefit._frontends.protocol import Ran, Unbuilt
from tilefit._kernel.kernel import KERNEL_VERSION, Kernel, Listing
from tilefit._reading.session import Child, Limits, Session
from tilefit._reading.store import Store, clock, question_of

_FAILURES: dict[str, type[TilefitError]] = {"refused": RefusedError, "kernel": KernelError}


class Kernels(Protocol):
    """The kernels of one file, by whatever way they are read."""

    toolchain: str
    version: str

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

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Return one kernel as it is for a target."""
        ...


class Stored:
    """A file's kernels from the store; a child starts at the first question that it lacks."""

    def __init__(
        self,
        path: Path,
        *,
        store: Store | None,
        child: Callable[[], Child],
        python: str = sys.executable,
        limits: Limits | None = None,
    ) -> None:
        """Prepare to answer for a file.

        Args:
            path: The file.
            store: Where answers are kept; None asks the child every time.
            child: Gives the child that executes the file.
            python: Its interpreter.
            limits: What user code may use.
        """
        self.path = path
        self.toolchain = ""
        self.version = ""
        self.files: tuple[str, ...] = (str(path),)
        self._store, self._child, self._python = store, child, python
        self._limits = limits or Limits()
        self._begun = 0
        self._cut_short = False
        self._ran: Ran | None = None
        self._mode: tuple[str, Mapping[str, Any] | None] = ("load", None)
        self._stand_ins: tuple[Mapping[str, Any], ...] = ()
        self._lacking: str | None = None  # how the file fails without them
        self._session: Session | None = None
        self._session_mode: tuple[str, Mapping[str, Any] | None] | None = None

    def load(self, stand_ins: Sequence[Mapping[str, Any]] = ()) -> tuple[Listing, ...]:
        """Return the kernels that the file offers; see `Session.load`.

        A file that fails as it is, such as for want of a package or a device, is executed again
        as `run` does it: with stand-ins for both.
        """
        self._mode, self._stand_ins, self._lacking = ("load", None), tuple(stand_ins), None

        def ask(session: Session) -> dict[str, Any]:
            return {"kernels": [asdict(item) for item in session.listings]}

        answer = self._answer_or_stand_in("list", {}, "", {}, ask)
        return tuple(Listing.from_dict(item) for item in answer["kernels"])

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Return the kernels that the file's own main compiles; see `Session.run`."""
        self._mode = ("run", device_facts)

        def ask(_: Session) -> dict[str, Any]:
            assert self._ran is not None
            return asdict(self._ran)

        answer = self._answer("list", {}, "", {}, ask)
        return Ran(
            kernels=tuple(Listing.from_dict(item) for item in answer["kernels"]),
            unbuilt=tuple(Unbuilt(**item) for item in answer["unbuilt"]),
            ended=answer["ended"],
            stubbed=tuple(answer["stubbed"]),
        )

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Return one kernel as it is lowered for a target; see `Session.read`."""
        options = {**(pass_configs or {}), "want_build": want_build}

        def ask(session: Session) -> dict[str, Any]:
            kernels = session.read(
                kernel, params, target, pass_configs=pass_configs, want_build=want_build
            )
            return {"kernels": [one.to_dict() for one in kernels]}

        answer = self._answer_or_stand_in(f"read {kernel}", params, target, options, ask)
        return tuple(Kernel.from_dict(item) for item in answer["kernels"])

    # ---- one question --------------------------------------------------------------------

    def _answer_or_stand_in(
        self,
        what: str,
        params: Mapping[str, Any],
        target: str,
        options: Mapping[str, Any],
        ask: Callable[[Session], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the answer, where user code fails as it is with stand-ins for what it lacks."""
        if self._mode[0] != "load":
            return self._answer(what, params, target, options, ask)
        if self._lacking is None:
            try:
                return self._answer(what, params, target, options, ask)
            except KernelError as error:
                if not self._stand_ins:
                    raise
                plain = str(error)
        else:
            plain = self._lacking
        alike = (one for one in self._stand_ins if one.get("target") == target)
        self._mode = ("load", next(alike, self._stand_ins[0]))
        try:
            answer = self._answer(what, params, target, options, ask)
        except (KernelError, WorkerError) as error:
            if self._lacking is None:  # it is not for want of them
                self._mode, self._stand_ins = ("load", None), ()
                raise KernelError(plain) from error
            raise KernelError(f"{plain}; with a stand-in for what it lacks, {error}") from error
        self._lacking = plain
        return answer

    def _answer(
        self,
        what: str,
        params: Mapping[str, Any],
        target: str,
        options: Mapping[str, Any],
        ask: Callable[[Session], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the kept answer or failure, else the child's, which is then kept."""
        mode, facts = self._mode
        question = ""
        if self._store is not None:
            question = question_of(
                file=self.path,
                what=f"{mode} {sorted((facts or {}).items())} {what}",
                params=params,
                target=target,
                python=self._python,
                # user code may ask for more than it may have, and say so
                options={
                    **options,
                    "memory_limit": self._limits.memory_bytes,
                    "kernel_version": KERNEL_VERSION,
                },
            )
            kept = self._store.get(question)
            if kept is not None:
                self.toolchain, self.version = kept["toolchain"]
                for kind, error in _FAILURES.items():
                    if kind in kept:
                        raise error(kept[kind])
                return dict(kept)
        failure: TilefitError | None = None
        content: dict[str, Any] = {}
        try:
            session = self._opened()
            content = ask(session)
        except RefusedError as error:
            failure, content = error, {"refused": str(error)}
        except KernelError as error:
            failure, content = error, {"kernel": str(error)}
        except TilefitError:  # another time it may go better
            self._not_kept()
            raise
        if self._session is not None:
            self.files = (*(self._session.files or self.files), *self._session.absent)
            content["toolchain"] = [self._session.toolchain, self._session.version]
            if self._cut_short or not self._session.files:
                self._not_kept()
            elif self._store is not None:
                self._store.put(
                    question,
                    self._session.files,
                    content,
                    absent=self._session.absent,
                    since=self._begun,
                )
        if failure is not None:
            raise failure
        return content

    def _not_kept(self) -> None:
        if self._store is not None:
            self._store.complete = False

    def _opened(self) -> Session:
        """Return a session in which the file was executed in the present mode."""
        if self._session is not None and not self._session.child.alive:
            self._session = self._session_mode = None  # it was stopped; begin again
        if self._session is not None and self._session_mode == self._mode:
            return self._session
        if self._session is None:
            self._session = Session(self.path, child=self._child())
        mode, facts = self._mode
        self._begun, start = clock(), time.monotonic()
        if mode == "load":
            self._session.load(facts)
        else:
            assert facts is not None
            self._ran = self._session.run(facts)
            # main is ended in time for an answer; on an idler machine it may come further
            self._cut_short = time.monotonic() - start > self._limits.seconds / 2
        self._session_mode = self._mode
        self.toolchain, self.version = self._session.toolchain, self._session.version
        return self._session


class Estimated:
    """A file's kernels as their source declares them; nothing is executed."""

    def __init__(self, path: Path, device_facts: Mapping[str, Any] | None = None) -> None:
        """Parse the file.

        Raises:
            InputError: It cannot be read or is no Python.
        """
        from tilefit._frontends.source.frontend import SourceFrontend

        frontend = SourceFrontend()
        self.toolchain, self.version = frontend.name, frontend.version()
        self.files = (str(path),)
        self._file = frontend.load(path, device_facts)
        self._path = path

    def load(self, stand_ins: Sequence[Mapping[str, Any]] = ()) -> tuple[Listing, ...]:  # noqa: ARG002
        """Return the kernels that the file defines."""
        return self._file.kernels()

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Return the kernels that need no value; nothing is run."""
        self._file = type(self)(self._path, device_facts)._file
        ready, open_ones = [], []
        for item in self.load():
            missing = [p.name for p in item.parameters if p.required]
            if not missing:
                ready.append(item)
                continue
            add = " ".join(f"--set {name}=VALUE" for name in missing)
            reason = f"needs a value for {', '.join(missing)}: plan it by its name with {add}"
            open_ones.append(Unbuilt(kernel=item.name, refused=False, reason=reason))
        return Ran(kernels=tuple(ready), unbuilt=tuple(open_ones), ended=None, stubbed=())

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Return one kernel as it is declared; see `SourceFile.read`."""
        return self._file.read(
            kernel, params, target, pass_configs=pass_configs, want_build=want_build
        )
