"""The kernels of tests/kernels/ascend: what is expected of each, and each lowered once."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.lowering import KERNELS, source
from tests.opened import ask
from tilefit._kernel.kernel import Kernel

FOLDER = KERNELS / "ascend"
MEMORIES = ("ub", "l1", "l0a", "l0b", "l0c")


@dataclass(frozen=True)
class Case:
    """A kernel with parameters, and what is expected of it."""

    file: str
    kernel: str
    name: str
    expected: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.file}-{self.kernel}-{self.name}"

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.file}.py"

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.expected.get("params", {}))

    @property
    def functions(self) -> list[Mapping[str, Any]]:
        """What is expected of each device function."""
        return list(self.expected.get("functions", [self.expected]))


@dataclass(frozen=True)
class Lowered:
    """A case as tilefit reads it, and the text and attribute that TileLang made of it."""

    kernels: tuple[Kernel, ...]
    source: str | None
    ub_bytes: Mapping[str, int]


def cases() -> list[Case]:
    tables = tomllib.loads((FOLDER / "expected.toml").read_text())
    return [
        Case(file=file, kernel=kernel, name=name, expected=expected)
        for file, kernels in tables.items()
        for kernel, named in kernels.items()
        for name, expected in named.items()
    ]


def accepted() -> list[Case]:
    return [case for case in cases() if "refused" not in case.expected]


def read(case: Case) -> Lowered:
    return _read(case.path, case.kernel, tuple(case.params.items()))


@cache
def _read(path: Path, kernel: str, params: tuple[tuple[str, Any], ...]) -> Lowered:
    with _Artifact() as made:
        kernels = source(path).read(ask(kernel, dict(params), "ascend"))
    if made.artifact is None:
        return Lowered(kernels, None, {})
    attributes = [dict(f.attrs) for f in made.artifact.device_mod.functions.values()]
    sizes = {str(a["global_symbol"]): int(a.get("dyn_shared_memory_buf", 0)) for a in attributes}
    return Lowered(kernels, str(made.artifact.kernel_source), sizes)


class _Artifact:
    """Keeps what tilelang.lower returns."""

    artifact: Any = None

    def __enter__(self) -> _Artifact:
        import tilelang  # noqa: F401

        # the package's attribute of this name is the function
        self._module = sys.modules["tilelang.engine.lower"]
        self._lower = self._module.lower

        def lower(*args: Any, **kwargs: Any) -> Any:
            self.artifact = self._lower(*args, **kwargs)
            return self.artifact

        self._module.lower = lower  # type: ignore[attr-defined]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._module.lower = self._lower  # type: ignore[attr-defined]


def arithmetic(text: str) -> int:
    """Return the value of a sum of products of whole numbers."""
    return _value(ast.parse(text, mode="eval").body)


def _value(node: Any) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return _value(left) // _value(right)
    raise ValueError(f"no arithmetic: {ast.dump(node)}")


def functions() -> Iterator[tuple[Case, Kernel, Mapping[str, Any], Lowered]]:
    """Yield every device function of the corpus with what is expected of it."""
    for case in accepted():
        lowered = read(case)
        for kernel, expected in zip(lowered.kernels, case.functions, strict=True):
            yield case, kernel, expected, lowered
