"""``FILE::KERNEL``: which file, which of its kernels."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.dtype import names_dtype
from tilefit._kernel.kernel import Listing

MAX_SOURCE_BYTES = 1_000_000
"""What is longer was made by a machine, and Python takes long to parse it."""


def split_source(text: str) -> tuple[Path, str | None]:
    """Split ``FILE::KERNEL`` and check that the file can be read.

    Raises:
        InputError: Missing, a folder, or no regular file.
    """
    name, kernel = file_and_kernel(text)
    if not name:
        raise InputError(f"{text!r} names no file: write it as in gemm.py::matmul")
    path = Path(name)
    try:
        if path.is_dir():
            raise InputError(f"{name} is a folder: name one file, as in {name.rstrip('/')}/FILE.py")
        if path.exists() and not path.is_file():
            raise InputError(f"{name} is no regular file")  # reading a pipe would never end
        with path.open("rb"):
            pass
    except FileNotFoundError:
        file, colon, kernel_name = name.rpartition(":")
        hint = ""
        if colon and os.path.isfile(file):  # noqa: PTH113
            hint = f"; a kernel follows two colons, as in {file}::{kernel_name}"
        raise InputError(f"no such file: {name}{hint}") from None
    except OSError as error:
        raise InputError(f"cannot read {name[:200]}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"cannot read {name!r}: {error}") from None
    return path, kernel


def check_source(path: Path, suffixes: Sequence[str]) -> None:
    """Check that a file is of a kind, and that Python, unless huge, can be parsed.

    Args:
        path: The file.
        suffixes: Of the names of such files.

    Raises:
        InputError: It is of another kind, or has a syntax error; the message names the line.
    """
    name = str(path)
    if path.suffix not in suffixes:
        kind = "Python file" if suffixes == (".py",) else "file of this frontend"
        raise InputError(f"{name} is no {kind}: its name does not end in {' or '.join(suffixes)}")
    if path.suffix != ".py":
        return
    try:
        with warnings.catch_warnings(action="ignore"):  # what Python says when it is executed
            content = path.read_bytes()
            if len(content) <= MAX_SOURCE_BYTES:
                ast.parse(content, filename=name)
    except SyntaxError as error:
        where = f"{name}:{error.lineno}" if error.lineno else name
        raise InputError(f"{where}: syntax error: {error.msg}") from None
    except OSError as error:
        raise InputError(f"cannot read {name[:200]}: {error.strerror}") from None
    except (ValueError, MemoryError, RecursionError, SystemError) as error:
        raise InputError(f"cannot parse {name}: {str(error) or 'too deeply nested'}") from None


def file_and_kernel(text: str) -> tuple[str, str | None]:
    """Split ``file.py::kernel``; the name of a file that is there may hold ``::`` itself."""
    name, mark, kernel = text.rpartition("::")
    if not mark or os.path.isfile(text):  # noqa: PTH113  # a Path raises where the name is no name
        return text, None
    return name, kernel or None


def pick(listings: Sequence[Listing], kernel: str | None, path: Path) -> Listing:
    """Return the kernel that was named, or the only one.

    Raises:
        InputError: None in the file, several and none named, or no such name.
    """
    if not listings:
        raise no_kernel(path)
    known = "; ".join(signature(item) for item in listings)
    if kernel is None:
        if len(listings) == 1:
            return listings[0]
        raise InputError(f"name the kernel, as in {path.name}::{listings[0].name}; it has {known}")
    for item in listings:
        if item.name == kernel:
            return item
    raise UnknownNameError("kernel", kernel, [i.name for i in listings], f"{path.name} has {known}")


def no_kernel(path: Path) -> InputError:
    """Return the error to raise for a file in which there is no kernel; one of Triton is named."""
    text = b""
    with suppress(OSError):
        text = path.read_bytes()
    if b"triton" in text and b"tilelang" not in text:
        return InputError(
            f"{path.name} is written for Triton: plan does not read Triton kernels yet, only "
            "TileLang's"
        )
    return InputError(
        f"no TileLang kernel in {path.name}: it needs a @tilelang.jit function, "
        "a @T.prim_func or a function that returns one, at module level"
    )


def signature(listing: Listing) -> str:
    """Return a kernel with its parameters and defaults on one line."""
    shown = [p.name if p.required else f"{p.name}={p.default!r}" for p in listing.parameters]
    return f"{listing.name}({', '.join(shown)})"


def refuse_text_for_numbers(listing: Listing, params: Mapping[str, Any]) -> None:
    """Refuse a word where a kernel's default is a whole number; a data type may be meant.

    Raises:
        InputError: There is one; the message names the parameter.
    """
    for item in listing.parameters:
        value = params.get(item.name)
        if type(item.default) is int and isinstance(value, str) and not names_dtype(value):
            raise InputError(f"{item.name}={value!r} is no whole number (default {item.default})")


def blamed(listing: Listing, params: Mapping[str, Any]) -> str:
    """Return ``with bk=0: `` for the values that may be why a kernel fails; empty if none may.

    Those are the values that differ from the author's defaults, and, where there is no default,
    those that are no size.
    """
    defaults = {item.name: item.default for item in listing.parameters if not item.required}
    odd = [
        f"{name}={value!r}"
        for name, value in params.items()
        if (value != defaults[name] if name in defaults else not _is_size(value))
    ]
    return f"with {', '.join(odd)}: " if odd else ""


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and value > 0
