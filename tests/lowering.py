"""Lower the test kernels in this very process: one import of TileLang, one lowering each."""

from __future__ import annotations

import sys
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
    return source(path).read(ask(kernel, params, target))
