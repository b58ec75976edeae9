"""What an attached device says of itself, beside our table. Pure: `attached` does the asking.

The vendors' names for a limit are turned into the keys of `tilefit._devices.device.Fact`, so that
each line has a live value and ours. The table decides verdicts; a difference is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilefit._devices.names import Device, device
from tilefit._errors import InputError
from tilefit._kernel.memory import Memory


@dataclass(frozen=True, slots=True)
class Attached:
    """One device of a machine, as its vendor's own software describes it.

    Attributes:
        index: Its number on that machine.
        name: The vendor's name, for example ``"NVIDIA H200"``.
        vendor: ``"nvidia"``, ``"amd"`` or ``"ascend"``.
        arch: Our name of its architecture if there is such a one, else what was said.
        through: What was asked, with version: ``"cuda-bindings 13.5.0"``.
        values: Key of the limit and its live value; sizes are bytes.
        note: Where values come from beside ``through``; empty if from nowhere else.
    """

    index: int
    name: str
    vendor: str
    arch: str
    through: str
    values: tuple[tuple[str, int], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One limit of an attached device beside the table's.

    Attributes:
        limit: The key, for example ``"shared.per_block_bytes"`` or ``"max_grid.y"``.
        live: What the device says.
        ours: What the table says; None if it has no such number.
    """

    limit: str
    live: int
    ours: int | None

    @property
    def unit(self) -> str:
        """``"bytes"``, or empty for a count."""
        return "bytes" if self.limit.endswith("_bytes") else ""

    @property
    def differs(self) -> bool:
        """Whether both have a number and not the same one."""
        return self.ours is not None and self.ours != self.live


@dataclass(frozen=True, slots=True)
class Comparison:
    """An attached device and our table's entry for it.

    Attributes:
        attached: The device as it describes itself.
        device: Ours: its product, else its architecture, else None.
        lines: Every limit that the device names.
    """

    attached: Attached
    device: Device | None
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What asking this machine gave.

    Attributes:
        devices: The attached devices, compared with the table.
        asked: What was asked, and what it said in words.
    """

    devices: tuple[Comparison, ...]
    asked: tuple[tuple[str, str], ...]

    @property
    def nothing_attached(self) -> str:
        """One line for a machine without a device: what was asked and what it said."""
        said: dict[str, list[str]] = {}
        for through, answer in self.asked:
            said.setdefault(answer, []).append(through)
        parts = "; ".join(f"{', '.join(who)}: {what}" for what, who in said.items())
        return f"no device is attached, or none that answers ({parts})"


# The CUDA driver's attributes (lower case, as in cuda-bindings) and torch's properties.
_CUDA = {
    "max_shared_memory_per_block_optin": "shared.per_block_bytes",
    "shared_memory_per_block_optin": "shared.per_block_bytes",
    "max_shared_memory_per_multiprocessor": "shared.per_core_bytes",
    "shared_memory_per_multiprocessor": "shared.per_core_bytes",
    "reserved_shared_memory_per_block": "shared.reserved_per_block_bytes",
    "max_shared_memory_per_block": "shared.default_per_block_bytes",
    "shared_memory_per_block": "shared.default_per_block_bytes",
    "max_threads_per_block": "max_threads_per_block",
    "warp_size": "warp_size",
    "max_registers_per_multiprocessor": "registers_per_core",
    "regs_per_multiprocessor": "registers_per_core",
    "max_registers_per_block": "registers_per_block",
    "max_threads_per_multiprocessor": "max_threads_per_core",
    "max_threads_per_multi_processor": "max_threads_per_core",
    "max_blocks_per_multiprocessor": "max_blocks_per_core",
    "multiprocessor_count": "cores.SM",
    "multi_processor_count": "cores.SM",
}
_TRIPLES = ("max_block", "max_grid")
# HIP's sharedMemPerMultiprocessor is left out: older ROCm gives the whole card's
_HIP = {
    "shared_memory_per_block": "lds.per_block_bytes",
    "max_threads_per_block": "max_threads_per_block",
    "warp_size": "warp_size",
    "regs_per_multiprocessor": "registers_per_core",
    "max_threads_per_multi_processor": "max_threads_per_core",
}
_PLATFORM = {
    "ub_size": "ub.per_block_bytes",
    "l1_size": "l1.per_block_bytes",
    "l0_a_size": "l0a.per_block_bytes",
    "l0_b_size": "l0b.per_block_bytes",
    "l0_c_size": "l0c.per_block_bytes",
    "bt_size": "bias.per_block_bytes",
}
_FIXPIPE = ("fb0_size", "fb1_size", "fb2_size", "fb3_size")
_ASCEND_ARCHS = {
    "ascend310p": "ascend-310p",
    "ascend910": "ascend-910a",
    "ascend910b": "ascend-910b",
    "ascend910_93": "ascend-910_93",
    "ascend910_95": "ascend-950",  # its name before the product had one
    "ascend950": "ascend-950",
}
_LINKED = ("ascend-910b", "ascend-910_93")
# of UB and L1 GetCoreMemSize keeps what the cube-vector link takes there (CANN asc-devkit,
# platform_ascendc.cpp): it is the reserved part of our table
_LINK = {"ub_size": Memory.UB, "l1_size": Memory.L1}
# cube and vector cores go by other names where one core is both
_ASCEND_CORES = {"ascend-310p": ("AI core", "vector"), "ascend-910a": ("AI core", "vector")}


def read(document: Mapping[str, Any]) -> Answer:
    """Return what the document of `tilefit._devices.probe` says, compared with the table.

    A property that is missing or of another kind is left out: bindings differ by version.
    """
    readers = {"cuda": _cuda, "hip": _hip, "npu": _npu}
    devices = [
        compare(readers[entry["kind"]](entry))
        for entry in document["devices"]
        if entry.get("kind") in readers
    ]
    return Answer(tuple(devices), tuple((a, b) for a, b in document["asked"]))


def compare(attached: Attached) -> Comparison:
    """Set an attached device beside our table's entry for it."""
    ours = table_device(attached)
    lines = (Line(key, live, _ours(ours, key) if ours else None) for key, live in attached.values)
    return Comparison(attached, ours, tuple(lines))


