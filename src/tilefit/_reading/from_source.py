"""A file's kernels from its source alone; nothing of it is executed.

`Estimated` reads what the file defines, `AsMain` the same with the values that its own main gave
elsewhere: main runs for a device that a toolchain compiles for, and for a device beside it that
none does the same kernels are estimated, so that each counts once for every device.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilefit._errors import Cause, UnknownNameError
from tilefit._frontends.protocol import Ran, Unbuilt
from tilefit._frontends.registry import frontend
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.request import Request

_NOT_SHOWN = (
    "its source alone does not show how main makes it: --estimate reads what the file defines"
)


class Estimated:
    """A file's kernels as their source declares them; nothing is executed."""

    def __init__(
        self, path: Path, name: str = "source", device_facts: Mapping[str, Any] | None = None
    ) -> None:
        """Parse the file.

        Args:
            path: The file.
            name: Of the frontend that reads it, which executes nothing.
            device_facts: The device that the source may ask for.

        Raises:
            InputError: It cannot be read or is no Python.
        """
        found = frontend(name)
        self.toolchain, self.version = found.toolchain, found.version()
        self._file = found.load(path, device_facts)
        self._path, self._name = path, name

    @property
    def files(self) -> tuple[str, ...]:
        """What the answers rest on: the file, and others that its frontend followed."""
        return tuple(getattr(self._file, "files", ())) or (str(self._path),)

    def load(self, stand_ins: Sequence[Mapping[str, Any]] = ()) -> tuple[Listing, ...]:  # noqa: ARG002
        """Return the kernels that the file defines."""
        return self._file.kernels()

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Return the kernels that need no value; nothing is run."""
        self._file = frontend(self._name).load(self._path, device_facts)
        offered = self.load()
        made_by = _factories_of(self._path, offered)
        ready, open_ones = [], []
        for item in offered:
            missing = [p.name for p in item.parameters if p.required]
            if not missing:
                ready.append(item)
                continue
            if item.name in made_by:  # the file itself calls it: that is the kernel that it is for
                continue
            add = " ".join(f"--set {name}=VALUE" for name in missing)
            reason = f"needs a value for {', '.join(missing)}: plan it by its name with {add}"
            open_ones.append(
                Unbuilt(
                    kernel=item.name,
                    reason=reason,
                    cause=Cause.NEEDS_VALUE,
                    needs=tuple(missing),
                )
            )
        return Ran(kernels=tuple(ready), unbuilt=tuple(open_ones), ended=None, stubbed=())

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Return one kernel as it is declared; see `SourceFile.read`."""
        return self._file.read(request)


class AsMain:
    """The kernels that main compiled, as their source declares them."""

    def __init__(self, path: Path, main: Ran, name: str = "source") -> None:
        """Prepare to read a file.

        Args:
            path: The file.
            main: What running its main showed.
            name: Of the frontend that reads it, which executes nothing.
        """
        self._path, self._main = path, main
        self._source = Estimated(path, name)
        self.toolchain, self.version = self._source.toolchain, self._source.version
        self._values: dict[str, tuple[str, dict[str, Any]]] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """What the answers rest on; see `Estimated.files`."""
        return self._source.files

    def load(self, stand_ins: Any = ()) -> tuple[Listing, ...]:
        """Return the kernels that the file defines."""
        return self._source.load(stand_ins)

    def run(self, device_facts: Mapping[str, Any]) -> Ran:
        """Return the kernels that main compiled; nothing is run.

        What the source alone offers, where it shows none of them.
        """
        alone = self._source.run(device_facts)
        offered = self._source.load()
        asked = [*self._main.kernels, *(_named(one.kernel) for one in self._main.unbuilt)]
        if not any(_same(one.name, offered) for one in asked):
            return alone
        ready: list[Listing] = []
        failed: list[Unbuilt] = []
        for one in asked:
            own = _same(one.name, offered)
            if own is None:
                unknown = Cause.NOT_SHOWN
                failed.append(Unbuilt(kernel=one.name, reason=_NOT_SHOWN, cause=unknown))
                continue
            values = _values(own, one)
            self._values[one.name] = own.name, values
            parameters = tuple(
                replace(p, default=values[p.name], required=False) if p.name in values else p
                for p in own.parameters
            )
            missing = [p.name for p in parameters if p.required]
            if missing:
                reason = f"needs a value for {', '.join(missing)}, which its main does not give"
                failed.append(
                    Unbuilt(
                        kernel=one.name,
                        reason=reason,
                        cause=Cause.NEEDS_VALUE,
                        needs=tuple(missing),
                    )
                )
                continue
            ready.append(replace(own, name=one.name, parameters=parameters))
        return Ran(kernels=tuple(ready), unbuilt=tuple(failed), ended=None, stubbed=())

    def read(self, request: Request) -> tuple[Kernel, ...]:
        """Return one kernel as it is declared with main's values; see `SourceFile.read`."""
        if request.kernel not in self._values:
            raise UnknownNameError("kernel", request.kernel, self._values)
        name, values = self._values[request.kernel]
        found = self._source.read(
            replace(request, kernel=name, params={**values, **request.params})
        )
        return tuple(replace(one, name=request.kernel) for one in found)


def _factories_of(path: Path, offered: tuple[Listing, ...]) -> set[str]:
    """Return the factories that made a finished kernel of the same file: one defines the other."""
    made = [one.line for one in offered if one.style == "prim_func" and one.line is not None]
    if not made:
        return set()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return set()
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        if any(node.lineno < line <= (node.end_lineno or 0) for line in made)
    }


def _named(name: str) -> Listing:
    return Listing(name=name, style="", line=None, parameters=())


def _same(name: str, offered: tuple[Listing, ...]) -> Listing | None:
    """Return the kernel of the source that main compiled as ``name``, ``name#2`` ..."""
    plain = name.partition("#")[0]
    alike = [one for one in offered if one.name == plain]
    methods = [one for one in offered if one.name.rpartition(".")[2] == plain]
    return next(iter(alike or methods), None) if alike or len(methods) == 1 else None


def _values(own: Listing, compiled: Listing) -> dict[str, Any]:
    """Return the values of main that are not what the source says anyway."""
    given = {p.name: p.default for p in compiled.parameters if not p.required}
    return {
        p.name: given[p.name]
        for p in own.parameters
        if p.name in given
        and (p.required or given[p.name] != p.default)
        and not str(given[p.name]).startswith("<")  # an object, of which only the text is known
    }
