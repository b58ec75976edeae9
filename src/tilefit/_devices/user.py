"""A user's own devices: the layout of ``data/devices/*.toml``, in full or as changes to a base.

A table with ``base`` starts from one of tilefit's devices and says only what differs::

    base = "h100"
    [launch]
    max_threads_per_block = 512

The numbers that it leaves alone keep their sources; those it changes are the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilefit._devices.device import Device
from tilefit._devices.load import data_file, load_table
from tilefit._devices.toml import read_toml, text
from tilefit._errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

Find = Callable[[str], Device]
"""Finds the device that a base names."""

_OF_ITS_OWN = ("name", "title", "aliases", "products")


def load_user_file(path: Path, find: Find) -> tuple[Device, ...]:
    """Return the device that a file describes, then its products.

    Raises:
        InputError: The file cannot be read, or see `load_user_table`; the message names the file.
    """
    table = read_toml(path)
    try:
        return load_user_table(table, path.name, path.stem, find)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def load_user_table(
    table: Mapping[str, Any], label: str, name: str, find: Find
) -> tuple[Device, ...]:
    """Return the device that a table describes, then its products.

    A device with a base is a product of the base's architecture.

    Args:
        table: In the layout of ``data/devices/*.toml``, or with a ``base``.
        label: Where the table is written, for the source of its numbers.
        name: What the device is called unless the table says.
        find: Finds the base.

    Raises:
        InputError: A key is unknown or missing, a value is of the wrong kind, numbers contradict
            each other, or the base is no device; the message names the key and the rule.
    """
    own = dict(table)
    if "base" not in own:
        return load_table(own, label, name)
    base_name = text(own, "base", "")
    try:
        base = find(base_name)
    except InputError as error:
        raise InputError(f"base: {error}") from None
    del own["base"]
    start = _raw(base)
    _drop_notes(start, own)
    merged = _merge({"title": f"{name}, from {base.title}", **start}, own)
    devices = load_table(merged, label, name)
    return tuple(replace(device, arch=base.arch, product=True) for device in devices)


def _raw(base: Device) -> dict[str, Any]:
    """Return the table that a base was read from, without what only it may be called."""
    table = read_toml(data_file("devices", f"{base.arch}.toml"))
    product = table.get("products", {}).get(base.name, {})
    return {key: v for key, v in {**table, **product}.items() if key not in _OF_ITS_OWN}


def _drop_notes(start: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Drop the base's notes on numbers that are changed: they are about its own."""
    changed = set()
    for group, prefix in (("launch", ""), ("facts", ""), ("cores", "cores.")):
        changed |= {prefix + key for key in _table(own.get(group))}
    for memory, entry in _table(own.get("memories")).items():
        changed |= {f"{memory}.{key}" for key in _table(entry)}
    start["notes"] = {k: v for k, v in start.get("notes", {}).items() if k not in changed}


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _merge(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with the values of ``own`` in place of its own, table by table."""
    merged = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged
