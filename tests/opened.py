"""Files opened one after another in one child that has TileLang; nothing is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tilefit._frontends.protocol import Ran
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.request import Request
from tilefit._reading.child import Limits
from tilefit._reading.opener import OpenedFile, Opener


def ask(kernel: str, params: Mapping[str, Any], target: str, **more: Any) -> Request:
    """A request in one line."""
    return Request(kernel=kernel, params=params, target=target, **more)


class Session(AbstractContextManager["Session"]):
    """A file; its path may be set anew before it is loaded or run."""

    def __init__(self, path: Path, *, limits: Limits | None = None) -> None:
        self.path = path
        self.listings: tuple[Listing, ...] = ()
        self._opener = Opener(limits=limits)
        self._file: OpenedFile | None = None

    def __exit__(self, *error: Any) -> None:
        self._opener.__exit__(*error)

    def load(self, facts: Mapping[str, Any] | None = None) -> tuple[Listing, ...]:
        self._file = self._opener.compiled(self.path)
        self.listings = self._file.load([] if facts is None else [facts])
        return self.listings

    def run(self, facts: Mapping[str, Any]) -> Ran:
        self._file = self._opener.compiled(self.path)
        ran = self._file.run(facts)
        self.listings = ran.kernels
        return ran

    def read(self, request: Request) -> tuple[Kernel, ...]:
        assert self._file is not None
        return self._file.read(request)

    @property
    def limits(self) -> Limits:
        return self._opener.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._opener.limits = limits
        if self._opener._child is not None:
            self._opener._child.limits = limits

    @property
    def files(self) -> tuple[str, ...]:
        """What the last answer rests on, less what is not there."""
        return tuple(file for file in self._opener.files if os.path.lexists(file))
