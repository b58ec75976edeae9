"""A file's kernels from its source, with the values that its own main gave them elsewhere.

Main runs for a device that a toolchain lowers for; for a device beside it that none does, the same
kernels are estimated with the same values, so that each counts once for every device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilefit._errors import UnknownNameError
from tilefit._frontends.protocol import Ran, Unbuilt
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._reading.stored import Estimated

_NOT_SHOWN = (
    "its source alone does not show how main makes it: --estimate reads what the file defines"
)


class AsMain:
    """The kernels that main compiled, as their source declares them."""

    def __init__(self, path: Path, main: Ran) -> None:
        """Prepare to read a file.

        Args:
            path: The file.
            main: What running its main showed.
        """
        self._path, self._main = path, main
        self._source = Estimated(path)
        self.toolchain, self.version = self._source.toolchain, self._source.version
        self._values: dict[str, tuple[str, dict[str, Any]]] = {}

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
                failed.append(Unbuilt(kernel=one.name, refused=False, reason=_NOT_SHOWN))
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
                failed.append(Unbuilt(kernel=one.name, refused=False, reason=reason))
                continue
            ready.append(replace(own, name=one.name, parameters=parameters))
        return Ran(kernels=tuple(ready), unbuilt=tuple(failed), ended=None, stubbed=())

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Return one kernel as it is declared with main's values; see `SourceFile.read`."""
        if kernel not in self._values:
            raise UnknownNameError("kernel", kernel, self._values)
        name, values = self._values[kernel]
        found = self._source.read(
            name,
            {**values, **params},
            target,
            pass_configs=pass_configs,
            want_build=want_build,
        )
        return tuple(replace(one, name=kernel) for one in found)


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
