"""Which frontends there are: our own, and those that installed packages register.

A package registers one under the entry point group ``tilefit.frontends``, as ``NAME =
"module:Frontend"``; see `tilefit._frontends.protocol.Frontend`. Nothing of a frontend is imported
before it is chosen. Our own are known without metadata too, as a child may run under an interpreter
in which tilefit is not installed.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import cast

from tilefit._errors import InputError, ToolchainError, UnknownNameError
from tilefit._frontends.protocol import Compiling, Frontend
from tilefit._kernel.toolchain import Toolchain

GROUP = "tilefit.frontends"
DEFAULT = "tilelang"
OWN = {
    "tilelang": "tilefit._frontends.tilelang.frontend:TileLangFrontend",
    "source": "tilefit._frontends.source.frontend:SourceFrontend",
}
_MARKED = ("tilelang",)
"""Our own that files are recognised for, in the order in which they are asked."""


def references() -> dict[str, str]:
    """Return every frontend by its name, as ``module:attribute``; our own first."""
    from importlib.metadata import entry_points

    others = {one.name: one.value for one in entry_points(group=GROUP)}
    return {**OWN, **{name: value for name, value in others.items() if name not in OWN}}


def reference(name: str) -> str:
    """Return where the frontend of that name is.

    Raises:
        UnknownNameError: No package registers it.
    """
    known = OWN if name in OWN else references()
    if name not in known:
        raise UnknownNameError("frontend", name, known)
    return known[name]


@cache
def load(where: str) -> Frontend:
    """Import a frontend.

    Args:
        where: ``module:attribute``, as `reference` gives it.

    Raises:
        ToolchainError: It cannot be imported here.
    """
    module, _, attribute = where.partition(":")
    try:
        made: Frontend = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise ToolchainError(f"the frontend {where} cannot be imported: {error}") from error
    return made


def compiling(name: str) -> Compiling:
    """Return the frontend of that name, whose toolchain compiles.

    Raises:
        InputError: It does not.
        UnknownNameError: No package registers it.
        ToolchainError: It cannot be imported here.
    """
    found = frontend(name)
    if not found.toolchain.compiles:
        raise InputError(f"the frontend {name} compiles nothing: it reads files alone")
    return cast(Compiling, found)


def frontend(name: str) -> Frontend:
    """Return the frontend of that name.

    Raises:
        UnknownNameError: No package registers it.
        ToolchainError: It cannot be imported here.
    """
    return load(reference(name))


def recognised(text: bytes) -> str | None:
    """Return the name of the frontend whose kernels a file is written for; None if of none."""
    for name, toolchain in ((name, frontend(name).toolchain) for name in _MARKED):
        if any(mark.encode() in text for mark in toolchain.marks):
            return name
    for toolchain in _others():
        if any(mark.encode() in text for mark in toolchain.marks):
            return toolchain.name
    return None


def suffixes() -> tuple[str, ...]:
    """Return what the names of files end in that any frontend reads."""
    own = (frontend(name).toolchain for name in OWN)
    found = (suffix for one in (*own, *_others()) for suffix in one.suffixes)
    return tuple(dict.fromkeys(found))


@cache
def _others() -> tuple[Toolchain, ...]:
    """Return the toolchains of others; one that cannot be imported costs itself alone."""
    found = []
    for name in references():
        if name not in OWN:
            with suppress(ToolchainError):  # it says so where it is asked for by name
                found.append(frontend(name).toolchain)
    return tuple(found)
