"""An argparse parser whose errors are one line, and argument types shared by commands."""

from __future__ import annotations

import argparse
import re

from tilefit._errors import InputError
from tilefit._kernel.units import parse_bytes

TYPE_CHECKING = False  # importing typing costs 2 ms at every start
if TYPE_CHECKING:
    from typing import NoReturn


_SETTING = re.compile(r"[A-Za-z_]\w*=.*")


class OneLineParser(argparse.ArgumentParser):
    """Report a bad argument as one line (raised, so that the exit code is set in one place)."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage: one line names the bad value.

        Raises:
            InputError: Always.
        """
        left = message.removeprefix("unrecognized arguments: ").split()
        if left and left != message.split() and all(_SETTING.fullmatch(word) for word in left):
            again = " ".join(f"--set {word}" for word in left)
            raise InputError(f"one --set takes one NAME=VALUE: add {again}")
        raise InputError(f"{message} (see `{self.prog} --help`)")


def size(text: str) -> int:
    """Argument type: a size in bytes (see `tilefit._kernel.units.parse_bytes`)."""
    try:
        return parse_bytes(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    """Argument type: a whole number from 1."""
    try:
        value = int(text, 0)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return value
