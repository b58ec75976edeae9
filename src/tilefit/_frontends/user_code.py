"""Executing a user's file as a module, and saying in one line where it raised."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tilefit._errors import KernelError
from tilefit._frontends.loaded import note_executed_files


def load_module(path: Path) -> ModuleType:
    """Import a file the way ``python FILE`` would find its neighbours.

    The file's folder leads ``sys.path``; inside a package the file is imported under its
    dotted name, so that relative imports work. ``sys.argv`` holds the file alone.

    Raises:
        KernelError: The file raised or exited; the message names the line.
    """
    note_executed_files()
    path = path.resolve()
    root, name = path.parent, path.stem
    while (root / "__init__.py").exists():
        name = f"{root.name}.{name}"
        root = root.parent
    sys.path.insert(0, str(root))
    sys.argv = [str(path)]
    try:
        with process_kept():
            if "." in name:
                return importlib.import_module(name)
            if name in sys.modules or not name.isidentifier():
                name = f"_tilefit_user_{path.stem}"
            spec = importlib.util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                raise KernelError(f"{path.name} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            return module
    except KernelError:
        raise
    except BaseException as error:  # user code may raise anything; nobody interrupts this process
        raise KernelError(describe(error, path)) from error


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
