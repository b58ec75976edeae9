"""Executing a user's code in this process, and saying in one line where it raised."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def process_kept() -> Iterator[None]:
    """Run user code: what we need of the process stays, and a copy of the process ends.

    Modules and search paths that it takes away are put back. Where it forks, and the copy comes to
    its end too, that copy must not go on as a second one of us.
    """
    process = os.getpid()
    modules, paths, finders = dict(sys.modules), list(sys.path), list(sys.meta_path)
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)
        for name, module in modules.items():
            sys.modules.setdefault(name, module)
        sys.path += [path for path in paths if path not in sys.path]
        sys.meta_path += [finder for finder in finders if finder not in sys.meta_path]
        sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))


def describe(error: BaseException, path: Path) -> str:
    """Say in one line what a piece of user code raised, and at which line of its file."""
    line = None
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).resolve() == path.resolve():
            line = frame.lineno
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).exists():
        same = Path(error.filename).resolve() == path.resolve()
        line = error.lineno if same else line
    where = f"{path.name}:{line}" if line else path.name
    if isinstance(error, SystemExit):
        return f"{where} called sys.exit({error.code!r}) while it was imported"
    if isinstance(error, MemoryError):
        return f"{where} asked for more memory than user code may have (--memory-limit)"
    message = one_line(str(error))
    return f"{where} raised {type(error).__name__}{f': {message}' if message else ''}"


def one_line(text: str, limit: int = 400) -> str:
    """Fold a message into one line of at most ``limit`` characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 3] + "..."
