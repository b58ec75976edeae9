"""What a message says, in our own terms: which memory, how much of it, whose limit that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefit._devices.alike import tensor_memory
from tilefit._devices.names import Device, device
from tilefit._explain.find import Found
from tilefit._explain.forms import space
from tilefit._explain.mentions import Mentions
from tilefit._explain.pasted import Pasted
from tilefit._explain.values import Room, Whose
from tilefit._explain.whose import (
    begins_a_limit,
    candidates,
    memories,
    own_limit,
    rooms,
    whose_bytes,
    whose_count,
)
from tilefit._kernel.memory import Memory
from tilefit._kernel.scopes import scope_rows

_TRITON_MEMORIES = {
    "sharedmemory": (Memory.SHARED, "bytes"),
    "tensormemory": (Memory.TENSOR, "columns"),
    "threads": (None, "threads"),
    "registers": (Memory.REGISTERS, "registers"),
}
_ADAPTER_NAMES = ("ub", "l1", "l0a", "l0b", "l0c")
_JUST_BELOW = 2048  # a static part or a reserve that was taken off before printing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The numbers of a message and what they mean; see `_values.Finding` for the fields."""

    memory: Memory | None
    unit: str
    required: int | None
    limit: int | None
    over: int | None = None
    limit_from: str = "message"
    whose: tuple[Whose, ...] = ()
    rooms: tuple[Room, ...] = ()
    notes: tuple[str, ...] = ()
    device: Device | None = None

    @property
    def required_bytes(self) -> int | None:
        """What is asked for, in bytes; None where it is no size."""
        return in_bytes(self.required, self.unit)

    @property
    def limit_bytes(self) -> int | None:
        """What there is, in bytes; None where it is no size."""
        return in_bytes(self.limit, self.unit)


