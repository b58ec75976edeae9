"""`plan FILE` and `plan FOLDER`: every kernel of every file, each failure with its reason."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tilefit._errors import (
    InputError,
    UnknownNameError,
)
from tilefit._frontends import registry
from tilefit._kernel.naming import no_kernel
from tilefit._planning.one_file import OneFile
from tilefit._planning.question import Question
from tilefit._planning.report import FileSeen, Report, Result
from tilefit._reading.kept import source_files
from tilefit._reading.opener import Opener


def plan_file(path: Path, shown: str, question: Question, opener: Opener) -> Report:
    """Plan every kernel that a file's own main compiles.

    Args:
        path: The file.
        shown: What the answer calls it.
        question: What is asked.
        opener: Opens it.

    Raises:
        InputError: No kernel of it has one of the parameters.
        ToolchainError: The toolchain is missing.
        KernelError: The file raised before any kernel was seen.
        WorkerError: It crashed or hung before that.
    """
    file = OneFile(path, shown, question, opener, alone=True)
    results, seen = file.plan()
    if not seen.failed:
        _refuse_unknown(question.params, file.names)
    if not results and file.broken is not None:
        raise file.broken
    if not seen.seen:
        raise no_kernel(path)
    return Report(tuple(results), (seen,))


def plan_folder(
    folder: Path,
    question: Question,
    openers: Callable[[], Opener],
    *,
    workers: int,
    step: Callable[[int, int, str], None],
) -> Report:
    """Plan every kernel of every file below a folder; a file that crashes costs only itself.

    Args:
        folder: Where to look. Hidden folders, environments and builds are left out, and files
            that do not mention TileLang are not executed.
        question: What is asked.
        openers: Makes one opener for each worker.
        workers: How many files are read at the same time.
        step: Called with files done, files in all, and the last one.

    Raises:
        InputError: There is no Python file or no kernel, or none has one of the parameters.
        ToolchainError: The toolchain is missing.
    """
    files = [Path(name) for name in source_files(str(folder), registry.suffixes())]
    if not files:
        raise InputError(f"{folder}: no Python file in this folder")
    mentioned = [path for path in files if mentions(path)]
    if question.values is not None:
        question.values.refuse_other_files(mentioned)
    step(0, len(mentioned), "")
    found = []
    names: set[str] = set()
    with _Workers(openers, workers) as pool:

        def work(path: Path) -> tuple[list[Result], FileSeen]:
            file = OneFile(path, str(path), question, pool.opener())
            try:
                return file.plan()
            finally:
                names.update(file.names)

        futures = [pool.submit(work, path) for path in mentioned]
        for number, (path, future) in enumerate(zip(mentioned, futures, strict=True), 1):
            found.append(future.result())
            step(number, len(mentioned), str(path))
    if not any(seen.seen for _, seen in found):
        count = "1 Python file" if len(files) == 1 else f"{len(files)} Python files"
        raise InputError(f"{folder}: {count}, and no TileLang kernel")
    if not any(seen.failed for _, seen in found):  # who failed may have had it
        _refuse_unknown(question.params, names)
    silent = [FileSeen(file=str(path)) for path in files if path not in set(mentioned)]
    return Report(
        tuple(result for results, _ in found for result in results),
        (*(seen for _, seen in found), *silent),
    )


class _Workers(ThreadPoolExecutor):
    """Threads with an opener each; an error or Ctrl-C ends their children at once."""

    def __init__(self, openers: Callable[[], Opener], number: int) -> None:
        super().__init__(max(1, number))
        self._openers, self._local = openers, threading.local()
        self._made: list[Opener] = []
        self._stopped = False
        self._guard = threading.Lock()

    def opener(self) -> Opener:
        """Return the opener of the thread that asks."""
        if not hasattr(self._local, "opener"):
            with self._guard:
                self._local.opener = opener = self._openers()
                self._made.append(opener)
                if self._stopped:
                    opener.stop()
        found: Opener = self._local.opener
        return found

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:
            self.shutdown(wait=False, cancel_futures=True)
            with self._guard:
                self._stopped = True
            for opener in self._made:
                opener.stop()
            self.shutdown()
        # before its thread ends, with which the kernel ends the child and frees what it watched
        for opener in self._made:
            opener.__exit__(None, None, None)
        self.shutdown()


def _refuse_unknown(params: Mapping[str, Any], known: set[str]) -> None:
    for name in params:
        if known and name not in known:
            raise UnknownNameError("parameter", name, sorted(known))


def mentions(path: Path) -> bool:
    """Say whether a file is written for a toolchain."""
    try:
        return registry.recognised(path.read_bytes()) is not None
    except OSError:
        return True  # it is asked about, and its failure has a reason
