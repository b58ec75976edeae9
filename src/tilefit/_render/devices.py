"""The answer of ``devices``: a list, one device with the source of every number, or JSON.

Plain text without colour, at most 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from tilefit._devices.load import LAUNCH_LIMITS
from tilefit._devices.names import Capacity, Device, Fact, Pool
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.units import human

_WIDTH = 80
_VALUE_WIDTH = 26
_VENDOR_TITLES = {
    "nvidia": "NVIDIA",
    "amd": "AMD",
    "ascend": "Huawei Ascend",
    "apple": "Apple, limits only",
    "intel": "Intel, limits only",
    "tpu": "Google TPU, limits only",
}


def render_list(
    devices: Sequence[Device],
    memory: Memory | None,
    capacities: Sequence[Capacity] = (),
    own: Sequence[Device] = (),
) -> str:
    """Return one line for each device, grouped by vendor.

    Args:
        devices: What to list; each has ``memory`` if that is given.
        memory: Show this memory; None: the one that tiles are staged in.
        capacities: Named capacities to mention at the end.
        own: The user's own devices, to list after the others.
    """
    lines: list[str] = []
    for mine, of in ((False, devices), (True, own)):
        for vendor, group in groupby(of, lambda d: d.vendor):
            title = f"{_VENDOR_TITLES[vendor]}{', your own' if mine else ''}"
            lines += [*_vendor_lines(title, list(group), memory), ""]
    for c in capacities:
        lines += [f"{c.name}: {_number(c.bytes)} B, a capacity for budget and footprint"]
    return "\n".join([*lines, "`tilefit devices h100`: one device and where its numbers come from"])


def _vendor_lines(title: str, shown: Sequence[Device], memory: Memory | None) -> Iterable[str]:
    pools = [d.main_pool if memory is None else d.pool(memory) for d in shown]
    rows = [_row(d, pool) for d, pool in zip(shown, pools, strict=True)]
    header = ("device", "arch", "bytes", "KiB", "of KiB", "cores")
    yield f"{title}: {_memory_title(pools)}"
    yield from columns([header, *rows], right=(2, 3, 4))


def _memory_title(pools: Sequence[Pool]) -> str:
    names = sorted({_memory_name(pool.memory) for pool in pools})
    return f"{' or '.join(names)} that {_user(pools[0])} may use, of KiB a core has"


def _user(pool: Pool) -> str:
    per_core = pool.owner in (Owner.AIV, Owner.AIC, Owner.CORE)
    return "one kernel" if per_core else "one block"


def _memory_name(memory: Memory) -> str:
    return f"{memory} memory" if len(memory) > 4 else memory.upper()


def _row(device: Device, pool: Pool) -> tuple[str, ...]:
    return (
        f"  {device.name}" if device.product else device.name,
        device.arch,
        _number(pool.per_block_bytes),
        _kib(pool.per_block_bytes),
        _kib(pool.per_core_bytes),
        _cores(device),
    )


def render_one(device: Device) -> str:
    """Return the limits of one device, with the source and confidence of every number."""
    lines = [f"{device.name}   {device.title}"]
    lines += wrap("arch     ", f"{device.arch}, cores: {_cores(device)}")
    if device.aliases:
        lines += wrap("also     ", ", ".join(device.aliases))
    for toolchain, target in device.targets:
        lines += wrap("target   ", f"{toolchain} {target}")
    for toolchain, reason in device.no_target:
        lines += wrap("target   ", f"{toolchain} none: {reason}")
    lines += ["", *columns(_memory_rows(device), right=(1, 2, 3, 4))]
    for condition in device.conditions:
        size = f"{_number(condition.per_block_bytes)} B = {human(condition.per_block_bytes)}"
        lines += wrap("  ", f"{condition.memory}: {size} if {condition.when}")
    sources: dict[str, int] = {}
    lines += ["", *_fact_lines(device.facts, sources), "", "sources"]
    for source, number in sources.items():
        lines += wrap(f"  {number:>2}  ", source)
    return "\n".join(lines)


def _memory_rows(device: Device) -> Iterable[tuple[str, ...]]:
    yield ("memory", f"{_user(device.main_pool)} may use", "", "a core has", "", "core")
    for pool in device.pools:
        yield (
            pool.memory,
            f"{_number(pool.per_block_bytes)} B",
            human(pool.per_block_bytes),
            f"{_number(pool.per_core_bytes)} B",
            human(pool.per_core_bytes),
            pool.core,
        )


def _fact_lines(facts: Sequence[Fact], sources: dict[str, int]) -> Iterable[str]:
    import textwrap

    width = max((len(fact.key) for fact in facts), default=0)
    yield f"{'number':<{width}}  {'value':<{_VALUE_WIDTH}} confidence  source"
    for fact in facts:
        # textwrap never splits a value that fits: a long list goes on under its first line
        first, *more = textwrap.wrap(value_text(fact), _VALUE_WIDTH)
        numbers = ",".join(
            str(sources.setdefault(source, len(sources) + 1)) for source in fact.source.split("; ")
        )
        yield f"{fact.key:<{width}}  {first:<{_VALUE_WIDTH}} {fact.confidence:<10}  {numbers}"
        yield from (f"{'':<{width}}  {line}" for line in more)
        if fact.note:
            yield from textwrap.wrap(
                fact.note, _WIDTH, initial_indent="    ", subsequent_indent="    "
            )


def value_text(fact: Fact) -> str:
    """Return a number as people read it, with its unit."""
    if fact.value is None:
        return "none" if fact.absent else "not published"
    if isinstance(fact.value, tuple):
        if fact.unit == "bytes" and all(v % 1024 == 0 for v in fact.value):
            return f"{' '.join(str(v // 1024) for v in fact.value)} KiB"
        return " ".join(map(str, fact.value))
    if fact.unit == "bytes":
        size = f"{_number(fact.value)} B"
        return size if fact.value < 1024 else f"{size} = {human(fact.value)}"
    return f"{_number(fact.value)} {fact.unit}".rstrip()


def _cores(device: Device) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in device.cores) or "-"


def _kib(n_bytes: int) -> str:
    return f"{n_bytes / 1024:,.15g}"


def _number(value: int) -> str:
    return f"{value:,}"


def wrap(label: str, text: str) -> list[str]:
    """Break a sentence into lines below a label."""
    import textwrap

    return textwrap.wrap(text, _WIDTH, initial_indent=label, subsequent_indent=" " * len(label))


def columns(rows: Iterable[tuple[str, ...]], right: Sequence[int]) -> list[str]:
    """Align to the left, but the columns named in ``right``."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            f"{cell:>{width}}" if i in right else f"{cell:<{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def devices_dict(devices: Sequence[Device]) -> dict[str, Any]:
    """Return the document of ``devices --json`` but for its version; sizes are bytes."""
    return {"devices": [_device_dict(device) for device in devices]}


def _device_dict(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "title": device.title,
        "aliases": list(device.aliases),
        "vendor": device.vendor,
        "arch": device.arch,
        "product": device.product,
        "cores": dict(device.cores),
        "targets": dict(device.targets),
        "no_target": dict(device.no_target),
        "memories": {pool.memory: _pool_dict(pool) for pool in device.pools},
        "conditions": [
            {
                "memory": c.memory,
                "code": c.code,
                "when": c.when,
                "per_block_bytes": c.per_block_bytes,
            }
            for c in device.conditions
        ],
        "limits": {name: getattr(device, name) for name in LAUNCH_LIMITS},
        "no_limit": [
            *device.no_limit,
            *(f"{pool.memory}.{name}" for pool in device.pools for name in pool.no_limit),
        ],
        "sources": [
            {
                "key": fact.key,
                "value": fact.value,
                "unit": fact.unit,
                "source": fact.source,
                "confidence": fact.confidence,
                "note": fact.note,
            }
            for fact in device.facts
        ],
    }


def _pool_dict(pool: Pool) -> dict[str, Any]:
    return {
        "owner": pool.owner,
        "core": pool.core,
        "per_block_bytes": pool.per_block_bytes,
        "per_core_bytes": pool.per_core_bytes,
        "physical_bytes": pool.physical_bytes,
        "reserved_per_block_bytes": pool.reserved_per_block_bytes,
        "granule_bytes": pool.granule_bytes,
        "align_bytes": pool.align_bytes,
        "default_per_block_bytes": pool.default_per_block_bytes,
        "static_per_block_bytes": pool.static_per_block_bytes,
        "carveouts_bytes": list(pool.carveouts_bytes),
        "columns": pool.columns,
        "lanes": pool.lanes,
    }
