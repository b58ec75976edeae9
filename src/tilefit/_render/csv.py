"""Tables as CSV, one header row, sizes in bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilefit._tiles.gemm import Budget


def budget_csv(budget: Budget) -> str:
    """Return the stage counts asked about, one row each."""
    return _table(
        [
            {
                "block_m": budget.block_m,
                "block_n": budget.block_n,
                "block_k": budget.block_k,
                "dtype_a": budget.dtype_a.name,
                "dtype_b": budget.dtype_b.name,
                "stage_bytes": budget.stage_bytes,
                "reserve_bytes": budget.reserve_bytes,
                "num_stages": row.num_stages,
                "total_bytes": row.total_bytes,
                "limit_bytes": budget.limit_bytes,
                "fits": str(row.fits).lower(),
            }
            for row in budget.rows
        ]
    )


def sweep_csv(tilings: Sequence[Budget]) -> str:
    """Return the largest stage count of each tiling, one row each."""
    return _table([tiling.sweep_row() for tiling in tilings])


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
