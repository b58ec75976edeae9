"""docs/devices.md, made from the data.

``python -m tilefit._render.devices_page > docs/devices.md`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from tilefit._devices.names import Device, Fact, capacities, device, device_names, refused_names
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import human
from tilefit._render.devices import value_text

_ABOUT = """\
# Devices

Made by `python -m tilefit._render.devices_page` from `src/tilefit/data/`; a test compares.

*One block may use* is the limit that a verdict holds a kernel to; what a core has is shared by
its resident blocks, and each takes the reserved part and is rounded up to the granule.
`tilefit devices NAME` prints every number of one device with its source and confidence, and
`tilefit devices --memory tensor` or `--vendor amd` filters the list.

`-` says that the architecture has no such thing: no clusters, or no limit to hold a kernel to. `?`
says that nobody published the number, so a verdict that needs it is `unknown`.

Case, `-`, `_` and spaces do not matter in a name (`RTX 4090`, `sm90`, `Ascend910B1`), and the name
that a driver reports works too (`NVIDIA H100 80GB HBM3`). `-d` takes names with commas between,
a vendor (its products), `all` (NVIDIA, AMD and Ascend), the path of a `.toml` file, and `attached`.
"""

_OWN = """\
## A device of your own

Write a file and name it (`-d lab.toml`), or put a table into `pyproject.toml`, where a name is
enough (`-d lab-card`). The nearest `pyproject.toml` with a `[tool.tilefit]` is read, from the
current folder up. `targets` is what `-d` means to `plan` when it is left out.

```toml
[tool.tilefit]
targets = ["h100", "lab-card"]

[tool.tilefit.device.lab-card]
base = "rtx-4090"             # all of it, but for what follows
cores = { SM = 96 }

[tool.tilefit.device.lab-card.launch]
max_threads_per_block = 512

[tool.tilefit.device.lab-chip]
vendor = "nvidia"             # in full: a vendor and one memory are enough

[tool.tilefit.device.lab-chip.targets]
tilelang = "sm_90a"

[tool.tilefit.device.lab-chip.memories.shared]
per_block_bytes = 130048
reserved_per_block_bytes = 1024
granule_bytes = 128
```

The keys are those of `src/tilefit/data/devices/*.toml`, and a file of your own may have a `base`
too. A number is a whole number of bytes, or `[number, confidence, source]`. `"none"` in place of
a number says that the device has no such limit, and `"unknown"`, like a number that is left out,
that it is not known. An unknown key is refused, and so are numbers that contradict each other:

- `per_block_bytes` + `reserved_per_block_bytes` is at most `per_core_bytes`, and that at most
  `physical_bytes`;
- the same sum is a multiple of `granule_bytes`;
- `default_per_block_bytes`, `static_per_block_bytes` and what a condition leaves are at most
  `per_block_bytes`;
- `carveouts_bytes` ascend, up to `per_core_bytes`; `physical_bytes` is a multiple of `columns`;
- `registers_per_block` and `max_registers_per_thread` are at most `registers_per_core`,
  `max_threads_per_block` at most `max_threads_per_core`, `cluster_portable_max` at most
  `cluster_max`;
- `max_warps_per_core` x `warp_size` is `max_threads_per_core`; `warp_sizes` has `warp_size`, and
  `warp_group_threads` is a multiple of it;
- `registers_per_core` and `max_warps_per_core` are multiples of `subpartitions`.

A name that is tilefit's own already is refused.
"""

_LIVE = """\
## What is attached

`tilefit devices --live` asks the devices of this machine and shows each limit beside ours, and
`-d attached` plans for them. NVIDIA is asked through cuda-bindings (cuda-core brings it along),
Ascend through CANN's `acl` and its `platform_config/*.ini`, and both, with AMD, through torch
where the others are missing. They are asked in a child process, by this interpreter or by the one
of `--python`; tilefit itself needs none of them.

