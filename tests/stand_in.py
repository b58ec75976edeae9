"""What stands for a file that a child process has executed, in tests that start none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilefit._frontends.protocol import Ran
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import Listing
from tilefit._reading.opener import Opener


class StandIn:
    """A file whose main compiles what it offers; its readers add `load` and `read`."""

    toolchain, version = replace(TILELANG, name="by hand"), "0"
    files: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, _: object = ()) -> tuple[Listing, ...]:
        raise NotImplementedError

    def run(self, _: object) -> Ran:
        return Ran(kernels=self.load(), unbuilt=(), ended=None, stubbed=())


def use(monkeypatch: pytest.MonkeyPatch, kind: Callable[[Path], Any]) -> None:
    """Let `plan` read files through a stand-in from now on."""
    monkeypatch.setattr(Opener, "compiled", lambda _, path: kind(path))
