"""What a kernel declares for an Ascend chip: the sum of each memory, its cores, its conditions.

A block of an Ascend kernel runs on a cube core (L1, L0A, L0B, L0C), on a vector core (UB), or on
one with both. The total of a memory is the plain sum of its buffers, copies included: no padding,
no alignment, no reuse, which only a compiler adds or takes away.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefit._frontends.ascend import OWNERS, declared_bytes
from tilefit._frontends.source.allocate import is_borrowed
from tilefit._frontends.source.trace import TracedLaunch
from tilefit._frontends.source.unknown import written
from tilefit._frontends.source.values import Unknown, Value
from tilefit._kernel.kernel import Buffer, MemoryUse
from tilefit._kernel.memory import Evidence, Memory, Owner

# what the adapter's T.alloc_shared can become
_OPEN = (Memory.UB, Memory.L1)
_SIMT = "SimtVF"
# pass config tl.ascend_memory_planning, PassConfigKey.TL_ASCEND_MEMORY_PLANNING
_PLANNING = "ascend_memory_planning"
_VECTOR_REGIONS = (_SIMT, "SimdVF", "Vector")
REGIONS = (*_VECTOR_REGIONS, "Cube")
# where T.gemm expects A, B and C
_GEMM_PLACES = {0: Memory.L0A, 1: Memory.L0B, 2: Memory.L0C}


def memory_in_gemm(places: Sequence[int]) -> Memory:
    """Return the memory of a fragment of the adapter: its place in ``T.gemm`` decides.

    Args:
        places: Where it stands among the arguments of each ``T.gemm`` that takes it.

    Returns:
        L0C where none does, as the adapter has it; undecided where they disagree.
    """
    found = {_GEMM_PLACES.get(place, Memory.UNDECIDED) for place in places} or {Memory.L0C}
    return found.pop() if len(found) == 1 else Memory.UNDECIDED


def may_share(options: Value) -> bool:
    """Say whether the adapter may place tiles over dead ones: its memory planning is not off.

    Args:
        options: The ``pass_configs`` of a kernel, None without: planning is off by default
            (``tl.ascend_memory_planning`` in ascend_memory_planning.cc).
    """
    if options is None:
        return False
    if not isinstance(options, dict):
        return True
    found = [v for k, v in options.items() if written(k).lower().endswith(_PLANNING)]
    return any(isinstance(v, Unknown) or bool(v) for v in found)


def uses_of(
    launch: TracedLaunch, buffers: Sequence[Buffer], *, complete: bool, may_share: bool
) -> tuple[MemoryUse, ...]:
    """Return the sum of each memory that a kernel uses.

    Args:
        launch: The kernel.
        buffers: All that it declares.
        complete: False if an allocation may be missing: then no sum is known.
        may_share: Whether the compiler may place tiles over dead ones.

    Returns:
        A total of None where a size is open, or where a buffer whose memory the source leaves
        open may be in that memory.
    """
    undecided = [b for b in buffers if b.memory is Memory.UNDECIDED]
    may_hold_more: set[Memory] = set()
    if any(is_open(b) for b in undecided):
        may_hold_more.update(_OPEN)
    if any(b.scope == "local.fragment" for b in undecided if b not in _loose(launch, buffers)):
        may_hold_more.update(_GEMM_PLACES.values())
    found: list[MemoryUse] = []
    for memory, owner in OWNERS.items():
        mine = [b for b in buffers if b.memory is memory]
        if not mine and memory not in may_hold_more:
            continue
        sized = all(b.bytes is not None for b in mine)
        known = complete and sized and memory not in may_hold_more
        most, least = declared_bytes(mine, may_share=may_share)
        if may_share and memory in may_hold_more:
            least = max((b.bytes or 0 for b in mine), default=0)
        found.append(
            MemoryUse(
                memory=memory,
                owner=owner,
                dynamic_bytes=most if known else None,
                least_bytes=least,
                evidence=Evidence.DECLARED,
            )
        )
    return tuple(found)


def is_open(buffer: Buffer) -> bool:
    """Return whether a buffer is in UB or in L1, the source does not say which."""
    return buffer.memory is Memory.UNDECIDED and buffer.scope.startswith("shared")


def _loose(launch: TracedLaunch, buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return the fragments that no ``T.gemm`` takes and that nothing else places."""
    taken = {tile.name for tile in launch.places}
    return [
        b
        for b in buffers
        if b.memory is Memory.UNDECIDED and b.scope == "local.fragment" and b.name not in taken
    ]


def borrowed(launch: TracedLaunch) -> bool:
    """Return whether a kernel of the common dialect is read as the adapter would read it."""
    return any(is_borrowed(tile) for tile in launch.tiles)


def open_lines(launch: TracedLaunch, buffers: Sequence[Buffer]) -> tuple[str, ...]:
    """Return what to say of a kernel whose buffers the source does not all place."""
    undecided = [b for b in buffers if b.memory is Memory.UNDECIDED]
    loose = _loose(launch, buffers)
    tiles = ", ".join(b.name for b in undecided if is_open(b))
    fragments = ", ".join(
        b.name for b in undecided if b.scope == "local.fragment" and b not in loose
    )
    lines = []
    if borrowed(launch):
        lines.append(
            "written in TileLang's common dialect, as for a GPU; its tiles are placed here as the "
            "adapter tilelang-ascend places those of its own kernels"
        )
    if launch.addresses:
        lines.append(
            "addresses are the author's (T.annotate_address): whether two tiles at one address are "
            "needed at once was not checked"
        )
    if tiles:
        lines.append(f"{tiles}: in UB or in L1, which the compiler decides by use")
    if fragments:
        lines.append(f"{fragments}: in L0A, L0B or L0C, T.gemm takes it in several places")
    if loose:
        names = ", ".join(b.name for b in loose)
        lines.append(f"{names}: registers on a GPU; no T.gemm says where it would be on this chip")
    return tuple(lines)


def conditions_of(launch: TracedLaunch) -> tuple[str, ...]:
    """Return the codes of the conditional limits that hold for a kernel."""
    return ("simt",) if _SIMT in launch.regions else ()


def cores_of(launch: TracedLaunch, buffers: Sequence[Buffer]) -> str | None:
    """Return the cores that a block occupies: ``cube``, ``vector`` or ``mixed``.

    Returns:
        None where nothing says so, or where a buffer in UB or L1 would decide it.
    """
    memories = {b.memory for b in buffers}
    cube = (
        bool(launch.gemms)
        or "Cube" in launch.regions
        or any(OWNERS.get(m) is Owner.AIC for m in memories)
    )
    vector = Memory.UB in memories or any(one in launch.regions for one in _VECTOR_REGIONS)
    vector = vector or bool(_loose(launch, buffers))
    if cube and vector:
        return "mixed"
    if borrowed(launch) and not cube:  # without a product, nothing in it is for a cube core
        return "vector"
    if any(is_open(b) for b in buffers):
        return None
    return "cube" if cube else "vector" if vector else None
