"""What to change, what is likely, and the command that goes on from there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tilefit._devices.alike import static_shared_bytes, warp
from tilefit._devices.names import Device, device
from tilefit._explain.forms import Form, advice
from tilefit._explain.params import Tile
from tilefit._explain.reading import Reading
from tilefit._explain.values import Cause, Sum
from tilefit._kernel.memory import Memory

_ASCEND_ADVICE = {
    Memory.L1: "l1-tile",
    Memory.L0A: "l0",
    Memory.L0B: "l0",
    Memory.L0C: "l0c",
}
_USUAL = {"nvidia": "h100", "amd": "mi300x", "ascend": "ascend-910b1"}


def advice_for(form: Form, reading: Reading, *, attention: bool, ended: bool) -> tuple[str, ...]:
    """Return what to change, in sentences.

    Args:
        form: The message's form.
        reading: What it says.
        attention: It is an attention kernel.
        ended: It ended the program: an autotuner did not go on.
    """
    keys = list(form.advice)
    if reading.unit == "columns":
        keys = ["tmem"]
    elif reading.unit == "threads" and form.toolchain == "triton":
        keys = ["threads"]
    elif reading.unit == "registers":
        keys = ["registers"]
    unfit = "blocks" if attention and "attention" in keys else "attention"
    keys = [key for key in keys if key != unfit and not (ended and key == "autotune")]
    if reading.memory is Memory.LDS and reading.limit_bytes == _small_lds():
        keys = ["lds", *(key for key in keys if key != "lds")]
    if reading.memory in _ASCEND_ADVICE:
        other = _ASCEND_ADVICE[reading.memory]
        keys = [other if key == "ub-tile" else key for key in keys if key != "ub-multibuffer"]
    if "static" in keys and reading.limit_bytes not in (None, static_shared_bytes()):
        keys = ["blocks"]
    return tuple(advice(key) for key in dict.fromkeys(keys))


def _small_lds() -> int:
    """Return what a work-group has of LDS on all chips but the newest, in bytes."""
    return device("gfx942").pool(Memory.LDS).per_block_bytes


def causes_for(form: Form, reading: Reading) -> tuple[Cause, ...]:
    """Return what is likely, for a message that gives no numbers."""
    if reading.required is not None:
        return ()
    name = _device(form, reading).name
    return tuple(Cause(one.words, one.command.format(device=name)) for one in form.causes)


def command_for(form: Form, reading: Reading, tile: Tile, sums: Sequence[Sum]) -> str:
    """Return a command to go on with; empty if there is none, or if the causes have theirs."""
    if not form.vendors or (form.causes and reading.required is None):
        return ""
    one = _device(form, reading)
    name = one.name
    if sums and sums[0].rule == "stages":
        return _budget(tile, name)
    if sums and sums[0].rule == "registers":
        threads = tile.numbers.get("threads", tile.numbers.get("num_warps", 0) * warp()[0])
        return _command("occupancy", "-d", name, "--threads", threads, "--regs", tile["registers"])
    if sums and sums[0].rule == "live-tiles" and tile.has("block") and tile.types:
        dtype = next(iter(tile.types.values())).name
        copies = sums[0].value // (tile["block"] * next(iter(tile.types.values())).bits)
        size = ("--tile", tile["block"], "--dtype", dtype, "--copies", copies)
        return _command("footprint", *size, "-d", name, "--memory", reading.memory)
    if form.toolchain == "tilelang" and one.vendor in ("nvidia", "amd"):
        return f"tilefit plan FILE::KERNEL -d {name}"
    if reading.memory in (Memory.SHARED, Memory.LDS) and reading.unit == "bytes":
        return f"tilefit budget --sweep -d {name}"
    return f"tilefit devices {name}"


def _budget(tile: Tile, name: str) -> str:
    words: list[object] = ["budget"]
    for flag, part in (("--bm", "block_m"), ("--bn", "block_n"), ("--bk", "block_k")):
        words += [flag, tile[part]]
    words += ["--stages", *range(1, min(tile["num_stages"], 8) + 1)]
    if "dtype" in tile.types:
        words += ["--dtype", tile.types["dtype"].name]
    return _command(*words, "-d", name)


def _command(*words: object) -> str:
    return shlex.join(["tilefit", *map(str, words)])


def _device(form: Form, reading: Reading) -> Device:
    """Return the device to go on with: the one named, else one that has the limit."""
    if reading.device is not None:
        return reading.device
    names = [name for whose in reading.whose for name in whose.devices]
    if not names:
        names = next((list(room.devices) for room in reading.rooms if not room.fits), [])
    found = [device(name) for name in names]
    products = (one for one in found if one.product)
    usual = _USUAL.get(form.vendors[0] if form.vendors else "nvidia", "h100")
    return next(products, found[0] if found else device(usual))
