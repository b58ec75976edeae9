"""Whose limit a number is, and which devices a text speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import zip_longest

from tilefit._devices.names import Device, Pool, device, device_names
from tilefit._explain.values import Room, Whose
from tilefit._kernel.memory import Memory, Owner

_SHARED_LIKE = (Memory.SHARED, Memory.LDS)


@cache
def candidates(toolchain: str, vendors: tuple[str, ...]) -> tuple[Device, ...]:
    """Return the devices that a toolchain's message may be about, architectures first."""
    found = tuple(one for one in map(device, device_names()) if one.vendor in vendors)
    if toolchain == "tilelang":
        return tuple(one for one in found if one.target("tilelang") is not None)
    return found


def memories(memory: Memory | None) -> tuple[Memory, ...]:
    """Return the memories that a message may mean: what is shared on NVIDIA is LDS on AMD."""
    if memory is None:
        return ()
    return _SHARED_LIKE if memory in _SHARED_LIKE else (memory,)


def in_order(devices: Iterable[Device]) -> tuple[str, ...]:
    """Return the names of devices: architectures, then products, the largest of each first.

    The products take turns by architecture, so that a short list has one of each.
    """
    found = list(devices)
    turns: dict[str, list[Device]] = {}
    for one in sorted(found, key=lambda one: -sum(count for _, count in one.cores)):
        if one.product:
            turns.setdefault(one.arch, []).append(one)
    archs = [one.name for one in found if not one.product]
    order = {name: i for i, name in enumerate(archs)}
    rows = zip_longest(*(turns[arch] for arch in sorted(turns, key=lambda a: order.get(a, 0))))
    return (*archs, *(one.name for row in rows for one in row if one is not None))


def whose_bytes(
    limit_bytes: int, wanted: Sequence[Memory], devices: Sequence[Device], *, system: bool = False
) -> tuple[Whose, ...]:
    """Return whose limit a number of bytes is; empty if nobody's.

    On Ascend, compilers differ in whether they count what the chip keeps for itself, so there
    the size on the chip is named beside the usable one. Elsewhere the nearest meaning counts.

    Args:
        limit_bytes: The number.
        wanted: The memories that may be meant.
        devices: The devices that may be meant.
        system: The number includes what the system keeps of every block.
    """
    pools = [(one, pool) for one in devices for pool in one.pools if pool.memory in wanted]
    with_reserve = [(d, p) for d, p in pools if system and _with_reserve(p) == limit_bytes]
    kinds = (
        ("hardware", "what one {user} may use, with what the system keeps", with_reserve),
        ("block", "what one {user} may use", _with(pools, "per_block_bytes", limit_bytes)),
        *_conditions(limit_bytes, pools),
        (
            "default",
            "what one {user} may use without the opt-in to more",
            _with(pools, "default_per_block_bytes", limit_bytes),
        ),
        ("core", "what a whole {core} has", _with(pools, "per_core_bytes", limit_bytes)),
        ("physical", "the size on the chip", _with(pools, "physical_bytes", limit_bytes)),
    )
    found: list[Whose] = []
    named: set[str] = set()
    for kind, words, holders in kinds:
        new = [(one, pool) for one, pool in holders if one.name not in named]
        if new and (not found or (kind == "physical" and new[0][0].vendor == "ascend")):
            named |= {one.name for one, _ in new}
            pool = new[0][1]
            text = words.format(core=_core(pool), user=_user(pool)) + _usable(kind, new)
            found.append(Whose(kind, text, in_order(one for one, _ in new)))
    return tuple(found)


_Pools = Sequence[tuple[Device, Pool]]


def _usable(kind: str, holders: _Pools) -> str:
    """Return in words what a kernel may use, for sizes that are more than that."""
    if kind not in ("core", "physical"):
        return ""
    usable = sorted({pool.per_block_bytes for _, pool in holders})
    return f"; one {_user(holders[0][1])} may use {' or '.join(f'{value:,} B' for value in usable)}"


def _with_reserve(pool: Pool) -> int:
    return pool.per_block_bytes + pool.reserved_per_block_bytes


def _with(pools: _Pools, field: str, value: int) -> _Pools:
    return [(one, pool) for one, pool in pools if getattr(pool, field) == value]


def _conditions(limit_bytes: int, pools: _Pools) -> Iterable[tuple[str, str, _Pools]]:
    by_words: dict[str, list[tuple[Device, Pool]]] = {}
    for one, pool in pools:
        for condition in one.conditions:
            if condition.memory == pool.memory and condition.per_block_bytes == limit_bytes:
                by_words.setdefault(condition.when, []).append((one, pool))
    for when, holders in by_words.items():
        yield "condition", f"what is left if {when}", holders


def _user(pool: Pool) -> str:
    return "block" if pool.owner is Owner.BLOCK else _core(pool)


def _core(pool: Pool) -> str:
    return {"AIV": "vector core", "AIC": "cube core"}.get(pool.core, pool.core)


def whose_count(unit: str, limit: int, devices: Sequence[Device]) -> tuple[Whose, ...]:
    """Return whose limit a number of columns, threads or registers is."""
    if unit == "columns":
        having = [
            one
            for one in devices
            if one.has(Memory.TENSOR) and one.pool(Memory.TENSOR).columns == limit
        ]
        words = "the columns of the whole tensor memory"
    elif unit == "threads":
        having = [one for one in devices if one.max_threads_per_block == limit]
        words = "what a block may have"
    elif unit == "registers":
        having = [one for one in devices if one.registers_per_block == limit]
        words = "the registers of one block"
    else:
        return ()
    return (Whose(unit, words, in_order(having)),) if having else ()


def own_limit(one: Device, wanted: Sequence[Memory], unit: str) -> int | None:
    """Return the limit of one device, in ``unit``; None if it has no such memory."""
    if unit == "threads":
        return one.max_threads_per_block
    if unit == "registers":
        return one.registers_per_block
    for memory in wanted:
        if one.has(memory):
            pool = one.pool(memory)
            if unit == "columns":
                return pool.columns
            return pool.per_block_bytes * (8 if unit == "bits" else 1)
    return None


def rooms(
    required_bytes: int, wanted: Sequence[Memory], devices: Sequence[Device]
) -> tuple[Room, ...]:
    """Return every limit that devices have, largest first, and whether a number is within it."""
    by_limit: dict[int, list[Device]] = {}
    for one in devices:
        for pool in one.pools:
            if pool.memory in wanted:
                by_limit.setdefault(pool.per_block_bytes, []).append(one)
    return tuple(
        Room(limit, in_order(by_limit[limit]), required_bytes <= limit)
        for limit in sorted(by_limit, reverse=True)
    )


def begins_a_limit(number: int, wanted: Sequence[Memory], devices: Sequence[Device]) -> int | None:
    """Return the one limit whose first digits are ``number``; None if none or several are."""
    digits = str(number)
    limits = {
        pool.per_block_bytes
        for one in devices
        for pool in one.pools
        if pool.memory in wanted and str(pool.per_block_bytes).startswith(digits)
    }
    return limits.pop() if len(limits) == 1 else None
