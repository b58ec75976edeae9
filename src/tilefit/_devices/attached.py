"""The attached device, asked through its vendor's own bindings in a process of its own.

NVIDIA answers through cuda-bindings (which cuda-core brings along), Ascend through CANN's ``acl``
and its platform configuration files, and both, with AMD, through torch. What the child does is in
`tilefit._devices.probe`, what its answer means in `tilefit._devices.comparison`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tilefit._devices.comparison import Answer, attached_names, read
from tilefit._errors import InputError

SECONDS = 60
"""A driver that has not answered by then is hung: torch takes about 5 s."""


def ask(python: str = sys.executable, *, seconds: float = SECONDS) -> Answer:
    """Ask this machine for its devices and set them beside our table.

    A driver or binding that is missing, fails, crashes or hangs is part of the answer.

    Args:
        python: Interpreter that has the bindings.
        seconds: How long to wait.

    Raises:
        InputError: There is no such interpreter.
    """
    probe = Path(__file__).with_name("probe.py")
    try:
        done = subprocess.run(
            [python, str(probe)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return read(_silence(f"no answer in {seconds:g} s"))
    except OSError as error:
        raise InputError(f"interpreter {python!r} cannot be run: {error.strerror}") from None
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if not isinstance(document, dict):  # it died before it answered, or is no Python
        document = _silence(_how_it_ended(done))
    return read(document)


def attached_devices(python: str = sys.executable) -> tuple[str, ...]:
    """Return the names of our entries for the attached devices, without duplicates.

    Args:
        python: Interpreter that has the bindings.

    Raises:
        InputError: Nothing is attached, or a device is in no table; the message is one line.
    """
    return tuple(dict.fromkeys(attached_names(ask(python))))


def _silence(answer: str) -> dict[str, Any]:
    return {"asked": [["the drivers", answer]], "devices": []}


def _how_it_ended(done: subprocess.CompletedProcess[bytes]) -> str:
    if done.returncode < 0:
        try:
            name = signal.Signals(-done.returncode).name
        except ValueError:
            name = f"signal {-done.returncode}"
        return f"crashed ({name})"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return f"failed: {lines[-1] if lines else f'exit code {done.returncode}'}"
