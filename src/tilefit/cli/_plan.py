"""``tilefit plan FILE[::KERNEL] -d DEVICE``: the main job."""

from __future__ import annotations

import argparse
import os
import sys

from tilefit._errors import InputError
from tilefit.cli._parser import positive, size
from tilefit.cli._progress import Progress
from tilefit.cli._settings import pass_configs, settings

TYPE_CHECKING = False  # typing, pathlib and ast cost 6 ms; a kept answer needs none of them
if TYPE_CHECKING:
    from typing import Any

    from tilefit._devices.names import Device
    from tilefit._planning.report import Report
    from tilefit._planning.values import Values
    from tilefit._reading.store import Store

_NO_DEVICE = "name a device with -d: h100, a100, rtx-4090, b200, rtx-5090 ... (`tilefit devices`)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan`."""
    parser.add_argument(
        "source",
        metavar="FILE[::KERNEL]",
        help="the file and the kernel in it; a file alone: every kernel that its main compiles; "
        "a folder: every file below it",
    )
    parser.add_argument(
        "-d",
        "--device",
        action="append",
        default=[],
        metavar="DEVICE",
        help="device name, comma list or vendor; repeats",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a kernel parameter: a Python literal, a dtype name or text; repeats",
    )
    parser.add_argument(
        "--values",
        metavar="FILE.toml",
        help="values of kernels that need some, in sets: --template writes such a file",
    )
    parser.add_argument(
        "--template",
        action="store_true",
        help="write a file for --values: every kernel that needs values, read from its source",
    )
    parser.add_argument("--list", action="store_true", help="list the kernels and parameters")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--format", choices=("text", "json", "csv", "md"), help="how to print")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to a file; its suffix names the format"
    )
    parser.add_argument(
        "--shapes",
        metavar="FILE.csv",
        help="plan a list of problem sizes: a header of parameter names, a row each",
    )
    parser.add_argument(
        "--assemble",
        action="store_true",
        help="run nvcc and ptxas too: registers, spills, matrix instructions",
    )
    parser.add_argument(
        "--headroom",
        type=size,
        default=0,
        metavar="SIZE",
        help="shared memory of a block, or UB, that has to stay free (0)",
    )
    parser.add_argument(
        "--blocks",
        type=positive,
        metavar="N",
        help="blocks that one core has to hold at once; counting registers takes --assemble",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="read the source alone: needs no toolchain, executes nothing, is arithmetic",
    )
    parser.add_argument(
        "--watch", action="store_true", help="answer again whenever the file is saved"
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="files of a folder that are read at the same time (one for each processor, up to 8)",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="read everything again and keep nothing"
    )
    parser.add_argument(
        "--ladder",
        metavar="NAME[=VALUES]",
        help="step a parameter up until it no longer fits; VALUES is FIRST:LAST[:STEP] or V1,V2",
    )
    parser.add_argument(
        "--suggest",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="compile small edits (default: when it does not fit)",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="CONDITION",
        help="what the edits leave true, as in num_stages>=2; repeats",
    )
    parser.add_argument(
        "--pass-config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a compiler option on top of the kernel's own, as in tl.disable_tma_lower=True; "
        "repeats",
    )
    parser.add_argument(
        "--fail-on",
        choices=("any", "none"),
        help="exit 1 if any device does not fit (default for named devices), or none: always 0 "
        "(default for a vendor)",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="interpreter that has your TileLang; it need not have tilefit",
    )
    parser.add_argument(
        "--frontend",
        metavar="NAME",
        help="what reads the kernels: tilelang, source or one that a package registers (default: "
        "by what the file imports)",
    )
    parser.add_argument(
        "--timeout", type=positive, default=120, metavar="SECONDS", help="per lowering (120)"
    )
    parser.add_argument(
        "--memory-limit", type=size, default=8 * 2**30, metavar="SIZE", help="for user code (8GiB)"
    )


_LEAST_MEMORY_BYTES = 256 * 2**20  # Python and a toolchain, before any user code runs


