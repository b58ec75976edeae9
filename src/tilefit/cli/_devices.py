"""``tilefit devices``: the limits of every device, and where each number comes from."""

from __future__ import annotations

import argparse
import sys

from tilefit._device import capacities, device, device_names, expand, vendor_of
from tilefit._errors import UnknownNameError
from tilefit._memory import Memory
from tilefit.cli._limit import print_json

_MEMORIES = tuple(m for m in Memory if m not in (Memory.GLOBAL, Memory.NONE, Memory.UNDECIDED))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a device, FILE.toml, or a vendor (none: list them all); one device is shown "
        "with the source and confidence of every number",
    )
    parser.add_argument("--vendor", metavar="NAME", help="list the devices of one vendor")
    parser.add_argument(
        "--memory", metavar="NAME", help="list the devices that have it (shared, tensor, ub ...)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, sizes in bytes")


def run(args: argparse.Namespace) -> int:
    """Print the devices."""
    memory = None if args.memory is None else _memory(args.memory)
    vendor = None if args.vendor is None else vendor_of(args.vendor)
    named = expand(args.names) if args.names else tuple(map(device, device_names()))
    if len(named) == 1 and memory is not None:
        named[0].pool(memory)  # a name that lacks the memory is told which it has
    devices = [d for d in named if vendor in (None, d.vendor) and (memory is None or d.has(memory))]
    from tilefit.render._devices import devices_dict, render_list, render_one

    if args.json:
        print_json(devices_dict(devices))
    elif len(devices) == 1 and args.names:
        sys.stdout.write(render_one(devices[0]) + "\n")
    elif not devices:
        sys.stdout.write("no device is left by these filters\n")
    else:
        everything = not (args.names or vendor or memory)
        sys.stdout.write(render_list(devices, memory, capacities() if everything else ()) + "\n")
    return 0


def _memory(name: str) -> Memory:
    if name.casefold() not in _MEMORIES:
        raise UnknownNameError("memory", name, _MEMORIES)
    return Memory(name.casefold())
