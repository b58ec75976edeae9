"""Opens files one after another, with one child at most."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from tilefit._errors import WorkerError
from tilefit._reading.session import Child, Limits
from tilefit._reading.store import Store
from tilefit._reading.stored import Stored


class Opener(AbstractContextManager["Opener"]):
    """Opens files one after another, with one child at most, started when it is needed."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        python: str = sys.executable,
        store: Store | None = None,
        started: Callable[[], None] | None = None,
    ) -> None:
        """Prepare to open files.

        Args:
            limits: What user code may use.
            python: Interpreter that has the toolchain.
            store: Where answers are kept; None asks the child every time.
            started: Called before a child starts.
        """
        self._limits, self._python, self._store = limits, python, store
        self._started = started
        self._child: Child | None = None
        self._last: Stored | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def compiled(self, path: Path) -> Stored:
        """Return a file whose kernels its toolchain compiles."""
        self._last = Stored(
            path, store=self._store, child=self._living, python=self._python, limits=self._limits
        )
        return self._last

    @property
    def files(self) -> tuple[str, ...]:
        """What the file that was opened last depends on, as far as it was executed."""
        return self._last.files if self._last is not None else ()

    def stop(self) -> None:
        """From another thread: end the child at once, and start no other."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child.stop()

    def _living(self) -> Child:
        if self._child is not None and self._child.alive:
            self._child.finish()  # the file before may have killed its worker, and been answered
        with self._lock:
            if self._stopped:
                raise WorkerError("stopped")
            if self._child is not None and not self._child.alive:
                self._child.close()
                self._child = None
            if self._child is None:
                if self._started is not None:
                    self._started()
                self._child = Child(python=self._python, limits=self._limits)
            return self._child

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._child is not None:
            self._child.close()
