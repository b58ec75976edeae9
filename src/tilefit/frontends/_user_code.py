"""Executing a user's file as a module, and saying in one line where it raised."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from tilefit._errors import KernelError


def load_module(path: Path) -> ModuleType:
    """Import a file the way ``python FILE`` would find its neighbours.

    The file's folder leads ``sys.path``; inside a package the file is imported under its
    dotted name, so that relative imports work. ``sys.argv`` holds the file alone.

    Raises:
        KernelError: The file raised or exited; the message names the line.
    """
    path = path.resolve()
    root, name = path.parent, path.stem
    while (root / "__init__.py").exists():
        name = f"{root.name}.{name}"
        root = root.parent
    sys.path.insert(0, str(root))
    sys.argv = [str(path)]
    try:
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
    except (Exception, SystemExit) as error:
        raise KernelError(describe(error, path)) from error


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