def run(args: argparse.Namespace) -> int:
    """Plan the kernel and print the answer; return the exit code."""
    if args.memory_limit < _LEAST_MEMORY_BYTES:
        raise InputError(
            f"--memory-limit of {args.memory_limit:,} B: Python and a toolchain take 256 MiB by "
            "themselves, so give that at least"
        )
    if args.template:
        return _template(args)
    if _is_folder(args.source):
        return _folder(args)
    from dataclasses import replace
    from pathlib import Path

    from tilefit._kernel.naming import split_source
    from tilefit._planning import plan as _analyze
    from tilefit._planning.shapes import read_shapes
    from tilefit._reading.child import Limits

    limits = Limits(seconds=args.timeout, memory_bytes=args.memory_limit)
    params = settings(args.set)
    output_format = _format(args)
    _refuse_combinations(args)
    if args.list:
        split_source(args.source)
        with Progress() as progress:
            listings, note = _analyze.kernels_in(
                args.source,
                limits=limits,
                python=args.python,
                progress=progress,
                estimate=args.estimate,
                frontend=args.frontend,
            )
        _print_listing(args, listings, note)
        return 0
    devices = _devices(args)
    shapes = read_shapes(Path(args.shapes)) if args.shapes else ()
    options = _analyze.Options(
        headroom_bytes=args.headroom,
        blocks=args.blocks,
        assemble=args.assemble,
        suggest=args.suggest,
        ladder=args.ladder,
        estimate=args.estimate,
        cache=not args.no_cache,
        frontend=args.frontend,
        keep=tuple(args.keep),
        pass_configs=pass_configs(args.pass_config),
    )
    if args.watch:
        from tilefit._planning.watch import watch

        cases = [{**params, **shape} for shape in shapes] or [params]
        watch(
            *(args.source, devices, cases, options, limits, args.python),
            lambda report: _print(report, output_format, args.output, flush=True),
            lambda line: print(line, file=sys.stderr, flush=True),  # noqa: T201
        )
        return 0
    with Progress() as progress:
        report = _analyze.plan_with(
            args.source,
            devices,
            params,
            shapes=shapes,
            values=_values(args),
            limits=limits,
            python=args.python,
            options=replace(options, progress=progress),
        )
    _print(report, output_format, args.output)
    return report.exit_code if _gates(args) else 0


def _folder(args: argparse.Namespace) -> int:
    """Plan every kernel below a folder; an answer that still holds is printed again."""
    from tilefit._reading.kept import KeptAnswer, usable
    from tilefit._reading.store import Store

    _refuse_combinations(args)
    output_format = _format(args)
    store = Store() if not (args.no_cache or args.estimate) else None
    kept = None
    if store is not None and usable(args.device, args.output, sys.stdout.isatty()):
        words = (
            *(args.device, args.set, output_format, args.suggest, args.fail_on, args.python),
            *(args.headroom, args.blocks, args.frontend, args.pass_config),
            _read_again(args.values),
        )
        kept = KeptAnswer(store, args.source, words)
        known = kept.get()
        if known is not None:
            sys.stdout.write(known[0])
            return known[1]
    report = _folder_report(args, store)
    code = report.exit_code if _gates(args) else 0
    if kept is not None:
        kept.keep(_rendered(report, output_format) + "\n", code)
    _print(report, output_format, args.output)
    return code


def _folder_report(args: argparse.Namespace, store: Store | None) -> Report:
    from tilefit._planning import plan as _analyze
    from tilefit._reading.child import Limits

    devices = _devices(args)
    with Progress() as progress:
        return _analyze.plan_below(
            args.source,
            devices,
            settings(args.set),
            values=_values(args),
            limits=Limits(seconds=args.timeout, memory_bytes=args.memory_limit),
            python=args.python,
            options=_analyze.Options(
                headroom_bytes=args.headroom,
                blocks=args.blocks,
                estimate=args.estimate,
                cache=store is not None,
                frontend=args.frontend,
                pass_configs=pass_configs(args.pass_config),
            ),
            store=store,
            workers=args.jobs or min(os.cpu_count() or 1, 8),
            step=progress.step,
        )


def _devices(args: argparse.Namespace) -> tuple[Device, ...]:
    """Return the devices that ``-d``, or the configuration, names."""
    from tilefit._devices.attached import attached_devices
    from tilefit._devices.config import resolve

    devices = resolve(args.device, lambda: attached_devices(args.python))
    if not devices:
        raise InputError(_NO_DEVICE)
    return devices


def _is_folder(source: str) -> bool:
    return bool(source) and os.path.isdir(source)  # noqa: PTH112


