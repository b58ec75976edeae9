"""``tilefit scopes``: which memory each allocation function gives, dialect by dialect."""

from __future__ import annotations

import argparse
import sys

from tilefit._kernel.scopes import DIALECTS, TITLES, scope_rows
from tilefit._render import scopes as render


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tilefit scopes``."""
    parser.add_argument(
        "--dialect", metavar="NAME", help=f"only one of {', '.join(DIALECTS)} (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table.

    Raises:
        UnknownNameError: There is no such dialect.
    """
    rows = scope_rows(args.dialect)
    if args.json:
        import json

        sys.stdout.write(json.dumps(render.json_values(rows), indent=2) + "\n")
    else:
        sys.stdout.write(render.text(rows, TITLES))
    return 0
