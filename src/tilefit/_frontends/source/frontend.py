"""Kernels as their source declares them: Python's `ast` only, nothing is imported or run.

An estimate for machines without a toolchain. What the source does not give is unknown, and the
notes of the kernel name the ``--set`` that would give it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from tilefit._errors import InputError, UnknownNameError
from tilefit._frontends.source.allocate import BORROWED
from tilefit._frontends.source.factories import Factory, first_config
from tilefit._frontends.source.find import adapter_of, kernels_among, listing
from tilefit._frontends.source.interpreter import RULES, follow_module
from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.siblings import Siblings
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.naming import MAX_SOURCE_BYTES
from tilefit._kernel.request import Request
from tilefit._kernel.toolchain import Edits, Toolchain

# TileLang lowers for Ascend 950, whose target is "ascend"; a file of the common dialect can run
# on the older chips ("ascend-910b" ...) through the adapter only
_ADAPTER_ONLY = "ascend-"


SOURCE = Toolchain(
    name="source",
    title="the source alone",
    compiles=False,
    targets="tilelang",
    vendors=("nvidia", "amd", "ascend"),
    needs_target=False,
    edits={"ascend": Edits(all_stages=True)},
)


class SourceFrontend:
    """Reads files of TileLang's dialects without TileLang."""

    toolchain = SOURCE
    name = SOURCE.name

    def version(self) -> str:
        """Return an empty text: there is no toolchain behind it."""
        return ""

    def load(self, path: FilePath, device_facts: Mapping[str, Any] | None = None) -> SourceFile:
        """Parse a file; see `Frontend.load`.

        Raises:
            InputError: It cannot be read or is no Python; the message names the line.
        """
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(_content(path), filename=str(path))
        except SyntaxError as error:
            where = f"{path}:{error.lineno}" if error.lineno else str(path)
            raise InputError(f"{where}: syntax error: {error.msg}") from None
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, MemoryError, RecursionError, SystemError) as error:
            raise InputError(f"cannot parse {path}: {str(error) or 'too deeply nested'}") from None
        return SourceFile(path, tree, device_facts or {})


def _content(path: FilePath) -> bytes:
    """Return a file's bytes.

    Raises:
        InputError: There are too many for the source of a kernel.
    """
    size = path.stat().st_size
    if size > MAX_SOURCE_BYTES:
        raise InputError(f"{path} is {size:,} B: an estimate reads {MAX_SOURCE_BYTES:,} B at most")
    return path.read_bytes()


class SourceFile:
    """A parsed file."""

    def __init__(self, path: FilePath, tree: ast.Module, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.tree = tree
        self._facts = facts
        self._listings: tuple[Listing, ...] | None = None
        self._read: Mapping[FilePath, None] = {}
        try:
            self._adapter = adapter_of(tree)
        except RecursionError:
            self._adapter = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The file, the author's modules that it was followed into, and those looked for."""
        return tuple(map(str, (self.path, *self._read)))

    def kernels(self) -> tuple[Listing, ...]:
        """List the kernels in the order in which the file defines them."""
        if self._listings is None:
            machine = self._module({}, self._adapter)
            names = machine.scope.vars
            self._listings = tuple(
                listing(
                    name,
                    value,
                    names.get(name.partition(".")[0]) if "." in name else None,
                    first_config(value, machine),
                )
                for name, value in kernels_among(machine.scope).items()
            )
        return self._listings

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Say what a kernel declares with these parameters; see `Source.read`.

        Compiler options change nothing that is declared, and there is nothing to assemble.
        """
        kernel, params, target = request.kernel, request.params, request.target
        names = [one.name for one in self.kernels()]
        if kernel not in names:
            raise UnknownNameError("kernel", kernel, names)
        adapter = self._adapter
        if not adapter and target.startswith(_ADAPTER_ONLY):
            adapter = BORROWED
        machine = self._module(params, adapter)
        factory = Factory(machine, kernel)
        kernels = factory.kernels(target)
        unused = [name for name in params if name not in machine.taken]
        if unused and factory.complete:
            raise UnknownNameError(f"parameter of {kernel}", unused[0], factory.names())
        return kernels

    def _module(self, given: Mapping[str, Any], adapter: tuple[str, ...]) -> Machine:
        """Follow the statements of the module."""
        siblings = Siblings(self.path)
        machine = Machine(
            *(self.path.name, given, RULES), adapter=adapter, facts=self._facts, siblings=siblings
        )
        machine.scope.vars["__name__"] = self.path.stem
        follow_module(machine, self.tree)
        # what a kernel imports when it is followed comes to it
        self._read = siblings.files
        return machine
