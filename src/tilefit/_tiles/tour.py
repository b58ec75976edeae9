"""The tour that ``tilefit footprint`` shows without a tile: scopes, six tiles, a fragment."""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._kernel.dtype import DTYPES
from tilefit._kernel.scopes import ScopeRow, scope_rows
from tilefit._tiles.footprint import Footprint
from tilefit._tiles.limit import Limit, limit_of_size

ASCEND_UB_BYTES = 192 * 1024
"""Physical Unified Buffer of an Ascend A2 or A3 vector core (a kernel may use 256 B less).

Written here because the tour starts without reading device files; a test holds it to them.
"""

_ALLOCATIONS = (
    ("tilelang", "alloc_shared"),
    ("tilelang.ascend", "alloc_shared"),
    ("tilelang", "alloc_fragment"),
    ("tilelang", "alloc_local"),
    ("tilelang", "alloc_var"),
    ("tilelang", "alloc_global"),
    ("tilelang", "alloc_tmem"),
    ("tilelang.ascend", "alloc_l1"),
    ("tilelang.ascend", "alloc_l0a"),
    ("tilelang.ascend", "alloc_l0b"),
    ("tilelang.ascend", "alloc_l0c"),
)
_CASES = (
    ("A tile, one buffer", (128, 128), "float16", 1),
    ("A tile, two stages", (128, 128), "float16", 2),
    ("C fragment of a block", (128, 128), "float32", 1),
    ("C tile of 256 columns", (128, 256), "float32", 1),
    ("that tile, two stages", (128, 256), "float32", 2),
    ("the same in fp16", (128, 256), "float16", 2),
)
_FRAGMENT = 2  # index of the case that lives in registers: the limit is not its memory's
_THREADS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """What the tour shows.

    Attributes:
        scopes: Allocation functions, one row each.
        limit: What the tiles are held against.
        cases: Name and footprint of each tile; the fragment's has no limit.
        fragment: The case that is spread over the registers of a block's threads.
        threads: Threads of that block.
    """

    scopes: tuple[ScopeRow, ...]
    limit: Limit
    cases: tuple[tuple[str, Footprint], ...]
    fragment: Footprint
    threads: int = _THREADS

    @property
    def bytes_per_thread(self) -> int:
        """Bytes of the fragment that one thread holds."""
        return self.fragment.total_bytes // self.threads

    @property
    def registers_per_thread(self) -> int:
        """32-bit registers that those bytes take."""
        return self.bytes_per_thread // 4

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: plain values, sizes in bytes."""
        return {
            "scopes": [
                {
                    "dialect": row.dialect,
                    "function": row.function,
                    "scope": row.scope,
                    "memory": row.memory,
                    "owner": row.owner,
                }
                for row in self.scopes
            ],
            "limit_bytes": self.limit.limit_bytes,
            "cases": [{"name": name, **case.to_dict()} for name, case in self.cases],
            "fragment": {
                "total_bytes": self.fragment.total_bytes,
                "threads": self.threads,
                "bytes_per_thread": self.bytes_per_thread,
                "registers_per_thread": self.registers_per_thread,
            },
        }


def tour(limit: Limit | None = None) -> Tour:
    """Return the tour, held against ``limit`` (192 KiB of Unified Buffer if None)."""
    rows = {(row.dialect, row.function): row for row in scope_rows() if not row.when}
    limit = limit_of_size(ASCEND_UB_BYTES) if limit is None else limit
    cases = tuple(
        (name, Footprint(shape, DTYPES[dtype], copies, None if index == _FRAGMENT else limit))
        for index, (name, shape, dtype, copies) in enumerate(_CASES)
    )
    return Tour(
        scopes=tuple(rows[key] for key in _ALLOCATIONS),
        limit=limit,
        cases=cases,
        fragment=cases[_FRAGMENT][1],
    )
