"""The state of one reading of a file: names, what `--set` gives, doubts, the trace."""

from __future__ import annotations

import ast
import builtins
import math
import sys
from collections.abc import Mapping
from typing import Any

from tilefit._errors import InputError
from tilefit._frontends.source.language import TENSORS, dialect_of, named_dtype, tensor_of
from tilefit._frontends.source.trace import Trace
from tilefit._frontends.source.unknown import join, known, names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Device,
    DTypeName,
    Function,
    Method,
    Path,
    Scope,
    Tensor,
    Tile,
    TorchDType,
    Unknown,
    Value,
    Where,
)
from tilefit._kernel.dtype import parse_dtype

# what takes more steps is no kernel, and no constant of one
MAX_STEPS = 100_000
MAX_STEPS_OF_A_STATEMENT = 20_000
_BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_"))
_ARRAY_LIBRARIES = ("torch", "numpy", "jax", "ml_dtypes")
# modules that allocate nothing in a kernel, and whose names are no constants of the author's
LIBRARIES = frozenset(sys.stdlib_module_names) | {*_ARRAY_LIBRARIES, "tvm", "einops"}
# what the file reads of the device, and the fact that answers it
_FACTS = {
    "torch.cuda.get_device_properties().multi_processor_count": "cores",
    "torch.cuda.get_device_properties().warp_size": "warp_size",
    "torch.cuda.get_device_properties().name": "name",
}
# what it calls for one
ASKS = {
    "torch.cuda.get_device_capability": "capability",
    "torch.cuda.get_device_name": "name",
    "tilelang.carver.arch.driver.get_num_sms": "cores",
}
# what `from ... import *` brings besides the names of a language module
_STARRED = frozenset(("tilelang.jit", "tilelang.autotune", "tilelang.autotuner.autotune"))


class Exhausted(Exception):  # noqa: N818
    """The file does too much to be followed."""


