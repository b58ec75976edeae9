"""What the footprint of a tile costs in the standard library alone: the baseline."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

BITS = {"float16": 16, "float32": 32}


@dataclass(frozen=True)
class Tile:
    shape: tuple[int, ...]
    dtype: str
    copies: int

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def bytes_per_copy(self) -> int:
        return -(-self.elements * BITS[self.dtype] // 8)


def human(n_bytes: int) -> str:
    return f"{n_bytes / 1024:g} KiB"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tile", nargs="+", type=int, required=True)
    parser.add_argument("--dtype", default="float32", choices=sorted(BITS))
    parser.add_argument("--copies", type=int, default=1)
    args = parser.parse_args()
    tile = Tile(tuple(args.tile), args.dtype, args.copies)
    total = tile.bytes_per_copy * tile.copies
    print(f"shape        = {tile.shape}")
    print(f"dtype        = {tile.dtype} ({BITS[tile.dtype]} bit)")
    print(f"copies       = {tile.copies} (versions)")
    print(f"elements     = {tile.elements}")
    print(f"bytes / copy = {tile.bytes_per_copy} ({human(tile.bytes_per_copy)})")
    print(f"bytes total  = {total} ({human(total)})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