def in_bytes(value: int | None, unit: str) -> int | None:
    """Return a number of bytes or bits in bytes; None for what is no size."""
    if value is None or unit not in ("bytes", "bits"):
        return None
    return value if unit == "bytes" else -(-value // 8)


def read(found: Found, pasted: Pasted, mentions: Mentions, given: Device | None) -> Reading:
    """Say what a message means.

    Args:
        found: The message.
        pasted: The text around it.
        mentions: What that text names.
        given: The device that the caller names, if any.
    """
    form, numbers = found.form, found.match.numbers
    memory, unit = _memory(found)
    devices = candidates(form.toolchain, form.vendors)
    if given is not None and given.vendor not in form.vendors:
        given = None  # it cannot be what the message is about
    required = numbers.get("required")
    if required is not None:
        required += numbers.get("system", 0)
    reading = Reading(
        memory=memory,
        unit=unit,
        required=required,
        limit=numbers.get("limit"),
        over=numbers.get("over"),
        notes=(f"what is counted: {form.numbers}",) if form.numbers else (),
    )
    wanted = memories(memory)
    if reading.limit is not None:
        reading = _limit_in_message(reading, found, pasted, wanted, devices)
    # static shared memory has limits of its own, which depend on the assembler too
    if reading.limit is None and (unit or memory) and form.toolchain != "ptxas":
        known = {one.name for one in devices}
        named = [one for one in mentions.devices if one.name in known] if given is None else [given]
        reading = _limit_of_device(reading, wanted, devices, named)
    reading = replace(reading, memory=_shared_or_lds(reading, mentions, given))
    return _with_units(_with_over(_beside_given(reading, given, wanted)))


def _memory(found: Found) -> tuple[Memory | None, str]:
    form, words, numbers = found.form, found.match.words, found.match.numbers
    if "memory" in words:
        return _TRITON_MEMORIES[words["memory"]]
    if "space" in words:
        return space(words["space"]), form.unit
    if "scope" in words:
        return _scope(words["scope"]), form.unit
    if form.name == "tilelang-ascend-sub-k":
        return (Memory.L0A if numbers["m"] >= numbers["n"] else Memory.L0B), form.unit
    if form.name == "adapter-planning":
        parts = words["name"].lower().split("_")
        known = [part for part in reversed(parts) if part in _ADAPTER_NAMES]
        return (Memory(known[0]) if known else None), form.unit
    return form.memory, form.unit


def _scope(scope: str) -> Memory | None:
    folded = "".join(c for c in scope.lower() if c.isalnum())
    known = {row.scope.replace(".", ""): row.memory for row in scope_rows("tilelang.ascend")}
    return {**known, "shared": Memory.UB}.get(folded)


def _limit_in_message(
    reading: Reading,
    found: Found,
    pasted: Pasted,
    wanted: Sequence[Memory],
    devices: Sequence[Device],
) -> Reading:
    limit = reading.limit
    assert limit is not None
    limit_bytes = reading.limit_bytes
    if limit_bytes is None:
        return replace(reading, whose=whose_count(reading.unit, limit, devices))
    whose = whose_bytes(limit_bytes, wanted, devices, system="system" in found.match.numbers)
    if whose or not devices:
        return replace(reading, whose=whose)
    if found.match.last == "limit" and found.match.end == len(pasted.squeezed):
        whole = begins_a_limit(limit_bytes, wanted, devices)
        if whole is not None:
            note = f"the text ends in the limit: {limit} is how {whole:,} B begins"
            return replace(reading, limit=None, notes=(*reading.notes, note))
    note = f"no device in tilefit's tables has a limit of {limit_bytes:,} B there"
    below = [
        room
        for room in rooms(limit_bytes, wanted, devices)
        if 0 < room.limit_bytes - limit_bytes <= _JUST_BELOW
    ]
    if below:
        note += (
            f"; it is {below[-1].limit_bytes - limit_bytes:,} B below the "
            f"{below[-1].limit_bytes:,} B of {below[-1].devices[0]}: a part may have been taken off"
        )
    return replace(reading, notes=(*reading.notes, note))


def _limit_of_device(
    reading: Reading,
    wanted: Sequence[Memory],
    devices: Sequence[Device],
    named: Sequence[Device],
) -> Reading:
    limits = {one.name: own_limit(one, wanted, reading.unit) for one in named}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    if len(set(known.values())) == 1:
        name, limit = next(iter(known.items()))
        whose = (Whose("device", "what the device has that was named", tuple(known)),)
        return replace(reading, limit=limit, limit_from=name, whose=whose)
    if reading.required_bytes is not None:
        return replace(reading, rooms=rooms(reading.required_bytes, wanted, devices))
    return reading


def _shared_or_lds(reading: Reading, mentions: Mentions, given: Device | None) -> Memory | None:
    """Tell AMD's LDS from NVIDIA's shared memory: by the limit, else by what the text speaks of."""
    if reading.memory is not Memory.SHARED:
        return reading.memory
    vendors = {device(name).vendor for whose in reading.whose for name in whose.devices}
    if given is not None and len(vendors) != 1:
        vendors = {given.vendor}
    if len(vendors) != 1:
        vendors = {one.vendor for one in mentions.devices} or set(mentions.vendors)
    return Memory.LDS if vendors == {"amd"} else Memory.SHARED


def _beside_given(reading: Reading, given: Device | None, wanted: Sequence[Memory]) -> Reading:
    reading = replace(reading, device=given)
    if given is None or reading.limit_from == given.name or reading.limit is None:
        return reading
    own = own_limit(given, wanted, reading.unit)
    if own is None or own == reading.limit or reading.required is None:
        return reading
    over = reading.required - own
    verdict = f"over by {over:,}" if over > 0 else f"fits, {-over:,} spare"
    note = f"on {given.name} the limit is {own:,} {reading.unit}: {verdict}"
    return replace(reading, notes=(*reading.notes, note))


def _with_over(reading: Reading) -> Reading:
    if reading.over is not None or reading.required is None or reading.limit is None:
        return reading
    over = reading.required - reading.limit
    if over > 0:
        return replace(reading, over=over)
    if reading.limit_from != "message":
        note = f"that is within the limit of {reading.limit_from}, {-over:,} spare"
    else:
        note = (
            f"the number is below its own limit by {-over:,}: what is not counted in it (static "
            "shared memory) takes more than that"
        )
    return replace(reading, notes=(*reading.notes, note))


def _with_units(reading: Reading) -> Reading:
    note = ""
    if reading.unit == "bits" and reading.required is not None:
        note = f"the message counts bits: {reading.required:,} / 8 = {reading.required_bytes:,} B"
    elif reading.unit == "columns" and reading.required is not None:
        pool = tensor_memory()
        lanes, column = pool.lanes or 1, pool.column_bytes
        note = (
            f"a column is {lanes} lanes x {column // lanes} B = {column} B: {reading.required:,} "
            f"columns are {reading.required * column:,} B"
        )
    return replace(reading, notes=(*reading.notes, note)) if note else reading
