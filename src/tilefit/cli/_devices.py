"""``tilefit devices``: the limits of every device, and where each number comes from."""

from __future__ import annotations

import argparse
import sys

from tilefit._devices import config as _config
from tilefit._devices.names import Device, capacities, device, device_names, vendor_of
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory
from tilefit.cli._limit import print_json

_MEMORIES = tuple(m for m in Memory if m not in (Memory.GLOBAL, Memory.NONE, Memory.UNDECIDED))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a device, FILE.toml, a vendor or `attached` (none: list them all); one device is "
        "shown with the source and confidence of every number",
    )
    parser.add_argument("--vendor", metavar="NAME", help="list the devices of one vendor")
    parser.add_argument(
        "--memory", metavar="NAME", help="list the devices that have it (shared, tensor, ub ...)"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="ask the attached devices, and show each limit beside the table's",
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        default=sys.executable,
        help="with --live or `attached`: the interpreter that has torch, cuda-bindings or CANN "
        "(default: this one)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, sizes in bytes")


def run(args: argparse.Namespace) -> int:
    """Print the devices."""
    if args.live:
        return _live(args)
    memory = None if args.memory is None else _memory(args.memory)
    vendor = None if args.vendor is None else vendor_of(args.vendor)
    own: tuple[Device, ...] = ()
    if args.names:
        named = _config.resolve(args.names, lambda: _attached(args.python))
    else:
        named, own = tuple(map(device, device_names())), _config.devices()
    if len(named) == 1 and memory is not None:
        named[0].pool(memory)  # a name that lacks the memory is told which it has

    def wanted(found: Device) -> bool:
        return vendor in (None, found.vendor) and (memory is None or found.has(memory))

    devices, own = tuple(filter(wanted, named)), tuple(filter(wanted, own))
    from tilefit._render.devices import devices_dict, render_list, render_one

    if args.json:
        print_json(devices_dict([*devices, *own]))
    elif len(devices) == 1 and args.names:
        sys.stdout.write(render_one(devices[0]) + "\n")
    elif not (devices or own):
        sys.stdout.write("no device is left by these filters\n")
    else:
        everything = not (args.names or vendor or memory)
        shown = capacities() if everything else ()
        sys.stdout.write(render_list(devices, memory, shown, own) + "\n")
    return 0


def _live(args: argparse.Namespace) -> int:
    """Print the attached devices beside the table; a machine without one is no failure."""
    if args.names or args.vendor or args.memory:
        raise InputError("--live shows every limit of what is attached: name and filter nothing")
    from tilefit._devices.attached import ask
    from tilefit._render.live import live_dict, render_live

    answer = ask(args.python)
    if args.json:
        print_json(live_dict(answer))
    else:
        sys.stdout.write(render_live(answer) + "\n")
    return 0


def _attached(python: str) -> tuple[str, ...]:
    from tilefit._devices.attached import attached_devices

    return attached_devices(python)


def _memory(name: str) -> Memory:
    if name.casefold() not in _MEMORIES:
        raise UnknownNameError("memory", name, _MEMORIES)
    return Memory(name.casefold())
