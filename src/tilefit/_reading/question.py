"""What tells one question from another: the file, what is asked of it, and where it is asked."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache

from tilefit._home import PACKAGE

TYPE_CHECKING = False  # typing and pathlib cost 5 ms, at a start of which each is a good part
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_STEERING = ("TL_", "TILELANG_", "TRITON_", "TVM_", "CUDA_", "ASCEND_", "ROCM_", "PYTHON")


def question_of(
    *, file: Path, what: Sequence[Any], asked: str | None, python: str, memory_bytes: int
) -> str:
    """Return the key of a question; steering environment variables are part of it.

    Args:
        file: The file.
        what: How it is executed: frontend, mode, the device that it is told of.
        asked: Key of the request; None where its kernels are listed.
        python: The interpreter.
        memory_bytes: What user code may use.
    """
    parts = {
        "file": os.path.realpath(file),
        "what": list(what),
        "asked": asked,
        "python": interpreter(python),
        "folder": current_folder(),
        "memory": memory_bytes,
        "environment": steering(),
        "code": own_code(),
    }
    return digest(json.dumps(parts, sort_keys=True))


def interpreter(python: str) -> list[str]:
    """Return what tells an interpreter from others.

    Its own path counts, as environments share the interpreter that they link to; so does what it
    links to, which may be exchanged.
    """
    if os.sep not in python:
        from shutil import which

        python = which(python) or python
    return [os.path.abspath(python), os.path.realpath(python)]  # noqa: PTH100


def current_folder() -> str:
    """Return the current folder, in which user code looks for modules; empty if it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return ""


def steering() -> list[tuple[str, str]]:
    """Return the environment variables that steer the toolchain."""
    return sorted((k, v) for k, v in os.environ.items() if k.startswith(_STEERING))


@cache
def own_code() -> str:
    """Return what identifies tilefit itself: size and time of its modules and its data."""
    stamps = []
    for parent, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found = ((name, os.stat(os.path.join(parent, name))) for name in sorted(names))  # noqa: PTH116, PTH118
        stamps += [(name, status.st_size, status.st_mtime_ns) for name, status in found]
    return digest(repr(stamps))


def digest(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
