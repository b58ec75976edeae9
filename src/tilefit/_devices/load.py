"""From the TOML files of devices to `Device` values, and the index of their names.

A file holds one architecture and its products. A number is ``[value, confidence, source ...]``
(or a bare value in a user's own file). ``"none"`` says that the device has no such thing, and
``"unknown"`` that nobody published it, as does a number that is not there. Run as a module, this
prints the index that ``data/device_index.toml`` must equal (a test holds it).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tilefit._devices.device import REGISTER_BYTES, VENDORS, Condition, Device, Fact, Pool
from tilefit._devices.toml import (
    as_table,
    key_path,
    names,
    one_of,
    read_toml,
    refuse_unknown_keys,
    subtable,
    text,
    texts,
)
from tilefit._errors import InputError
from tilefit._home import PACKAGE
from tilefit._kernel.memory import Memory, Owner

if TYPE_CHECKING:
    from pathlib import Path

_LAUNCH_UNITS = {
    "max_threads_per_block": "threads",
    "max_block": "threads",
    "max_grid": "blocks",
    "warp_size": "threads",
    "warp_sizes": "threads",
    "warp_group_threads": "threads",
    "max_registers_per_thread": "registers",
    "registers_per_core": "registers",
    "registers_per_block": "registers",
    "register_granule": "registers",
    "subpartitions": "",
    "max_warps_per_core": "warps",
    "max_threads_per_core": "threads",
    "max_blocks_per_core": "blocks",
    "barriers_per_core": "barriers",
    "cluster_portable_max": "blocks",
    "cluster_max": "blocks",
}
LAUNCH_LIMITS = tuple(_LAUNCH_UNITS)
"""The numbers of a device that are not those of one memory, as they are written in a file."""

_TRIPLES = ("max_block", "max_grid")
_SEVERAL = (*_TRIPLES, "warp_sizes")
_SIZES = (
    "per_block_bytes",
    "per_core_bytes",
    "physical_bytes",
    "reserved_per_block_bytes",
    "granule_bytes",
    "align_bytes",
    "default_per_block_bytes",
    "static_per_block_bytes",
    "columns",
    "lanes",
)
_MAY_BE_NONE = ("align_bytes", "default_per_block_bytes", "static_per_block_bytes")
_LISTS = ("carveouts_bytes", "columns_allocatable")
_TOP = (
    *("name", "title", "vendor", "aliases", "cores", "targets", "no_target", "memories"),
    *("launch", "conditions", "facts", "notes", "products"),
)


def data_file(*parts: str) -> Path:
    """Return the path of a file that comes with tilefit."""
    from pathlib import Path

    return Path(PACKAGE, "data", *parts)


@cache
def _sources() -> Mapping[str, str]:
    return read_toml(data_file("sources.toml"))


@cache
def load_arch(arch: str) -> tuple[Device, ...]:
    """Return an architecture that comes with tilefit, then its products."""
    return load_file(data_file("devices", f"{arch}.toml"))


def load_file(path: Path) -> tuple[Device, ...]:
    """Return the architecture that a file describes, then its products.

    Raises:
        InputError: The file cannot be read, has an unknown or missing key or a value of the
            wrong kind, or its numbers contradict each other; the message names file and key.
    """
    table = read_toml(path)
    try:
        return load_table(table, path.name, path.stem)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def load_table(table: dict[str, Any], label: str, name: str) -> tuple[Device, ...]:
    """Return the architecture that a table describes, then its products.

    Args:
        table: In the layout of ``data/devices/*.toml``.
        label: Where the table is written, for the source of numbers that name none.
        name: What it is called unless the table says.

    Raises:
        InputError: As `load_file`, without the file.
    """
    return _Reader(label).devices(table, default_name=name)


class _Reader:
    """Turns one file's tables into values and collects the source of every number."""

    def __init__(self, label: str) -> None:
        self._facts: list[Fact] = []
        self._notes: Mapping[str, str] = {}
        self._own = f"written in {label}"

    def devices(self, table: dict[str, Any], default_name: str) -> tuple[Device, ...]:
        refuse_unknown_keys(table, _TOP, "")
        name = text(table, "name", "", default_name)
        self._notes = texts(table, "notes")
        pools = self._pools(table)
        launch = self._launch(subtable(table, "launch", ""))
        pools += _register_pool(launch, pools)
        conditions = tuple(self._conditions(table))
        for key, raw in subtable(table, "facts", "").items():
            self._number(raw, f"facts.{key}", key, _bytes_unit(key))
        shared = tuple(self._facts)
        arch = Device(
            name=name,
            title=text(table, "title", "", name),
            vendor=one_of(text(table, "vendor", ""), VENDORS, "vendor"),
            arch=name,
            aliases=names(table, "aliases", ""),
            cores=self._cores(table, ""),
            pools=pools,
            conditions=conditions,
            targets=tuple(texts(table, "targets").items()),
            no_target=tuple(texts(table, "no_target").items()),
            facts=tuple(self._facts),
            **launch,
        )
        products = []
        for product, raw in subtable(table, "products", "").items():
            where = f"products.{product}"
            entry = as_table(raw, where)
            refuse_unknown_keys(entry, ("title", "aliases", "cores"), where)
            self._facts = list(shared)
            products.append(
                replace(
                    arch,
                    name=product,
                    title=text(entry, "title", where, product),
                    aliases=names(entry, "aliases", where),
                    product=True,
                    cores=self._cores(entry, where),
                    facts=tuple(self._facts),
                )
            )
        return (arch, *products)

    def _pools(self, table: dict[str, Any]) -> tuple[Pool, ...]:
        pools = []
        for name, raw in subtable(table, "memories", "").items():
            where = f"memories.{name}"
            entry = as_table(raw, where)
            refuse_unknown_keys(entry, ("owner", "core", *_SIZES, *_LISTS), where)
            memory = Memory(one_of(name, [m.value for m in Memory], where))
            owner = one_of(text(entry, "owner", where, "block"), [o.value for o in Owner], where)
            size: dict[str, int | None] = {}
            for key in _SIZES:
                if key in entry:
                    size[key] = self._int(
                        entry[key], f"{where}.{key}", f"{name}.{key}", _bytes_unit(key)
                    )
            lists = {
                key: self._ints(entry[key], f"{where}.{key}", f"{name}.{key}", _bytes_unit(key))
                for key in _LISTS
                if key in entry
            }
            block = size.get("per_block_bytes")
            if block is None:
                raise InputError(f"{where}.per_block_bytes is missing")
            reserved = size.get("reserved_per_block_bytes") or 0
            physical = size.get("physical_bytes")
            core = size.get("per_core_bytes") or physical or block + reserved
            pools.append(
                Pool(
                    memory=memory,
                    owner=Owner(owner),
                    core=text(entry, "core", where, "core"),
                    per_block_bytes=block,
                    per_core_bytes=core,
                    physical_bytes=physical or core,
                    reserved_per_block_bytes=reserved,
                    granule_bytes=size.get("granule_bytes") or 1,
                    align_bytes=size.get("align_bytes"),
                    default_per_block_bytes=size.get("default_per_block_bytes"),
                    static_per_block_bytes=size.get("static_per_block_bytes"),
                    carveouts_bytes=lists.get("carveouts_bytes") or (),
                    columns=size.get("columns"),
                    lanes=size.get("lanes"),
                    no_limit=tuple(key for key in _MAY_BE_NONE if self._absent(f"{name}.{key}")),
                )
            )
        return tuple(pools)

    def _launch(self, table: dict[str, Any]) -> dict[str, Any]:
        refuse_unknown_keys(table, _LAUNCH_UNITS, "launch")
        limits: dict[str, Any] = {}
        for key, raw in table.items():
            where, unit = f"launch.{key}", _LAUNCH_UNITS[key]
            if key not in _SEVERAL:
                limits[key] = self._int(raw, where, key, unit)
                continue
            limits[key] = several = self._ints(raw, where, key, unit)
            if key in _TRIPLES and several is not None and len(several) != 3:
                raise InputError(f"{where}: {list(several)} is not three numbers (x, y, z)")
        limits["no_limit"] = tuple(key for key in table if self._absent(key))
        return limits

    def _absent(self, key: str) -> bool:
        return any(fact.key == key and fact.absent for fact in self._facts)

    def _conditions(self, table: dict[str, Any]) -> Iterable[Condition]:
        raw = table.get("conditions", [])
        if not isinstance(raw, list):
            raise InputError("conditions is not a list of tables ([[conditions]])")
        for index, item in enumerate(raw):
            where = f"conditions[{index}]"
            entry = as_table(item, where)
            refuse_unknown_keys(entry, ("memory", "code", "when", "per_block_bytes"), where)
            memory = one_of(text(entry, "memory", where), [m.value for m in Memory], where)
            code = text(entry, "code", where)
            key = f"{memory}.per_block_bytes ({code})"
            size = self._int(entry.get("per_block_bytes"), f"{where}.per_block_bytes", key, "bytes")
            if size is None:
                raise InputError(f"{where}.per_block_bytes is missing")
            yield Condition(Memory(memory), code, text(entry, "when", where), size)

    def _cores(self, table: dict[str, Any], where: str) -> tuple[tuple[str, int], ...]:
        cores = []
        for kind, raw in subtable(table, "cores", where).items():
            count = self._int(raw, key_path(where, f"cores.{kind}"), f"cores.{kind}", "cores")
            if count is not None:
                cores.append((kind, count))
        return tuple(cores)

    def _int(self, raw: object, where: str, key: str, unit: str) -> int | None:
        value = self._number(raw, where, key, unit)
        if isinstance(value, tuple):
            raise InputError(f"{where}: {list(value)} is not one whole number")
        return value

    def _ints(self, raw: object, where: str, key: str, unit: str) -> tuple[int, ...] | None:
        value = self._number(raw, where, key, unit)
        if isinstance(value, int):
            raise InputError(f"{where}: {value!r} is not a list of whole numbers")
        return value

    def _number(self, raw: object, where: str, key: str, unit: str) -> int | tuple[int, ...] | None:
        value: object = raw
        confidence, source = "unknown", self._own
        if isinstance(raw, list) and len(raw) >= 2 and isinstance(raw[1], str):
            value, confidence, *keys = raw
            if not keys or not all(isinstance(k, str) for k in keys):
                raise InputError(f"{where}: the source is missing ([value, confidence, source])")
            source = "; ".join(_sources().get(k, k) for k in keys)
        number: int | tuple[int, ...] | None
        if value in ("none", "unknown"):
            number = None
        elif isinstance(value, list) and value and all(map(_whole, value)):
            number = tuple(value)
        elif isinstance(value, int) and _whole(value):
            number = value
        else:
            raise InputError(
                f'{where}: {value!r} is not a whole number from 0, nor "none" or "unknown"'
            )
        note = self._notes.get(key, "")
        self._facts.append(Fact(key, number, unit, source, confidence, note, value == "none"))
        return number


def _register_pool(launch: dict[str, Any], pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """Derive the register file as a memory: registers x 4 bytes."""
    per_core = launch.get("registers_per_core")
    if not per_core or not pools:
        return ()
    per_block = launch.get("registers_per_block") or per_core
    return (
        Pool(
            memory=Memory.REGISTERS,
            owner=Owner.THREAD,
            core=pools[0].core,
            per_block_bytes=per_block * REGISTER_BYTES,
            per_core_bytes=per_core * REGISTER_BYTES,
            physical_bytes=per_core * REGISTER_BYTES,
            granule_bytes=(launch.get("register_granule") or 1) * REGISTER_BYTES,
        ),
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _bytes_unit(key: str) -> str:
    return "bytes" if key.endswith("_bytes") else ""


def index_text() -> str:
    """Return the index of names: for each architecture its devices and their aliases."""
    import json
    import re

    def natural(stem: str) -> list[tuple[int, str]]:
        # numbers by value; "~" sorts ascend-910_93 after ascend-910b
        parts = re.split(r"(\d+)", stem.replace("_", "~"))
        return [(int(p), "") if p.isdigit() else (-1, p) for p in parts]

    archs = [load_arch(path.stem) for path in data_file("devices").glob("*.toml")]
    archs.sort(key=lambda devices: (VENDORS.index(devices[0].vendor), natural(devices[0].arch)))
    lines = ["# Made by `python -m tilefit._devices.load`; do not edit. A test compares."]
    for devices in archs:
        lines += ["", f"[{devices[0].arch}]"]
        lines += [f"{d.name} = {json.dumps([d.vendor, *d.aliases])}" for d in devices]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(index_text())
