"""The multi-buffered GEMM: num_stages x (A tile + B tile), against one limit.

A declared estimate, neither an upper nor a lower bound of what a compiler allocates: it adds
barriers, workspaces and alignment, and it lets buffers share bytes (see ``tilefit plan``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilefit._errors import InputError
from tilefit._kernel.dtype import DType
from tilefit._tiles.footprint import Footprint, element_type, whole
from tilefit._tiles.limit import MAX_BYTES, Limit, find_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilefit._devices.names import Device

DEFAULT_DEVICE = "h100"
DEFAULT_STAGES = (1, 2, 3, 4, 5, 6)
SWEEP_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128), (256, 256))
"""(block_m, block_n) of the rows of the sweep."""
SWEEP_BLOCK_K = (16, 32, 64, 128)
"""block_k of the columns of the sweep."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One stage count.

    Attributes:
        num_stages: Copies of both tiles.
        total_bytes: Their bytes plus the reserve.
        margin_bytes: What they leave of the limit; negative if they are over.
    """

    num_stages: int
    total_bytes: int
    margin_bytes: int

    @property
    def fits(self) -> bool:
        """Whether that is at most the limit."""
        return self.margin_bytes >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One tiling of a GEMM and the stage counts asked about.

    Attributes:
        block_m: Rows of A and C in a tile, in elements.
        block_n: Columns of B and C in a tile.
        block_k: Columns of A and rows of B in a tile.
        dtype_a: Element type of A.
        dtype_b: Element type of B.
        limit: What all copies and the reserve must fit into.
        stages: The stage counts asked about.
        reserve_bytes: Bytes kept for an epilogue tile or barriers.
    """

    block_m: int
    block_n: int
    block_k: int
    dtype_a: DType
    dtype_b: DType
    limit: Limit
    stages: tuple[int, ...] = DEFAULT_STAGES
    reserve_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("block_m", "block_n", "block_k"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)} is not 1 or more")
        if not self.stages:
            raise InputError("stages: at least one stage count is needed")
        for num_stages in self.stages:
            if num_stages < 1:
                raise InputError(f"stage count {num_stages} is not 1 or more")
        if self.reserve_bytes < 0:
            raise InputError(f"reserve {self.reserve_bytes} is negative: give bytes from 0")
        if self.total_bytes(max(self.stages)) > MAX_BYTES:
            raise InputError("the tiles are larger than any memory: over 2**63 - 1 bytes")

    @property
    def a(self) -> Footprint:
        """One stage's tile of A."""
        return Footprint((self.block_m, self.block_k), self.dtype_a)

    @property
    def b(self) -> Footprint:
        """One stage's tile of B."""
        return Footprint((self.block_k, self.block_n), self.dtype_b)

    @property
    def packed_stage_bytes(self) -> int:
        """Bytes of one A and one B tile with sub-byte elements packed."""
        return self.a.total_bytes + self.b.total_bytes

    @property
    def charged_as(self) -> str:
        """How elements are counted: ``packed`` or ``containers``.

        Containers on a chip with tcgen05 if a side is fp4 or fp6 and both sides are among
        fp8, fp6 and fp4: the instruction that mixes them reads 8-bit containers. Beside a
        wider A or B the small one is converted first and lies packed.
        """
        both_small = all(
            dtype.container_bits == 8 and dtype.name.startswith("float")
            for dtype in (self.dtype_a, self.dtype_b)
        )
        some_padded = self.a.padded_by_hardware or self.b.padded_by_hardware
        return "containers" if self.limit.padded and both_small and some_padded else "packed"

    @property
    def a_bytes(self) -> int:
        """Bytes charged for one A tile."""
        return self.a.container_bytes if self.charged_as == "containers" else self.a.total_bytes

    @property
    def b_bytes(self) -> int:
        """Bytes charged for one B tile."""
        return self.b.container_bytes if self.charged_as == "containers" else self.b.total_bytes

    @property
    def stage_bytes(self) -> int:
        """Bytes charged for one A and one B tile."""
        return self.a_bytes + self.b_bytes

    def total_bytes(self, num_stages: int) -> int:
        """Bytes charged for that many stages and the reserve."""
        return self.reserve_bytes + num_stages * self.stage_bytes

    @property
    def limit_bytes(self) -> int:
        """The limit in bytes."""
        return self.limit.limit_bytes

    @property
    def rows(self) -> tuple[BudgetRow, ...]:
        """One row for each stage count asked about, in that order."""
        totals = ((stages, self.total_bytes(stages)) for stages in self.stages)
        return tuple(BudgetRow(n, total, self.limit_bytes - total) for n, total in totals)

    @property
    def max_stages(self) -> int:
        """The largest stage count that fits, listed or not; 0 if not even one stage does."""
        return max(0, self.limit_bytes - self.reserve_bytes) // self.stage_bytes

    @property
    def fits(self) -> bool:
        """True if at least one stage count asked about fits."""
        return any(row.fits for row in self.rows)

    def smaller(self) -> Budget | None:
        """Return the nearest smaller budget that fits: fewer stages, else halved extents.

        None if the reserve alone is too large, or if not even single elements fit.
        """
        if self.max_stages:
            return replace(self, stages=(min(self.max_stages, max(self.stages)),))
        tile = replace(self, stages=(1,))
        while not tile.max_stages:
            m, n, k = tile.block_m, tile.block_n, tile.block_k
            if max(m, n, k) == 1:
                return None
            if k >= max(m, n):
                tile = replace(tile, block_k=k // 2)
            elif m >= n:
                tile = replace(tile, block_m=m // 2)
            else:
                tile = replace(tile, block_n=n // 2)
        return tile

    def sweep(
        self,
        tiles: Iterable[tuple[int, int]] = SWEEP_TILES,
        block_ks: Sequence[int] = SWEEP_BLOCK_K,
    ) -> tuple[Budget, ...]:
        """Return this budget for every (block_m, block_n) and block_k, row by row."""
        return tuple(
            replace(self, block_m=block_m, block_n=block_n, block_k=block_k)
            for block_m, block_n in tiles
            for block_k in block_ks
        )

    def sweep_row(self) -> dict[str, object]:
        """Return this tiling as one row of a sweep: plain values, sizes in bytes."""
        return {
            "block_m": self.block_m,
            "block_n": self.block_n,
            "block_k": self.block_k,
            "stage_bytes": self.stage_bytes,
            "limit_bytes": self.limit_bytes,
            "max_stages": self.max_stages,
        }

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: plain values, sizes in bytes."""
        return {
            "block_m": self.block_m,
            "block_n": self.block_n,
            "block_k": self.block_k,
            "dtype_a": self.dtype_a.name,
            "dtype_b": self.dtype_b.name,
            "a_bytes": self.a_bytes,
            "b_bytes": self.b_bytes,
            "stage_bytes": self.stage_bytes,
            "packed_stage_bytes": self.packed_stage_bytes,
            "charged_as": self.charged_as,
            "reserve_bytes": self.reserve_bytes,
            "limit_bytes": self.limit_bytes,
            "device": self.limit.device,
            "limit_source": self.limit.source,
            "memory": self.limit.memory,
            "rows": [
                {
                    "num_stages": r.num_stages,
                    "total_bytes": r.total_bytes,
                    "margin_bytes": r.margin_bytes,
                    "fits": r.fits,
                }
                for r in self.rows
            ],
            "max_stages": self.max_stages,
        }


def budget(
    block_m: int = 128,
    block_n: int = 128,
    block_k: int = 32,
    stages: Iterable[int] = DEFAULT_STAGES,
    *,
    dtype: DType | str = "float16",
    dtype_a: DType | str | None = None,
    dtype_b: DType | str | None = None,
    reserve_bytes: int = 0,
    capacity_bytes: int | None = None,
    device: Device | str | None = None,
    memory: str | None = None,
) -> Budget:
    """Return which stage counts of a multi-buffered GEMM fit: an estimate, not a bound.

    Args:
        block_m: Rows of A and C in a tile, in elements.
        block_n: Columns of B and C in a tile.
        block_k: Columns of A and rows of B in a tile.
        stages: Stage counts to judge.
        dtype: Element type of A and B, by any of its names.
        dtype_a: Element type of A, where it differs.
        dtype_b: Element type of B, where it differs.
        reserve_bytes: Bytes kept for an epilogue tile or barriers.
        capacity_bytes: A limit in bytes, in place of a device.
        device: A device, its name or a named capacity; ``h100`` if no limit is given.
        memory: Which of the device's memories; L1 on Ascend, where GEMM tiles are staged.

    Raises:
        InputError: A size or count out of range, an unknown name, or both kinds of limit.
    """
    if capacity_bytes is None and device is None:
        device = DEFAULT_DEVICE
    limit = find_limit(capacity_bytes, device, memory, staging=True)
    assert limit is not None  # one of the two was given
    return Budget(
        block_m=whole("block_m", block_m),
        block_n=whole("block_n", block_n),
        block_k=whole("block_k", block_k),
        dtype_a=element_type(dtype if dtype_a is None else dtype_a),
        dtype_b=element_type(dtype if dtype_b is None else dtype_b),
        limit=limit,
        stages=tuple(whole("stage count", num_stages) for num_stages in stages),
        reserve_bytes=whole("reserve", reserve_bytes),
    )


def max_stages(
    block_m: int,
    block_n: int,
    block_k: int,
    *,
    dtype: DType | str = "float16",
    dtype_a: DType | str | None = None,
    dtype_b: DType | str | None = None,
    reserve_bytes: int = 0,
    capacity_bytes: int | None = None,
    device: Device | str | None = None,
    memory: str | None = None,
) -> int:
    """Return the largest stage count that fits, 0 if none does (see `budget` for the rest)."""
    return budget(
        block_m,
        block_n,
        block_k,
        dtype=dtype,
        dtype_a=dtype_a,
        dtype_b=dtype_b,
        reserve_bytes=reserve_bytes,
        capacity_bytes=capacity_bytes,
        device=device,
        memory=memory,
    ).max_stages
