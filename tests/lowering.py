"""Lower the test kernels in this very process: one import of TileLang, one lowering each.

The workers of a session share what they lowered, as the JSON in which kernels travel.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.opened import ask
from tilefit._frontends.tilelang.frontend import TileLangFrontend, TileLangSource
from tilefit._kernel.kernel import Kernel

KERNELS = Path(__file__).parent / "kernels"


@cache
def source(path: Path) -> TileLangSource:
    """Load a file of kernels and leave the interpreter's paths and arguments as they were."""
    paths, arguments = list(sys.path), list(sys.argv)
    try:
        return TileLangFrontend().load(path)
    finally:
        sys.path[:], sys.argv[:] = paths, arguments


@cache
def lower(path: Path, kernel: str, target: str, **params: Any) -> tuple[Kernel, ...]:
    """Lower one kernel for one target, once."""
    request = ask(kernel, params, target)
    folder = os.environ.get("TILEFIT_TESTS_LOWERED")
    if folder is None:
        return source(path).read(request)
    name = hashlib.sha256(f"{path} {request.key}".encode()).hexdigest()
    kept = Path(folder, name)
    if kept.exists():
        return tuple(Kernel.from_dict(one) for one in json.loads(kept.read_bytes()))
    kernels = source(path).read(request)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        json.dump([one.to_dict() for one in kernels], file)
    Path(file.name).replace(kept)
    return kernels
