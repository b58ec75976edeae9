"""The command line: parse, call, render, exit code. Nothing is computed here.

Only the module of the chosen command is imported, so that ``tilefit footprint`` starts as
fast as a plain script. A command is a module ``tilefit.cli._NAME`` with two functions:
``configure(parser)`` adds its arguments, ``run(args) -> int`` does it and returns the exit
code.
"""

from __future__ import annotations

import errno
import os
import sys
from argparse import HelpFormatter
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from tilefit._errors import TilefitError, UnknownNameError
from tilefit.cli._parser import OneLineParser

TYPE_CHECKING = False  # importing typing costs 2 ms at every start
if TYPE_CHECKING:
    from typing import Any

COMMANDS = {
    "plan": "does this kernel fit? memory map, launch limits, verdict, stages",
    "footprint": "bytes of one tile",
    "budget": "multi-buffer GEMM budget: how many stages fit",
    "scopes": "allocation function -> scope -> physical memory",
    "explain": "a pasted error message: which memory, by how much, what to change",
    "occupancy": "blocks per core, what holds them there, and what one more needs",
    "devices": "what each device offers, with the source of every number",
    "schema": "the JSON Schema of what a command prints with --json",
}

_NARROWEST = 20  # columns in which a line still says something
# what Python says where a number that was given in hexadecimal is to be shown
_TOO_LONG = "integer string conversion"
_TRACEBACK = "TILEFIT_TRACEBACK"

_EXAMPLES = """\
tilefit: does this tile, with this many stages, fit this chip?

  tilefit plan gemm.py::matmul -d h100 --set num_stages=3
  tilefit budget --bm 128 --bn 128 --bk 64 --stages 2 3 4 -d rtx-4090
  tilefit footprint --tile 128 256 --dtype float32 --copies 2 -d ascend-910b1 --memory ub
  tilefit devices h100

Commands: {commands}.
`tilefit COMMAND --help` explains one.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (0 fits, 1 does not fit, 2 could not run)."""
    args = list(sys.argv[1:] if argv is None else argv)
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    if not _at_least(os.environ.get("COLUMNS"), _NARROWEST):
        os.environ.pop("COLUMNS", None)  # rich would print nothing at all in 0 columns
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that is not UTF-8 shows a ? for the rest
            stream.reconfigure(errors="replace")
    try:
        code = _dispatch(args)
        if closed:
            sys.stderr.write("tilefit: cannot write the answer: standard output is closed\n")
            return 2
        return code
    except TilefitError as error:
        _complain(" ".join(str(error).split()))
        return 2
    except BrokenPipeError:
        # the reader of our output went away (`tilefit ... | head`): not our failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            return _broken(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"tilefit: cannot write the answer: {error.strerror}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("tilefit: interrupted\n")
        return 130
    except ValueError as error:
        if _TOO_LONG not in str(error):
            return _broken(error)
        digits = sys.get_int_max_str_digits()
        _complain(f"a number has more than {digits:,} digits: no chip has so much of anything")
        return 2
    except Exception as error:
        return _broken(error)


def _complain(message: str) -> None:
    """Write one line to standard error; what the user named cannot steer the terminal."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in message.strip())
    sys.stderr.write(f"tilefit: {shown}\n")


def _broken(error: Exception) -> int:
    """Say what is our own fault in one line, and how to report it; 2, as nothing was answered."""
    if os.environ.get(_TRACEBACK):
        import traceback

        traceback.print_exception(error)
    from importlib.metadata import version

    said = str(error).split("\n")[0][:200]
    _complain(
        f"this is a fault of tilefit {version('tilefit')} ({type(error).__name__}: {said}); please "
        f"report it with the command, and what {_TRACEBACK}=1 shows beside it"
    )
    return 2


def _at_least(text: str | None, least: int) -> bool:
    return text is not None and text.isdecimal() and len(text) < 6 and int(text) >= least


def _dispatch(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        sys.stdout.write(_EXAMPLES.format(commands=", ".join(COMMANDS)))
        return 0
    if args[0] in ("-V", "--version"):
        from importlib.metadata import version  # heavy: only when asked

        sys.stdout.write(f"tilefit {version('tilefit')}\n")
        return 0
    name = args[0]
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    parser = _parser(name, help_wanted=bool({"-h", "--help"} & set(args)))
    command = import_module(f"tilefit.cli._{name}")
    command.configure(parser)
    code: int = command.run(parser.parse_args(args[1:]))
    sys.stdout.flush()
    return code


def _parser(name: str, *, help_wanted: bool) -> OneLineParser:
    # argparse makes a formatter for each argument; one that asks for the width imports shutil
    formatter: Any = partial(HelpFormatter, width=80)
    if help_wanted:
        from rich_argparse import RawDescriptionRichHelpFormatter

        formatter = RawDescriptionRichHelpFormatter
    return OneLineParser(
        prog=f"tilefit {name}",
        description=COMMANDS[name],
        allow_abbrev=False,
        formatter_class=formatter,
    )


def _complete() -> None:
    """Answer the shell's completion request, for which every command's parser is built."""
    import argparse

    import argcomplete

    parser = argparse.ArgumentParser(prog="tilefit")
    commands = parser.add_subparsers()
    for name in COMMANDS:
        import_module(f"tilefit.cli._{name}").configure(commands.add_parser(name))
    argcomplete.autocomplete(parser)
