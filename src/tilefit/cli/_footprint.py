"""``tilefit footprint``: the bytes of one tile, or a tour of scopes and tiles without one."""

from __future__ import annotations

import argparse
import sys

from tilefit._errors import InputError
from tilefit._tiles.footprint import footprint
from tilefit._tiles.limit import find_limit
from tilefit.cli._limit import add_limit_arguments, device_argument, print_json
from tilefit.cli._parser import positive

TYPE_CHECKING = False  # typing itself is not imported
if TYPE_CHECKING:
    from tilefit._devices.names import Device


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--tile",
        nargs="+",
        type=positive,
        metavar="N",
        help="extent of every dimension: --tile 128 256 (without it: a tour of scopes and tiles)",
    )
    parser.add_argument("--dtype", help="element type (default: float32)")
    parser.add_argument(
        "--copies", "--versions", type=positive, metavar="N", help="buffers of the tile, default 1"
    )
    add_limit_arguments(parser, default="default: no limit")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the footprint; return 1 if it is over the limit."""
    device = device_argument(args)
    if args.tile is None:
        return _tour(args, device)
    result = footprint(
        args.tile,
        args.dtype or "float32",
        args.copies or 1,
        capacity_bytes=args.capacity,
        device=device,
        memory=args.memory,
    )
    if args.json:
        print_json(result.to_dict())
    else:
        from tilefit._render.plain import footprint_text

        sys.stdout.write(footprint_text(result))
    return 1 if result.fits is False else 0


def _tour(args: argparse.Namespace, device: str | Device | None) -> int:
    for flag, value in (("--dtype", args.dtype), ("--copies", args.copies)):
        if value is not None:
            raise InputError(f"{flag} {value} needs a tile: --tile 128 256 {flag} {value}")
    from tilefit._tiles.tour import tour

    result = tour(find_limit(args.capacity, device, args.memory))
    if args.json:
        print_json(result.to_dict())
    else:
        from tilefit._render.plain import tour_text

        sys.stdout.write(tour_text(result))
    return 0