def table_device(attached: Attached) -> Device | None:
    """Return our entry for an attached device, or None.

    Its product where the name is known and of the architecture that it says; else the
    architecture, which has the limits and no core count.
    """
    arch = _find(attached.arch)
    # a slice of a card (MIG) has the card's limits per block and per core
    product = _find(attached.name.partition(" MIG ")[0])
    if product is not None and product.product and (arch is None or arch.arch == product.arch):
        return product
    return arch


def _find(name: str) -> Device | None:
    try:
        return device(name)
    except InputError:
        return None


def _ours(found: Device, key: str) -> int | None:
    group, dot, rest = key.partition(".")
    value: int | None
    if not dot:
        value = getattr(found, key)
    elif group in _TRIPLES:
        triple = getattr(found, group)
        value = None if triple is None else triple["xyz".index(rest)]
    elif group == "cores":
        value = dict(found.cores).get(rest)
    else:
        value = getattr(found.pool(group), rest) if found.has(group) else None
    return value


def _cuda(entry: Mapping[str, Any]) -> Attached:
    raw = _numbers(entry)
    major = raw.get("compute_capability_major", raw.get("major"))
    minor = raw.get("compute_capability_minor", raw.get("minor"))
    values = _renamed(raw, _CUDA)
    values |= _renamed(raw, {f"{key}_dim_{i}": f"{key}.{i}" for key in _TRIPLES for i in "xyz"})
    arch = "" if major is None or minor is None else f"sm_{major}{minor}"
    return _attached(entry, "nvidia", arch, values)


def _hip(entry: Mapping[str, Any]) -> Attached:
    raw = _numbers(entry)
    arch = str(entry["properties"].get("gcnArchName", "")).partition(":")[0]
    values = _renamed(raw, _HIP)
    found = _find(arch)
    if found is not None and "multi_processor_count" in raw:
        # RDNA pairs its CUs, and HIP counts the pairs: the cores of our table
        values[f"cores.{found.main_pool.core}"] = raw["multi_processor_count"]
    return _attached(entry, "amd", arch, values)


def _npu(entry: Mapping[str, Any]) -> Attached:
    raw = _numbers(entry)
    platform = {k: int(v) for k, v in entry.get("platform", {}).items() if str(v).isdecimal()}
    short = str(entry.get("platform", {}).get("short_soc_version", ""))
    product = _find(str(entry["properties"].get("name", "")))
    arch = _ASCEND_ARCHS.get(short.casefold(), short)
    if not arch and product is not None and product.product:
        arch = product.arch
    if arch in _LINKED:
        pools = {key: device(arch).pool(memory) for key, memory in _LINK.items() if key in platform}
        platform |= {k: platform[k] - p.reserved_per_block_bytes for k, p in pools.items()}
    values = _renamed(platform, _PLATFORM)
    if _FIXPIPE[0] in platform:
        values["fixpipe.per_block_bytes"] = sum(platform.get(name, 0) for name in _FIXPIPE)
    cube, vector = _ASCEND_CORES.get(arch, ("AIC", "AIV"))
    counts = {
        f"cores.{cube}": raw.get("cube_core_num") or platform.get("ai_core_cnt"),
        f"cores.{vector}": raw.get("vector_core_num") or platform.get("vector_core_cnt"),
    }
    values |= {key: count for key, count in counts.items() if count}
    note = f"sizes as GetCoreMemSize gives them, from {entry['platform_file']}" if platform else ""
    return _attached(entry, "ascend", arch, values, note)


def _attached(
    entry: Mapping[str, Any], vendor: str, arch: str, values: Mapping[str, int], note: str = ""
) -> Attached:
    name = str(entry["properties"].get("name", "")).strip() or "a device without a name"
    index, through = int(entry["index"]), str(entry["through"])
    return Attached(index, name, vendor, arch, through, tuple(values.items()), note)


def _numbers(entry: Mapping[str, Any]) -> dict[str, int]:
    properties: Mapping[str, Any] = entry["properties"]
    return {k: v for k, v in properties.items() if isinstance(v, int) and not isinstance(v, bool)}


def _renamed(raw: Mapping[str, int], keys: Mapping[str, str]) -> dict[str, int]:
    """Return the values under our keys, in the order of ``keys``."""
    return {ours: raw[theirs] for theirs, ours in keys.items() if theirs in raw}


def attached_names(answer: Answer) -> Iterable[str]:
    """Yield the name of our entry for each attached device.

    Raises:
        InputError: Nothing is attached, or a device is in no table.
    """
    if not answer.devices:
        raise InputError(f"attached: {answer.nothing_attached}")
    for found in answer.devices:
        if found.device is None:
            one = found.attached
            raise InputError(
                f"attached: no table has {one.name} ({one.arch or 'architecture unknown'}); "
                "describe it in a file of your own (docs/devices.md) and name that"
            )
        yield found.device.name