- The table decides verdicts. A difference is a warning with both numbers.
- A product that is not in the table has the limits of its architecture, and no core count.
- UB and L1 of Ascend are what `GetCoreMemSize` returns: the `.ini` value, less 256 B on A2 and A3.
- LDS of an AMD core is not compared: HIP versions differ in what they count.
- No device, no driver or no binding is one line and exit code 0.
"""

Column = tuple[str, Callable[[Device], str]]


def page() -> str:
    """Return the page."""
    archs = [d for d in map(device, device_names()) if not d.product]
    products = [d for d in map(device, device_names()) if d.product]
    sections = [
        _ABOUT.rstrip("\n"),
        *_limits("NVIDIA", archs, "nvidia", _gpu(Memory.SHARED, "SM")),
        f"TMEM is tensor memory: {_tensor_columns(archs)} columns. Clusters: blocks on every chip, "
        "and with the opt-in.",
        *_limits("AMD", archs, "amd", _gpu(Memory.LDS, "CU or WGP")),
        f"A core is a CU on {_with_core(archs, 'CU')}, a WGP of two CUs on the others.",
        *_limits("Huawei Ascend", archs, "ascend", _ascend()),
        "What one kernel may use on one core. From 910B on UB is the vector core's, and the others",
        "are the cube core's; before that one core has them all.",
        *_others(archs),
        *_products(products),
        *_conditions(archs),
        *_no_devices(),
        "",
        _OWN,
        _LIVE.rstrip("\n"),
        *_doubtful(),
        *_sources(),
    ]
    return "\n".join(sections) + "\n"


def _limits(
    title: str, archs: Sequence[Device], vendor: str, columns: Sequence[Column]
) -> Iterable[str]:
    yield from ("", f"## {title}", "")
    yield from _table(columns, [d for d in archs if d.vendor == vendor])
    yield ""


def _gpu(memory: Memory, core: str) -> Sequence[Column]:
    def of(key: str) -> Callable[[Device], str]:
        return lambda d: human(getattr(d.pool(memory), key))

    def most(found: Device) -> str:
        return _bytes(found.pool(memory).per_block_bytes)

    def count(key: str) -> Callable[[Device], str]:
        return lambda d: _count(d, key)

    nvidia: Sequence[Column] = (
        ("registers a thread", count("max_registers_per_thread")),
        ("TMEM", lambda d: _size(d, Memory.TENSOR)),
        ("cluster", _cluster),
    )
    amd: Sequence[Column] = (("registers a lane", count("max_registers_per_thread")),)
    return (
        ("name", lambda d: f"`{d.name}`"),
        ("one block may use", most),
        (f"{core} has", of("per_core_bytes")),
        ("reserved a block", of("reserved_per_block_bytes")),
        ("granule", of("granule_bytes")),
        ("threads a block", count("max_threads_per_block")),
        ("warps" if memory is Memory.SHARED else "waves", count("max_warps_per_core")),
        ("blocks", count("max_blocks_per_core")),
        ("registers", count("registers_per_core")),
        *(nvidia if memory is Memory.SHARED else amd),
    )


def _ascend() -> Sequence[Column]:
    memories = (Memory.UB, Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C, Memory.BIAS)

    def of(memory: Memory) -> Callable[[Device], str]:
        return lambda d: _size(d, memory)

    return (
        ("name", lambda d: f"`{d.name}`"),
        *((memory.upper() if len(memory) < 4 else memory, of(memory)) for memory in memories),
        ("fixpipe", of(Memory.FIXPIPE)),
        ("UB on the chip", lambda d: human(d.pool(Memory.UB).physical_bytes)),
    )


def _others(archs: Sequence[Device]) -> Iterable[str]:
    yield from ("", "## Limits only", "")
    yield "No toolchain here compiles for these; `footprint` and `budget` know their memory."
    yield ""
    columns: Sequence[Column] = (
        ("name", lambda d: f"`{d.name}`"),
        ("", lambda d: d.title),
        ("memory", lambda d: d.main_pool.memory.value),
        ("one block may use", lambda d: _bytes(d.main_pool.per_block_bytes)),
        ("a core has", lambda d: human(d.main_pool.per_core_bytes)),
    )
    yield from _table(columns, [d for d in archs if d.vendor in ("apple", "intel", "tpu")])


def _products(products: Sequence[Device]) -> Iterable[str]:
    yield from ("", "## Products", "", "The limits are those of the architecture.", "")
    columns: Sequence[Column] = (
        ("name", lambda d: f"`{d.name}`"),
        ("", lambda d: d.title),
        ("architecture", lambda d: f"`{d.arch}`"),
        ("cores", lambda d: ", ".join(f"{n} {kind}" for kind, n in d.cores) or "not known here"),
        ("also", lambda d: ", ".join(f"`{alias}`" for alias in d.aliases)),
    )
    yield from _table(columns, products)


def _conditions(archs: Sequence[Device]) -> Iterable[str]:
    yield from ("", "## Less in some cases", "")
    for one in archs:
        for c in one.conditions:
            size = _bytes(c.per_block_bytes)
            yield f"- `{one.name}`, {c.memory}: {size} if {c.when} (`{c.code}`)"


def _no_devices() -> Iterable[str]:
    yield from ("", "## Names that are no device", "")
    for c in capacities():
        yield f"- `{c.name}` is {c.bytes:,} B for `budget` and `footprint`; {c.reason}."
    for name, reason in refused_names().items():
        yield f"- `{name}` is refused: {reason}."


def _doubtful() -> Iterable[str]:
    yield from ("", "## Numbers to doubt", "")
    yield "All others are of high confidence: read in a primary source, or in two that agree."
    yield from ("", "| number | value | confidence | of | source |", "|---|---|---|---|---|")
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for found in map(device, device_names()):
        for fact in _own_facts(found):
            if fact.confidence != "high":
                row = (fact.key, value_text(fact), fact.confidence, fact.source)
                rows.setdefault(row, []).append(f"`{found.name}`")
    for (key, value, confidence, source), of in sorted(rows.items()):
        yield f"| {key} | {value} | {confidence} | {', '.join(of)} | {source} |"


def _own_facts(found: Device) -> Iterable[Fact]:
    """Return the numbers of an architecture, and of a product those that are its own."""
    return (f for f in found.facts if not found.product or f.key.startswith("cores."))


def _sources() -> Iterable[str]:
    yield from ("", "## Sources", "")
    facts = [fact for name in device_names() for fact in device(name).facts]
    texts = {text for fact in facts for text in fact.source.split("; ")}
    yield from (f"- {text}" for text in sorted(texts))


def _table(columns: Sequence[Column], devices: Iterable[Device]) -> Iterable[str]:
    yield f"| {' | '.join(title for title, _ in columns)} |"
    yield "|" + "---|" * len(columns)
    for found in devices:
        yield f"| {' | '.join(cell(found) for _, cell in columns)} |"


def _size(found: Device, memory: Memory) -> str:
    return _bytes(found.pool(memory).per_block_bytes) if found.has(memory) else "-"


def _bytes(n_bytes: int) -> str:
    return f"{n_bytes:,} B = {human(n_bytes)}"


def _cluster(found: Device) -> str:
    both = [_count(found, key) for key in ("cluster_portable_max", "cluster_max")]
    return ", ".join(dict.fromkeys(both) if both[0] in ("-", "?") else both)


def _count(found: Device, key: str) -> str:
    value: int | None = getattr(found, key)
    if value is None:
        return "-" if key in found.no_limit else "?"
    return f"{value:,}"


def _tensor_columns(archs: Sequence[Device]) -> str:
    pools = [d.pool(Memory.TENSOR) for d in archs if d.has(Memory.TENSOR)]
    return " or ".join(str(columns) for columns in sorted({pool.columns or 0 for pool in pools}))


def _with_core(archs: Sequence[Device], core: str) -> str:
    names = [f"`{d.name}`" for d in archs if d.vendor == "amd" and d.main_pool.core == core]
    return ", ".join(names)


if __name__ == "__main__":
    sys.stdout.write(page())
