"""`plan --watch`: answer again at every saved edit, in a child that keeps its toolchain."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilefit._devices.names import Device
from tilefit._errors import TilefitError
from tilefit._kernel.naming import file_and_kernel
from tilefit._planning.plan import opener_for, plan_opened
from tilefit._planning.question import Options
from tilefit._planning.report import Report
from tilefit._reading.child import Limits
from tilefit._reading.store import CTIME, clock, stamp_of

_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 0.5
_Stamps = dict[str, tuple[int, ...] | None]


def watch(
    source: str,
    devices: tuple[Device, ...],
    cases: Sequence[Mapping[str, Any]],
    options: Options,
    limits: Limits,
    python: str,
    show: Callable[[Report], None],
    say: Callable[[str], None],
    *,
    times: int | None = None,
) -> None:
    """Plan, and plan again whenever a file that the answer depends on changes; until Ctrl-C.

    A file that is broken for a moment costs one line; the next save is answered.

    Args:
        source: ``FILE`` or ``FILE::KERNEL``.
        devices: For which devices.
        cases: Sets of parameters, at least one.
        options: What is asked.
        limits: What user code may use.
        python: Interpreter that has the toolchain.
        show: Prints an answer.
        say: Prints a line beside the answers.
        times: How many answers to give; None for no end.
    """
    path, _ = file_and_kernel(source)
    files: set[str] = {path}
    with opener_for(replace(options, cache=False), limits=limits, python=python) as opener:
        try:
            while True:
                begun, since, before = time.perf_counter(), clock(), _stamps(files)
                look = _Look(before, opener.interrupt)
                try:
                    with look:
                        report = plan_opened(source, devices, cases, options, opener)
                    show(report)
                except TilefitError as error:
                    if look.interrupted:
                        continue  # it was saved again: what went before is nobody's question
                    say(f"tilefit: {error}")
                    files |= {path, *opener.files}  # the repair may be in any of them
                else:
                    files = {path, *opener.files}
                # what was saved while it was read counts as an edit too
                known = _unless_later(since, _stamps(files)) | {
                    file: stamp for file, stamp in before.items() if file in files
                }
                times = None if times is None else times - 1
                if times == 0:
                    return
                say(f"-- {time.perf_counter() - begun:.2f} s; waiting for an edit (Ctrl-C ends)")
                while _stamps(files) == known:
                    time.sleep(_LOOK_SECONDS)
        except KeyboardInterrupt:
            return


class _Look:
    """Looks at files while an answer is made, and interrupts it some time after one was saved.

    User code may have hung, or it takes long over what is no longer asked.
    """

    def __init__(self, before: _Stamps, interrupt: Callable[[], None]) -> None:
        self.interrupted = False
        self._before, self._interrupt = before, interrupt
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            if _stamps(self._before) != self._before:
                break
        # what is nearly done is told, and then answered anew
        while not self._over.wait(_GRACE_SECONDS):
            self.interrupted = True
            self._interrupt()


def _stamps(paths: Iterable[str]) -> _Stamps:
    """Return for each file what a save changes; None if it is gone for a moment."""
    return {path: stamp_of(path) for path in paths}


def _unless_later(since: int, stamps: _Stamps) -> _Stamps:
    """Return the stamps; that of a file which changed after a time as one that it never has."""
    return {
        file: () if stamp and stamp[CTIME] > since and os.path.isfile(file) else stamp  # noqa: PTH113
        for file, stamp in stamps.items()
    }