def _refuse_combinations(args: argparse.Namespace) -> None:
    """Refuse what cannot be meant together."""
    if args.estimate and args.assemble:
        raise InputError("--estimate compiles nothing, so there is nothing to --assemble")
    if args.list and args.watch:
        raise InputError("--list and --watch contradict each other: give one")
    for flag in ("list", "watch"):
        if args.values is not None and getattr(args, flag):
            raise InputError(f"--{flag} takes no --values: leave one out")
    if not _is_folder(args.source):
        return
    for flag in ("list", "watch", "ladder", "shapes", "assemble", "suggest", "keep"):
        if getattr(args, flag):
            raise InputError(f"--{flag} is about one file: {args.source} is a folder")


def _format(args: argparse.Namespace) -> str:
    """Return the format that was asked for, or that the output file's suffix names."""
    if args.json and args.format not in (None, "json"):
        raise InputError(f"--json and --format {args.format} contradict each other: give one")
    if args.json:
        return "json"
    if args.format:
        return str(args.format)
    suffix = os.path.splitext(args.output)[1].lstrip(".").casefold() if args.output else ""  # noqa: PTH122
    known = {"json": "json", "csv": "csv", "md": "md", "txt": "text", "": "text"}
    if suffix not in known:
        raise InputError(
            f"-o {args.output}: no format has the suffix .{suffix}; use .json, .csv, .md or .txt, "
            "or name one with --format"
        )
    return known[suffix]


def _print(report: Report, output_format: str, output: str | None, *, flush: bool = False) -> None:
    """Print the report, or write it to a file."""
    if output_format == "text" and output is None:
        from rich.console import Console

        from tilefit._render.text import map as _text
        from tilefit._render.visible import screen

        Console(highlight=False).print(screen(_text.render(report)), soft_wrap=True)
        return
    _write(_rendered(report, output_format) + "\n", output)
    if output is None and flush:
        sys.stdout.flush()


def _write(text: str, output: str | None) -> None:
    """Write to a file, or to standard output."""
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with open(output, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None


def _rendered(report: Report, output_format: str) -> str:
    """Return the report as plain text of a format."""
    if output_format == "text":
        from tilefit._render.text import map as _text
        from tilefit._render.visible import visible

        return visible(_text.render(report).plain)
    if output_format == "json":
        from tilefit._render import json as _json

        return _json.render(report)
    from tilefit._render import table as _table

    return _table.render_csv(report) if output_format == "csv" else _table.render_md(report)


def _gates(args: argparse.Namespace) -> bool:
    """Say whether a misfit fails the command: not where a whole vendor was asked about."""
    from tilefit._devices.names import VENDORS

    if args.fail_on is not None:
        return bool(args.fail_on == "any")
    words = {word.strip().casefold() for spec in args.device for word in spec.split(",")}
    return words.isdisjoint(("all", "huawei", *VENDORS))


def _values(args: argparse.Namespace) -> Values | None:
    """Return the values of ``--values``; None without it."""
    if args.values is None:
        return None
    from pathlib import Path

    from tilefit._planning.values import read_values

    return read_values(Path(args.values))


def _read_again(file: str | None) -> str | None:
    """Return what is in a values file: a printed answer holds for it alone."""
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
            return opened.read()
    except OSError:
        return None  # it is said where it is read


def _template(args: argparse.Namespace) -> int:
    """Write a values file for the kernels that need values."""
    from pathlib import Path

    from tilefit._planning.plan import values_template

    for flag in ("list", "watch", "ladder", "shapes", "assemble", "suggest", "values", "set"):
        if getattr(args, flag):
            raise InputError(f"--template writes a file and plans nothing: leave out --{flag}")
    folder = Path(args.output).parent if args.output else Path.cwd()
    _write(values_template(args.source, folder, frontend=args.frontend), args.output)
    return 0


def _print_listing(args: argparse.Namespace, listings: Any, note: str | None) -> None:
    if args.json:
        from tilefit._kernel.naming import file_and_kernel
        from tilefit._render import json as _json

        file, _ = file_and_kernel(args.source)
        sys.stdout.write(_json.render_listing(file, listings, note) + "\n")
        return
    from tilefit._kernel.naming import signature
    from tilefit._render.visible import visible

    lines = [f"{signature(item)}   {item.style}, line {item.line}" for item in listings]
    lines = (lines or ["no kernels"]) + ([f"note: {note}"] if note is not None else [])
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