class Machine:
    """The state, and what needs nothing else.

    Attributes:
        given: Values of ``--set``, by name.
        taken: Those of them that something asked for.
        scope: Names of the function that runs.
        traced: Whether TileLang traces that function: device loops and conditions.
        trace: What the kernel declares; None outside of one.
        doubts: The undecided conditions under which the current statement runs.
        returns: What the running function may have returned already.
        partial: Counts the branches that may have left a function or loop early.
        poisoned: Containers that were changed under a doubt, by identity.
        steps: Steps that are left.
        file: Name of the file, for messages.
        adapter: The spellings of the adapter tilelang-ascend that the file may be written in;
            empty if it is for TileLang itself.
        contexts: Names of the ``with`` blocks around the current statement.
        running: The functions that run, innermost last.
        generators: Whether a function yields, for those that were called.
        facts: What the file may ask about the device (see `Frontend.load`).
    """

    def __init__(
        self,
        file: str,
        given: Mapping[str, Any],
        *,
        adapter: tuple[str, ...] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.facts = dict(facts or {})
        self.given = dict(given)
        self.taken: set[str] = set()
        self.scope = Scope()
        self.traced = False
        self.trace: Trace | None = None
        self.doubts: list[Unknown] = []
        self.returns: list[Value] = []
        self.partial = 0
        self.poisoned: dict[int, tuple[Value, Unknown]] = {}
        self.limit(MAX_STEPS)
        self.file = file
        self.adapter = adapter
        self.contexts: list[str] = []
        self.running: list[Function] = []
        self.generators: dict[ast.AST, bool] = {}

    # ---- what the rest of the machine adds ---------------------------------------------------

    def evaluate(self, node: ast.expr | None) -> Value:
        """Return the value of an expression."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Value:
        """Call what a node calls."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target."""
        raise NotImplementedError

    def run(self, function: Function, arguments: dict[str, Value]) -> Value:
        """Run a function of the file and return what it returns."""
        raise NotImplementedError

    def block(self, body: list[ast.stmt]) -> None:
        """Follow statements one after another."""
        raise NotImplementedError

    # ---- state -------------------------------------------------------------------------------

    @property
    def doubt(self) -> Unknown | None:
        """Why the current statement may not run at all."""
        if not self.doubts:
            return None
        return Unknown(names_of(*self.doubts), self.doubts[0].text)

    def limit(self, steps: int) -> None:
        """Allow so many steps from here on."""
        self.steps = steps

    def tick(self, steps: int = 1) -> None:
        """Take a step, or several.

        Raises:
            Exhausted: None is left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted

    def named(self, name: str, value: Value) -> Value:
        """Let ``--set NAME=`` decide a value that nothing else decides."""
        if not isinstance(value, Unknown) or value.names:
            return value
        if name in self.given:
            self.taken.add(name)
            return self.given[name]
        return Unknown((name,), name)

    def missing(self, name: str) -> Value:
        """Return the value of a name that only ``--set`` can give."""
        return self.named(name, Unknown())

    def open_size(self, name: str) -> Device:
        """Return a size that stays open until run time, with its value if one was given.

        Raises:
            InputError: The value is no whole number.
        """
        value = None
        if name in self.given:
            self.taken.add(name)
            value = self.given[name]
            if not isinstance(value, int):
                raise InputError(f"--set {name}={value!r}: a size is a whole number")
        return Device(name, (name,), value)

    def touch(self, value: Value, *, write: bool = False) -> None:
        """Note that a statement uses a tile."""
        if self.trace is not None:
            self.trace.touch(value, write=write)

    def gap(self, what: str, line: int) -> None:
        """Note that something may allocate what we do not see."""
        if self.trace is not None:
            self.trace.gap(f"line {line}: what {what} allocates is not known")

    def joined_under_doubt(self, old: Value, new: Value) -> Value:
        """Return a value that may replace another: undecided while there is a doubt."""
        why = self.doubt
        return new if why is None or old is None else join([old, new], why)

    def poison(self, container: Value) -> None:
        """Note that a container was changed though that may not happen."""
        why = self.doubt
        if why is not None:
            self.poisoned[id(container)] = (container, why)

    # ---- names, attributes, items ------------------------------------------------------------

    def lookup(self, name: str) -> Value:
        """Return what a name stands for."""
        scope = self.scope.find(name)
        if scope is not None:
            value = scope.vars[name]
            poisoned = self.poisoned.get(id(value))
            return value if poisoned is None else poisoned[1]
        for module in self.scope.module.stars:
            if dialect_of(f"{module}.{name}") is not None or f"{module}.{name}" in _STARRED:
                return self.attribute(Path(module), name, name)
        if name in _BUILTINS:
            return Path(f"builtins.{name}")
        return self.missing(name)

    def attribute(self, owner: Value, name: str, where: Where) -> Value:
        """Return ``owner.name``."""
        if isinstance(owner, Path):
            fact = self.facts.get(_FACTS.get(f"{owner.path}.{name}", ""))
            return _member(owner, name) if fact is None else fact
        if isinstance(owner, Device) and owner.base is not None and name == "dtype":
            owner = owner.base
        if isinstance(owner, (Tile, Tensor)):
            return getattr(owner, name) if name in ("shape", "dtype") else Method(owner, name)
        if isinstance(owner, DTypeName) and name in ("bits", "bytes", "itemsize", "lanes"):
            return _dtype_attribute(owner, name)
        if isinstance(owner, Device):
            return Device(text_of(where), owner.names)
        if isinstance(owner, (str, list, dict, set, tuple)):
            return Method(owner, name)
        return unknown(where, owner)

    def item(self, owner: Value, index: Value, where: Where) -> Value:
        """Return ``owner[index]``."""
        if isinstance(owner, (Tile, Tensor)):
            self.touch(owner)
            return Device(text_of(where), base=owner)
        if isinstance(owner, Device):
            return Device(text_of(where), owner.names, base=owner.base)
        if isinstance(owner, Path):
            found = dialect_of(owner.path)
            if found and found[1] in TENSORS:
                return tensor_of(index if isinstance(index, tuple) else (index,), {})
            return unknown(where)
        if isinstance(owner, (tuple, list, str, dict, range)) and known(index):
            try:
                return owner[index]
            except Exception:
                return unknown(where)
        return unknown(where, owner, index)


def _member(owner: Path, name: str) -> Value:
    path = f"{owner.path}.{name}"
    found = dialect_of(path)
    if found is not None:
        return named_dtype(found[1]) or Path(path)
    if owner.path.partition(".")[0] in _ARRAY_LIBRARIES:
        dtype = named_dtype(name)
        return Path(path) if dtype is None else TorchDType(str(dtype))
    if owner.path == "math" and isinstance(constant := getattr(math, name, None), float):
        return constant
    return False if path == "typing.TYPE_CHECKING" else Path(path)


def _dtype_attribute(dtype: DTypeName, name: str) -> Value:
    try:
        bits = parse_dtype(dtype).bits
    except InputError:
        return Unknown((), f"{dtype}.{name}")
    return {"bits": bits, "lanes": 1}.get(name, -(-bits // 8))
