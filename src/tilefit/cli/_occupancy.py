"""``tilefit occupancy``: blocks per core, what holds them there, and what one more needs."""

from __future__ import annotations

import argparse
import sys

from tilefit._errors import InputError
from tilefit.cli._limit import print_json
from tilefit.cli._parser import positive, size

_NO_DEVICE = "name a device with -d: h100, a100, rtx-4090, b200, mi300x ... (`tilefit devices`)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "-d", "--device", action="append", metavar="DEVICE", help="a device, or FILE.toml"
    )
    parser.add_argument(
        "--threads", type=positive, required=True, metavar="N", help="threads of one block"
    )
    parser.add_argument(
        "--regs",
        type=_count,
        metavar="N",
        help="registers of one thread at launch, as ptxas says (AMD: VGPR and AGPR); left out: "
        "unknown, and the answer is an upper bound",
    )
    parser.add_argument(
        "--smem",
        type=size,
        default=0,
        metavar="BYTES",
        help="shared memory (AMD: LDS) of one block, static + dynamic, without what the driver "
        "reserves (default: 0)",
    )
    parser.add_argument(
        "--static", type=size, default=0, metavar="BYTES", help="how much of --smem is static"
    )
    parser.add_argument(
        "--carveout", type=_count, metavar="PERCENT", help="of shared memory (default: all of it)"
    )
    parser.add_argument(
        "--no-optin",
        action="store_true",
        help="the kernel does not opt in to more shared memory than the default per block",
    )
    parser.add_argument(
        "--max-dynamic",
        type=size,
        metavar="BYTES",
        help="the dynamic bytes that it opts in to (default: all there are)",
    )
    parser.add_argument(
        "--barriers", type=_count, metavar="N", help="block barriers that it uses (default: 1)"
    )
    parser.add_argument("--cluster", type=positive, metavar="N", help="blocks of a cluster")
    parser.add_argument(
        "--tmem", type=positive, metavar="COLUMNS", help="columns of tensor memory of one block"
    )
    parser.add_argument(
        "--role",
        action="append",
        type=_role,
        default=[],
        metavar="THREADS:REGS",
        help="threads of a warp-specialised kernel with the registers that setmaxnreg gives "
        "them; repeats",
    )
    parser.add_argument(
        "--wave", type=positive, metavar="LANES", help="AMD RDNA: 64 for kernels in wave64"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, sizes in bytes")


def run(args: argparse.Namespace) -> int:
    """Print the occupancy; return 1 if such a block cannot run."""
    from tilefit._devices.attached import attached_devices
    from tilefit._devices.config import resolve_one
    from tilefit._occupancy.occupancy import occupancy
    from tilefit._render.occupancy import occupancy_dict, occupancy_text

    if not args.device:
        raise InputError(_NO_DEVICE)
    if args.static > args.smem:
        raise InputError(f"--static {args.static} is above --smem {args.smem}, which includes it")
    spec = ",".join(args.device)
    answer = occupancy(
        resolve_one(spec, attached_devices),
        threads=args.threads,
        registers=args.regs,
        static_smem=args.static,
        dynamic_smem=args.smem - args.static,
        carveout=args.carveout,
        barriers=args.barriers,
        cluster=args.cluster,
        tmem_columns=args.tmem,
        optin=not args.no_optin,
        max_dynamic_smem=args.max_dynamic,
        wave=args.wave,
        roles=args.role,
    )
    if args.json:
        print_json(occupancy_dict(answer))
    else:
        sys.stdout.write(occupancy_text(answer, spec))
    return 0 if answer.fits else 1


def _count(text: str) -> int:
    """Argument type: a whole number from 0."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return value


def _role(text: str) -> tuple[int, int]:
    """Argument type: ``THREADS:REGS``."""
    threads, _, registers = text.partition(":")
    try:
        return positive(threads), positive(registers)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not THREADS:REGS, as in 128:240") from None
