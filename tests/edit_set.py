"""The edits of docs/suggestions.md, written down a second time: what tests hold `plan` against."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from tilefit._planning.report import Edit

MERGE = "tl.enable_aggressive_shared_memory_merge"
STAGES = ("num_stages", "stages")
THREADS = ("threads", "num_threads")
K_TILES = ("block_K", "BK", "tile_k", "BLOCK_SIZE_K")
OTHER_TILES = ("block_M", "block_N", "BM", "BN", "tile_q", "tile", "block", "BLOCK")
Change = frozenset[tuple[str, Any]]


def change(edit: Edit) -> Change:
    """What an edit changes."""
    return frozenset((*edit.params, *edit.pass_configs))


def documented(params: Mapping[str, Any]) -> list[tuple[int, Change]]:
    """Every edit with its cost: cheapest first, by the rows of the table where costs tie."""
    kinds: list[list[tuple[int, int, Change]]] = [[(1, 0, frozenset({(MERGE, True)}))]]
    numbers = {name: value for name, value in params.items() if type(value) is int}
    for name in STAGES:
        if name in numbers:
            fewer = reversed(range(1, numbers[name]))
            kinds.append(
                [
                    (2 * (numbers[name] - n) + (6 if n == 1 else 0), 1, frozenset({(name, n)}))
                    for n in fewer
                ]
            )
            break  # a kernel has one of them
    for name, value in numbers.items():
        if name in THREADS:
            groups = [n for n in range(1, 100) if value - 128 * n >= 128]
            kinds.append([(3 * n, 2, frozenset({(name, value - 128 * n)})) for n in groups])
    for name, value in numbers.items():
        row = 3 if name in K_TILES else 4 if name in OTHER_TILES else None
        if row is not None and value % 2 == 0 and value >= 32:
            kinds.append([(row, row, frozenset({(name, value // 2)}))])
    singles = [edit for kind in kinds for edit in kind]
    pairs = [
        (a[0] + b[0], 5, a[2] | b[2])
        for one, other in combinations([kind for kind in kinds if kind], 2)
        for a in one
        for b in other
    ]
    return [(cost, made) for cost, _, made in sorted([*singles, *pairs], key=lambda e: e[:2])]
