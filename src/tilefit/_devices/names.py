"""Devices by name: one index of names, and the limits with the source of every number.

>>> device("h100").pool(Memory.SHARED).per_block_bytes
232448

Spelling is free: case, ``-``, ``_`` and spaces do not matter (``RTX 4090``, ``sm90``,
``Ascend910B1``). A name has one meaning; what would have two is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilefit._devices.device import VENDORS, Condition, Device, Fact, Pool
from tilefit._devices.load import data_file, load_arch
from tilefit._devices.toml import as_table, read_toml
from tilefit._devices.user import load_user_file, load_user_table
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory

__all__ = [
    "VENDORS",
    "Capacity",
    "Condition",
    "Device",
    "Fact",
    "Pool",
    "capacities",
    "capacity",
    "device",
    "device_names",
    "expand",
    "products_of",
    "refused_names",
    "user_devices",
    "vendor_of",
]

ATTACHED = "attached"
"""What the command line takes for the devices of this machine."""

_COMPILED_FOR = ("nvidia", "amd", "ascend")  # what "all" means: vendors with a toolchain
_VENDOR_NAMES = {**{vendor: vendor for vendor in VENDORS}, "huawei": "ascend"}
_VENDOR_WORDS = (
    "nvidia",
    "geforce",
    "tesla",
    "amd",
    "radeon",
    "instinct",
    "huawei",
    "intel",
    "google",
)


_TVM_TARGET = re.compile(r"""(?:^|\s|")-?(?:arch|mcpu)"?\s*[=:]\s*"?(\w+)""")


@dataclass(frozen=True, slots=True)
class Capacity:
    """A named number of bytes that is no device.

    Attributes:
        name: The name to type.
        bytes: The capacity in bytes.
        memory: The memory that it is the size of.
        reason: Why it is no device's limit, in words.
        source: Where the number comes from.
        confidence: As in `Fact`.
    """

    name: str
    bytes: int
    memory: Memory
    reason: str
    source: str
    confidence: str


def device(name: str, own: Sequence[Device] = ()) -> Device:
    """Return a device by its name or an alias.

    Args:
        name: The name, in any spelling.
        own: Devices of the user's own that may be named too (see `user_devices`).

    Raises:
        UnknownNameError: No device has that name; near misses are named. A compute capability
            that is not in the list is unknown too: its limits are not guessed.
        InputError: The name is that of a capacity, or means several devices.
    """
    for key in _spellings(name):
        if key in _index():
            arch, found = _index()[key]
            return next(d for d in load_arch(arch) if d.name == found)
    for candidate in own:
        if _fold(name) in map(_fold, (candidate.name, *candidate.aliases)):
            return candidate
    raise _refusal(name, own)


def expand(specs: Sequence[str], own: Sequence[Device] = ()) -> tuple[Device, ...]:
    """Return the devices that ``-d`` values name, in order and without duplicates.

    Each value is a name, several with commas between, a vendor, ``"all"`` or the path of a
    ``.toml`` file in the layout of tilefit's own. A vendor means its products, and those of its
    architectures that have none; ``"all"`` means every vendor that a toolchain compiles for.

    Args:
        specs: The values.
        own: Devices of the user's own that may be named too (see `user_devices`).

    Raises:
        InputError: A name is empty, unknown or refused, or a file is not a device's.
    """
    found: list[Device] = []
    for spec in specs:
        for part in spec.split(","):
            found += [d for d in _expand_one(part.strip(), spec, own) if d not in found]
    return tuple(found)


def _expand_one(part: str, spec: str, own: Sequence[Device]) -> Iterable[Device]:
    if not part:
        raise InputError(f"device {spec!r} has an empty name: write names with commas between")
    if part.casefold().endswith(".toml"):
        from pathlib import Path

        found = load_user_file(Path(part), device)
        try:
            _refuse_taken(found, part, _holders())
        except InputError as error:
            raise InputError(f"{part}: {error}") from None
        return _products(found)
    word = part.casefold()
    if word == "all" or word in _VENDOR_NAMES:
        vendors = _COMPILED_FOR if word == "all" else (_VENDOR_NAMES[word],)
        return [
            d
            for arch, names in _index_file().items()
            if next(iter(names.values()))[0] in vendors
            for d in _products(load_arch(arch))
        ]
    return [device(part, own)]


def user_devices(tables: Mapping[str, Any], label: str, where: str) -> tuple[Device, ...]:
    """Return the devices that a user's tables describe, to be passed as ``own`` above.

    Args:
        tables: The name of each device and its table: in the layout of tilefit's own files, or
            with a ``base`` and what differs from it.
        label: Where they are written, for the source of their numbers.
        where: The key that holds them, for messages.

    Raises:
        InputError: A table is none of a device (see `load_user_table`), or a name is taken.
    """
    holders = _holders()
    own: list[Device] = []
    for name, table in tables.items():
        try:
            devices = load_user_table(as_table(table, "the device"), label, name, device)
            _refuse_taken(devices, name, holders)
        except InputError as error:
            raise InputError(f"{where}.{name}: {error}") from None
        own += devices
    return tuple(own)


