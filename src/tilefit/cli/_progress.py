"""What is shown on standard error while slow steps run; nothing where it is no terminal."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing costs 2 ms at every start
if TYPE_CHECKING:
    from typing import Any


class Progress:
    """A spinner on standard error while slow steps run; silent when it is not a terminal."""

    def __init__(self) -> None:
        self._status: Any = None
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __call__(self, line: str) -> None:
        if not sys.stderr.isatty():
            return
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(line)
            self._status.start()
        self._status.update(f"{line} ...")

    def step(self, done: int, total: int, last: str) -> None:
        """Draw a bar: files that are done of all files, and the last one."""
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.add_task("", total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, description=last)

    def __exit__(self, *_: object) -> None:
        for shown in (self._status, self._bar):
            if shown is not None:
                shown.stop()
