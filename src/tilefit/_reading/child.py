"""The child process that runs user code, watched as a whole tree and ended as one.

The child (`tilefit._reading.worker`) imports the toolchain once and forks for each file. Everything
that it starts carries an environment marker, so that also a process which left its group and its
parent is found and ended.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefit._errors import InputError, InterpreterError, TilefitError, WorkerError
from tilefit._frontends.protocol import OTHER_PYTHON
from tilefit._home import PACKAGE
from tilefit._reading.rests import Rests
from tilefit._reading.said import Said, error_of

if TYPE_CHECKING:
    import psutil

_MARKER = "TILEFIT_WORKER"
_TAIL_BYTES = 64 * 1024
_WATCH_SECONDS = 0.1
# The child imports tilefit from this very folder: the interpreter may belong to an environment
# without tilefit, and putting our site-packages on its path would mix two environments. The folder
# that the user stands in comes last (-P keeps it from the front): what lies there, such as a
# checkout of the toolchain that was not built or a json.py, shadows neither of them.
_BOOTSTRAP = (
    "import importlib.util as u, runpy, sys; "
    "s = u.spec_from_file_location('tilefit', sys.argv[1] + '/__init__.py', "
    "submodule_search_locations=[sys.argv[1]]); "
    "m = u.module_from_spec(s); sys.modules['tilefit'] = m; s.loader.exec_module(m); "
    "sys.argv = sys.argv[1:]; "
    "runpy.run_module('tilefit._reading.worker', run_name='__main__', alter_sys=False)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What user code may use before it is ended.

    Attributes:
        seconds: Wall time of one request (loading the file, or one lowering).
        memory_bytes: Resident memory of all its processes together.
        processes: Number of its processes.
    """

    seconds: float = 120.0
    memory_bytes: int = 8 * 2**30
    processes: int = 64

    def __post_init__(self) -> None:
        seconds = self.seconds
        if type(seconds) not in (int, float) or not 0 < seconds < math.inf:
            raise InputError(f"seconds={seconds!r} is not a number of seconds above 0")
        for name in ("memory_bytes", "processes"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(f"{name}={value!r} is not a whole number from 1")


class Child:
    """One child process with its toolchain; it serves one file after another."""

    def __init__(
        self,
        frontend: str,
        *,
        python: str = sys.executable,
        limits: Limits | None = None,
    ) -> None:
        """Start one.

        Args:
            frontend: Where its frontend is: ``module:attribute``.
            python: Interpreter that has the toolchain.
            limits: What user code may use.
        """
        self.frontend = frontend
        self._python, self._answered = python, False
        self.holder: object = None  # whose file it executed last
        self.limits = limits or Limits()
        self.alive = True
        self.label = "the worker"
        self.rests = Rests()  # what the last answer rests on
        self._executed = False
        self._token = uuid.uuid4().hex
        # tells answers from what user code writes to the pipe; it is in no argument, no environment
        self._key = secrets.token_hex(16)
        self._ids = 0
        self._pending = b""
        self._lines: deque[bytes] = deque()
        request_read, self._request_fd = os.pipe()
        self._answer_fd, answer_write = os.pipe()
        fds = (request_read, answer_write)
        try:
            self._process = subprocess.Popen(
                [
                    *(python, "-P", "-c", _BOOTSTRAP, PACKAGE),
                    *(str(fd) for fd in fds),
                    *(frontend, str(self.limits.memory_bytes)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=fds,
                env={
                    **os.environ,
                    _MARKER: self._token,
                    OTHER_PYTHON: "" if python == sys.executable else python,
                },
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._request_fd)
            os.close(self._answer_fd)
            raise InterpreterError(f"cannot run {python}: {error.strerror}") from None
        finally:
            for fd in fds:
                os.close(fd)
        self._tail = _Tail(self._process)

    def execute(self, label: str, request: dict[str, Any]) -> dict[str, Any]:
        """Have a fresh fork execute a file; the one before, if there is one, ends.

        Args:
            label: What messages call the file.
            request: ``load`` or ``run``; see `tilefit._reading.worker`.
        """
        self.finish()
        self._executed, self.label = True, label
        self._tail.forget()
        return self.ask(request)

    def finish(self) -> None:
        """End the fork of the file before; `alive` says afterwards whether the worker lives."""
        if self._executed:
            self._executed = False
            with contextlib.suppress(WorkerError):
                self.ask({"op": "done"})  # the fork answers
                self.ask({"op": "done"})  # the worker does

    def close(self) -> None:
        """End the child and everything that it started."""
        os.close(self._request_fd)
        self._end_tree()
        self._tail.join()
        os.close(self._answer_fd)

    def stop(self) -> None:
        """End them all, from another thread than the one that asks, which gets a WorkerError."""
        self._end_tree()

    def interrupt(self) -> None:
        """From another thread: end what it executes; whoever asks gets a WorkerError.

        The worker itself stays, with its toolchain.
        """
        for process in self._descendants():
            with contextlib.suppress(_psutil().Error):
                process.kill()

    # ---- one request -------------------------------------------------------------------

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its answer; raise what it says went wrong."""
        self._ids += 1
        line = json.dumps({"id": self._ids, "key": self._key, **request}).encode() + b"\n"
        try:
            os.write(self._request_fd, line)
        except BrokenPipeError:
            self.alive = False
            raise self._ended("the worker is gone") from None
        for answer in self._answers():
            if answer is None and request["op"] != "done":  # a file that is done is judged already
                raise self._stopped("wrote to a file descriptor that it did not open")
            if answer is None or answer["id"] not in (self._ids, None):
                continue
            self._answered = True
            self.rests = Rests.from_dict(answer["rests"]) if "rests" in answer else Rests()
            if "error" not in answer:
                return answer
            if answer["error"] == Said.DIED:
                words = f"{self.label} {answer['message']} before its kernel could be read"
                raise WorkerError(words)
            raise error_of(answer["error"], answer["message"], answer.get("cause"))
        self.alive = False
        raise self._ended("the worker ended early")

    def _answers(self) -> Iterator[dict[str, Any] | None]:
        """Yield answers as they come, None for what is none; raise if the child passes a limit."""
        deadline = time.monotonic() + self.limits.seconds
        key = self._key.encode()
        while True:
            while self._lines:
                line = self._lines.popleft()
                if not line.startswith(key):
                    yield None
                    continue
                with contextlib.suppress(ValueError):  # of a fork that died as it wrote
                    yield json.loads(line.removeprefix(key))
            ready, _, _ = select.select([self._answer_fd], [], [], _WATCH_SECONDS)
            if ready:
                data = os.read(self._answer_fd, 1 << 16)
                if not data:
                    return
                *lines, self._pending = (self._pending + data).split(b"\n")
                self._lines += filter(None, lines)
                if not self._pending.startswith(key[: len(self._pending)]):
                    yield None
            else:
                self._watch()
            if time.monotonic() > deadline:
                raise self._stopped(f"did not finish within {self.limits.seconds:g} s")

    def _watch(self) -> None:
        processes = self._descendants()
        if len(processes) > self.limits.processes:
            raise self._stopped(f"started more than {self.limits.processes} processes")
        used = 0
        for process in processes:
            with contextlib.suppress(_psutil().Error):
                used += process.memory_info().rss
        most = self.limits.memory_bytes
        if used > most:
            raise self._stopped(f"used more than {most / 2**30:g} GiB of memory")

    def _ended(self, how: str) -> TilefitError:
        """Return the error of a worker that ended: an interpreter that never began is none."""
        words = self._last_words()
        if self._python != sys.executable and not self._answered:
            return InterpreterError(f"{self._python} does not run as a Python interpreter{words}")
        return WorkerError(f"{self.label}: {how}{words}")

    def _stopped(self, what: str) -> WorkerError:
        self.alive = False
        self._end_tree()
        return WorkerError(f"{self.label} {what} and was stopped")

    def _last_words(self) -> str:
        words = self._tail.last_line()
        return f": {words}" if words else ""

    # ---- the process tree ----------------------------------------------------------------

    def _descendants(self) -> list[psutil.Process]:
        ps = _psutil()
        found: list[psutil.Process] = []
        with contextlib.suppress(ps.Error):
            found = ps.Process(self._process.pid).children(recursive=True)
        return found

    def _marked(self) -> list[psutil.Process]:
        """Return live processes that carry our marker, wherever they moved to."""
        ps = _psutil()
        found = []
        for process in ps.process_iter():
            with contextlib.suppress(ps.Error, OSError):
                alive = process.status() != ps.STATUS_ZOMBIE
                if alive and process.environ().get(_MARKER) == self._token:
                    found.append(process)
        return found

    def _end_tree(self) -> None:
        """Kill every descendant, again and again until none is left, then the worker.

        The worker goes last: it is the subreaper, so nothing escapes while it lives.
        """
        for _ in range(200):
            for process in self._descendants():
                with contextlib.suppress(OSError):
                    # a group dies in one call, which a fork bomb cannot outrun
                    group = os.getpgid(process.pid)
                    if group not in (os.getpgid(0), self._process.pid):
                        os.killpg(group, signal.SIGKILL)
            left = [p for p in self._marked() if p.pid != self._process.pid]
            if not left:
                break
            for process in left:
                with contextlib.suppress(_psutil().Error):
                    process.kill()
        self._process.kill()
        self._process.wait()


class _Tail:
    """Drains the child's output so that it never blocks; keeps the end of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._kept = b""
        self._process = process
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while data := os.read(stream.fileno(), 1 << 16):
            self._kept = (self._kept + data)[-_TAIL_BYTES:]

    def forget(self) -> None:
        """Drop what was printed so far: it is another file's."""
        self._kept = b""

    def last_line(self) -> str:
        """Return the last line that the child printed."""
        self._thread.join(timeout=0.5)
        lines = self._kept.decode(errors="replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

    def join(self) -> None:
        """Wait for the end of the output, which comes when the last writer is gone."""
        self._thread.join(timeout=2)
        if self._process.stdout is not None and not self._thread.is_alive():
            self._process.stdout.close()


def _psutil() -> Any:
    import psutil  # 25 ms: while the child imports its toolchain anyway

    return psutil
