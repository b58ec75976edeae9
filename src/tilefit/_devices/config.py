"""The user's configuration: ``[tool.tilefit]`` of the nearest ``pyproject.toml`` that has one.

::

    [tool.tilefit]
    targets = ["h100", "lab-card"]          # what -d means when it is left out

    [tool.tilefit.device.lab-card]          # a device of your own
    base = "rtx-4090"
    cores = { SM = 96 }

Only the command line reads it: a function of tilefit never depends on the current folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tilefit._devices.names import ATTACHED, Device, expand, user_devices
from tilefit._devices.toml import as_table, names, read_toml, refuse_unknown_keys, subtable
from tilefit._errors import InputError, UnknownNameError

_KEYS = ("targets", "device")
_WHERE = "tool.tilefit"


def targets(folder: Path | None = None) -> tuple[str, ...]:
    """Return the devices to plan for when ``-d`` is left out; empty if none are configured.

    The path of a ``.toml`` file is relative to the folder of ``pyproject.toml``.

    Args:
        folder: Where to look first, then in its parents; the current folder if None.

    Raises:
        InputError: The configuration is wrong; the message names file and key.
    """
    path, table = _configuration(folder)
    if path is None:
        return ()
    try:
        given = names(table, "targets", _WHERE)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return tuple(
        str(path.parent / name) if name.casefold().endswith(".toml") else name for name in given
    )


def devices(folder: Path | None = None) -> tuple[Device, ...]:
    """Return the user's own devices, in the order of the file.

    Args:
        folder: As in `targets`.

    Raises:
        InputError: The configuration is wrong; the message names file, key and rule.
    """
    path, table = _configuration(folder)
    if path is None:
        return ()
    try:
        tables = subtable(table, "device", _WHERE)
        return user_devices(tables, path.name, f"{_WHERE}.device")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def resolve(
    specs: Sequence[str],
    attached: Callable[[], Iterable[str]],
    folder: Path | None = None,
) -> tuple[Device, ...]:
    """Return the devices that ``-d`` means on the command line.

    Beside what `tilefit._devices.names.expand` takes these are the user's own devices,
    ``attached``, and, with no ``-d`` at all, the configured targets.

    Args:
        specs: The values of ``-d``.
        attached: Asks for the names of the devices of this machine; called if needed.
        folder: As in `targets`.

    Raises:
        InputError: A name is unknown or refused, or the configuration is wrong.
    """
    parts: list[str] = []
    for spec in specs or targets(folder):
        if ATTACHED not in spec.casefold():
            parts.append(spec)
            continue
        for part in spec.split(","):
            parts += attached() if part.strip().casefold() == ATTACHED else [part]
    try:
        return expand(parts)
    except UnknownNameError:
        own = devices(folder)  # only now: a wrong table is no trouble to those who need none
        if not own:
            raise
        return expand(parts, own)


def resolve_one(
    spec: str,
    attached: Callable[[], Iterable[str]],
    folder: Path | None = None,
) -> str | Device:
    """Return what to hand to a function that looks one device up by its name.

    That is ``spec`` itself if the function will understand it, named capacities included; the
    device if it is one of the user's own; and the names of what is attached for ``attached``.

    Args:
        spec: The value of ``-d``.
        attached: As in `resolve`.
        folder: As in `targets`.

    Raises:
        InputError: No device has that name, or several are named and one of them is the user's.
    """
    if spec.strip().casefold() == ATTACHED:
        return ",".join(attached())
    try:
        expand([spec])
    except UnknownNameError:
        own = devices(folder)
        if own:
            found = expand([spec], own)
            if len(found) > 1:
                raise InputError(f"{spec!r} names {len(found)} devices, not one") from None
            return found[0]
    except InputError:
        pass  # a capacity; or refused again, in the function's own words
    return spec


def _configuration(folder: Path | None) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest ``pyproject.toml`` that configures tilefit, and its table."""
    for path in _candidates(folder):
        tool = read_toml(path, "configuration").get("tool", {})
        if not isinstance(tool, dict) or "tilefit" not in tool:
            continue
        try:
            table = as_table(tool["tilefit"], _WHERE)
            refuse_unknown_keys(table, _KEYS, _WHERE)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return path, table
    return None, {}


def _candidates(folder: Path | None) -> Iterable[Path]:
    try:
        start = (folder or Path()).absolute()
    except FileNotFoundError:  # the current folder was removed
        return
    for parent in (start, *start.parents):
        path = parent / "pyproject.toml"
        try:
            found = path.is_file()
        except PermissionError:
            continue
        if found:
            yield path
