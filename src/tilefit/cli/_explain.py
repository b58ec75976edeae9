"""``tilefit explain``: a pasted error message in plain words."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefit._errors import InputError
from tilefit._kernel.bounded import read_whole
from tilefit.cli._limit import print_json

if TYPE_CHECKING:
    from tilefit._devices.names import Device
    from tilefit._explain import Explanation
    from tilefit._planning.report import Report

_NO_TEXT = "paste a message as an argument, name a file with --log, or pipe a log into `explain -`"
_NO_DEVICE = "name a device for --kernel with -d: the text does not say which one it was"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "words", nargs="*", metavar="TEXT", help="the message; - or nothing: standard input"
    )
    parser.add_argument("--log", metavar="FILE", help="read a log")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a tile parameter (BLOCK_M=128, num_stages=3, dtype=fp16): is there a formula that "
        "gives the number? repeats; else the configuration that a log prints is used",
    )
    parser.add_argument(
        "-d",
        "--device",
        metavar="DEVICE",
        help="where it happened, for messages that do not give the limit",
    )
    parser.add_argument(
        "--kernel",
        metavar="FILE::KERNEL",
        help="also plan this kernel, with the parameters of --set, and try smaller ones",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, sizes in bytes")


def run(args: argparse.Namespace) -> int:
    """Print what is known; return 1 if nothing was recognised."""
    from tilefit._explain import explain
    from tilefit._render.explain import explanation_dict, explanation_text
    from tilefit.cli._settings import setting

    params = dict(setting(text) for text in args.set)
    given = _device(args.device) if args.device else None
    answer = explain(_text(args), params, given)
    report = _planned(args.kernel, params, given, answer) if args.kernel else None
    if args.json:
        plan = {} if report is None else {"plan": _plan_document(report)}
        print_json({**explanation_dict(answer), **plan})
    else:
        sys.stdout.write(explanation_text(answer))
        if report is not None:
            _print_plan(report)
    return 0 if answer.findings else 1


def _device(spec: str) -> Device:
    from tilefit._devices.names import expand

    devices = expand([spec])
    if len(devices) != 1:
        raise InputError(f"-d {spec} names {len(devices)} devices; name the one it happened on")
    return devices[0]


def _text(args: argparse.Namespace) -> str:
    if args.log is not None:
        if args.words:
            raise InputError("give a text or --log, not both")
        path = Path(args.log)
        try:
            with path.open("rb") as file:
                return decoded(read_whole(file, f"log {args.log!r}"))
        except OSError as error:
            raise InputError(f"log {args.log!r}: {error.strerror}") from None
    if args.words and args.words != ["-"]:
        return " ".join(args.words)
    if not args.words and sys.stdin.isatty():
        raise InputError(_NO_TEXT)
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else decoded(read_whole(binary, "the text"))


def decoded(data: bytes) -> str:
    """Return a log as text: UTF-8, or UTF-16 as PowerShell writes it; what is neither, replaced."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8", errors="replace")


def _planned(
    kernel: str, params: dict[str, Any], given: Device | None, answer: Explanation
) -> Report:
    """Plan the kernel on the device that was named, or that the text leads to."""
    from tilefit._devices.names import device
    from tilefit._planning.plan import plan_with

    names = [name for finding in answer.findings for name in finding.devices]
    if given is None and not names:
        raise InputError(_NO_DEVICE)
    if given is None:
        found = [device(name) for name in names]
        given = next((one for one in found if one.product), found[0])
    return plan_with(kernel, given, params)


def _plan_document(report: Report) -> object:
    import json

    from tilefit._render import json as _json

    return json.loads(_json.render(report))


def _print_plan(report: Report) -> None:
    from rich.console import Console

    from tilefit._render.text import map as _text

    sys.stdout.write("\n")
    Console(highlight=False).print(_text.render(report), soft_wrap=True)
