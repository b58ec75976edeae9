"""What ``footprint`` and ``budget`` share: the arguments that name a limit, and JSON."""

from __future__ import annotations

import argparse
import sys

from tilefit.cli._parser import size

TYPE_CHECKING = False  # typing itself is not imported: these commands start as fast as they can
if TYPE_CHECKING:
    from tilefit._devices.names import Device


def add_limit_arguments(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``--capacity``, ``-d`` and ``--memory``; ``default`` says what holds without them."""
    parser.add_argument(
        "--capacity",
        type=size,
        metavar="BYTES",
        help=f"the limit as a size: 196608, 0x30000 or 192KiB ({default})",
    )
    parser.add_argument(
        "-d",
        "--device",
        action="append",
        metavar="DEVICE",
        help="the limit of a device, in place of --capacity: its name, FILE.toml, "
        "or the named capacity h100-sm-shared-228kb",
    )
    parser.add_argument(
        "--memory",
        metavar="NAME",
        help="which memory of the device (shared, lds, tensor, ub, l1, l0a, l0b, l0c); "
        "may be left out where there is one main memory",
    )


def device_argument(args: argparse.Namespace) -> str | Device | None:
    """Return what ``-d`` names, or None; several are told apart where they are looked up."""
    if not args.device:
        return None
    from tilefit._devices.config import (
        resolve_one,  # reads pyproject.toml only for names of the user's own
    )

    return resolve_one(",".join(args.device), _attached)


def _attached() -> tuple[str, ...]:
    from tilefit._devices.attached import attached_devices

    return attached_devices()


def print_json(payload: dict[str, object]) -> None:
    """Print the document of one command: what it knows is declared, not compiled."""
    import json

    document = {"schema_version": 1, "evidence": "declared", **payload}
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
