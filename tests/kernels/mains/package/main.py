"""Imports its neighbour by a relative name; there is no __init__.py."""

from .tiles import tile_of

if __name__ == "__main__":
    tile_of(80)
