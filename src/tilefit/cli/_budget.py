"""``tilefit budget``: how many stages of a multi-buffered GEMM fit, by arithmetic alone."""

from __future__ import annotations

import argparse
import sys

from tilefit._tiles.gemm import DEFAULT_DEVICE, DEFAULT_STAGES, budget
from tilefit.cli._limit import add_limit_arguments, device_argument, print_json
from tilefit.cli._parser import positive, size


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    for flag, default, what in (
        ("--bm", 128, "rows of the A tile"),
        ("--bn", 128, "columns of the B tile"),
        ("--bk", 32, "columns of the A tile, rows of the B tile"),
    ):
        parser.add_argument(
            flag, type=positive, default=default, metavar="N", help=f"{what} (default: {default})"
        )
    parser.add_argument(
        "--stages",
        nargs="+",
        type=positive,
        default=DEFAULT_STAGES,
        metavar="N",
        help=f"stage counts to judge (default: {' '.join(map(str, DEFAULT_STAGES))})",
    )
    parser.add_argument(
        "--dtype", default="float16", help="element type of A and B (default: float16)"
    )
    parser.add_argument("--dtype-a", metavar="DTYPE", help="element type of A, where it differs")
    parser.add_argument("--dtype-b", metavar="DTYPE", help="element type of B, where it differs")
    parser.add_argument(
        "--reserve",
        type=size,
        default=0,
        metavar="BYTES",
        help="bytes kept for an epilogue tile or barriers (default: 0)",
    )
    add_limit_arguments(parser, default=f"default: one block of {DEFAULT_DEVICE}")
    parser.add_argument(
        "--sweep",
        action="store_true",
        help="also the largest stage count for other tile sizes (with --csv: only that table)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV, sizes in bytes")


def run(args: argparse.Namespace) -> int:
    """Print the budget; return 1 if no stage count asked about fits."""
    result = budget(
        args.bm,
        args.bn,
        args.bk,
        args.stages,
        dtype=args.dtype,
        dtype_a=args.dtype_a,
        dtype_b=args.dtype_b,
        reserve_bytes=args.reserve,
        capacity_bytes=args.capacity,
        device=device_argument(args),
        memory=args.memory,
    )
    sweep = result.sweep() if args.sweep else ()
    if args.json:
        payload = result.to_dict()
        if args.sweep:
            payload["sweep"] = [tiling.sweep_row() for tiling in sweep]
        print_json(payload)
    elif args.csv:
        from tilefit._render.csv import budget_csv, sweep_csv

        sys.stdout.write(sweep_csv(sweep) if args.sweep else budget_csv(result))
    else:
        from tilefit._render.plain import budget_text

        sys.stdout.write(budget_text(result, sweep))
    return 0 if result.fits else 1
