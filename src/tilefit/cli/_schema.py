"""``tilefit schema``: the JSON Schema of what a command prints with ``--json``."""

from __future__ import annotations

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "command", nargs="?", metavar="COMMAND", help="one command (default: all of them)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    from tilefit._render.schema import render

    sys.stdout.write(render(args.command))
    return 0