def _holders() -> dict[str, str]:
    """Return whose each name is that tilefit itself has."""
    words = (*_VENDOR_NAMES, "all", ATTACHED, *refused_names(), *(c.name for c in capacities()))
    holders = {_fold(word): f"tilefit's own {word}" for word in words}
    return holders | {key: f"tilefit's own {found}" for key, (_, found) in _index().items()}


def _refuse_taken(devices: Sequence[Device], name: str, holders: dict[str, str]) -> None:
    """Refuse a device with a name of another; note the names of one that is new.

    Raises:
        InputError: A name is taken, or can be none.
    """
    for spelling in (s for d in devices for s in (d.name, *d.aliases)):
        if not spelling.strip() or "," in spelling or spelling.casefold().endswith(".toml"):
            raise InputError(f"name {spelling!r} is empty, has a comma or ends in .toml")
        holder = holders.setdefault(_fold(spelling), name)
        if holder != name:
            raise InputError(f"name {spelling!r} is taken by {holder}: choose another")


def _products(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    return devices[1:] or devices


def products_of(device: Device) -> tuple[str, ...]:
    """Return the names of the products of a device's architecture; none for a user's own."""
    if device.arch not in _index_file():
        return ()
    return tuple(name for name in _index_file()[device.arch] if name != device.arch)


def device_names() -> tuple[str, ...]:
    """Return the name of every device, architectures before their products."""
    return tuple(name for names in _index_file().values() for name in names)


def vendor_of(name: str) -> str:
    """Return the vendor that a name means (``"Huawei"`` is ``"ascend"``).

    Raises:
        UnknownNameError: It is no vendor.
    """
    found = _VENDOR_NAMES.get(name.casefold())
    if found is None:
        raise UnknownNameError("vendor", name, _VENDOR_NAMES)
    return found


def capacity(name: str) -> Capacity | None:
    """Return the capacity of that name, or None."""
    key = _fold(name)
    return next((c for c in capacities() if _fold(c.name) == key), None)


@cache
def capacities() -> tuple[Capacity, ...]:
    """Return every named capacity."""
    sources = read_toml(data_file("sources.toml"))
    return tuple(
        Capacity(
            name,
            entry["bytes"],
            Memory(entry["memory"]),
            entry["reason"],
            sources[entry["source"]],
            entry["confidence"],
        )
        for name, entry in read_toml(data_file("capacities.toml"))["capacities"].items()
    )


@cache
def _index_file() -> Mapping[str, Mapping[str, list[str]]]:
    """Architecture -> device -> its vendor and aliases."""
    return read_toml(data_file("device_index.toml"))


@cache
def _index() -> Mapping[str, tuple[str, str]]:
    """Folded name -> architecture and device."""
    return {
        _fold(alias): (arch, name)
        for arch, names in _index_file().items()
        for name, (_, *aliases) in names.items()
        for alias in (name, *aliases)
    }


def _fold(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in "-_ ")


def _spellings(name: str) -> Iterable[str]:
    """Yield the folded name, then without its vendor (``NVIDIA H100``), then as of TVM's target.

    TVM writes ``cuda -arch=sm_90a``, ``hip -mcpu=gfx942`` or a JSON with ``"arch"``.
    """
    key = _fold(name)
    yield key
    target = _TVM_TARGET.search(name)
    if target:
        yield _fold(target[1])
    for word in _VENDOR_WORDS:
        if key.startswith(word):
            key = key.removeprefix(word)
            yield key


def refused_names() -> Mapping[str, str]:
    """Return the names that mean several devices or none that is known, with the reason."""
    refused: Mapping[str, str] = read_toml(data_file("capacities.toml"))["refused"]
    return refused


def _refusal(name: str, own: Sequence[Device]) -> InputError:
    """Say why a name is no device."""
    found = capacity(name)
    if found is not None:
        return InputError(f"{found.name!r} is a capacity, not a device: {found.reason}")
    if _fold(name) == ATTACHED:
        return InputError(
            f"{name!r} is asked of this machine by the command line only: name the device "
            "(`tilefit devices --live` says which it is)"
        )
    for known, reason in refused_names().items():
        if _fold(known) == _fold(name):
            return InputError(f"device {name!r} is refused: {reason}")
    if _fold(name) in (*_VENDOR_NAMES, "all"):
        return InputError(f"{name!r} is a vendor, not one device (see `tilefit devices`)")
    capability = _capability(name)
    if capability:
        archs = [arch for arch in _index_file() if arch.startswith("sm_")]
        same_major = [arch for arch in archs if arch[3:-1] == capability[:-1]]
        hint = "limits of other compute capabilities are not guessed"
        return UnknownNameError("device", name, same_major or archs, hint)
    choices = [n for names in _index_file().values() for d, a in names.items() for n in (d, *a[1:])]
    choices += [n for d in own for n in (d.name, *d.aliases)]
    return UnknownNameError("device", name, choices, "`tilefit devices` lists them")


def _capability(name: str) -> str:
    """Return the digits of a name that reads as a compute capability (``sm_81``, ``8.1``)."""
    digits = _fold(name)
    for prefix in ("compute", "sm", "cc"):
        digits = digits.removeprefix(prefix)
    digits = digits.rstrip("af").replace(".", "")
    return digits if digits.isdecimal() and len(digits) in (2, 3) else ""
