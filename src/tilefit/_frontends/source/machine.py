"""The interpreter's state, and evaluation by the kind of a node of Python's `ast`.

What each kind means stands in `expressions`, `statements` and `control`, plain functions over this
state in tables that `interpreter` puts together.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tilefit._errors import InputError, KernelError
from tilefit._frontends.source.trace import Trace
from tilefit._frontends.source.unknown import join, names_of, unknown
from tilefit._frontends.source.values import (
    Device,
    Function,
    Module,
    Scope,
    Tile,
    Unknown,
    Value,
)
from tilefit._kernel.extent import OpenSize

# what takes more steps is no kernel, and no constant of one
MAX_STEPS = 100_000
MAX_STEPS_OF_A_STATEMENT = 20_000

_OF_A_PLACE = (
    *("scope", "file", "traced", "trace", "doubts", "returns", "contexts", "leaving"),
    *("partial", "steps"),
)

Rule = Callable[["Machine", Any], Value]
"""What a kind of node comes to: the value of an expression, None for a statement."""


class Importer(Protocol):
    """Finds the author's other modules; see `siblings`."""

    def module(self, machine: Machine, name: str, level: int) -> Scope | None:
        """Return the names of a module, None if it is none of the author's."""
        ...


class Exhausted(Exception):  # noqa: N818
    """The file does too much to be followed."""


class RaisedError(KernelError):
    """The file raises at this point, whatever is unknown."""


class Return(Exception):  # noqa: N818
    """A ``return`` with its value."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Break(Exception):  # noqa: N818
    """A ``break``."""


class Continue(Exception):  # noqa: N818
    """A ``continue``."""


class Machine:
    """The state of one reading of a file: names, what ``--set`` gives, doubts, the trace.

    Attributes:
        rules: What each kind of node comes to.
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
        leaving: Where the current loop may be left, with the names as they are then.
        running: The functions that run, innermost last.
        generators: Whether a function yields, for those that were called.
        facts: What the file may ask about the device (see `Frontend.load`).
        siblings: Finds the author's other modules; None where none are followed.
    """

    def __init__(
        self,
        file: str,
        given: Mapping[str, Any],
        rules: Mapping[type[ast.AST], Rule],
        *,
        adapter: tuple[str, ...] = (),
        facts: Mapping[str, Any] | None = None,
        siblings: Importer | None = None,
    ) -> None:
        self.siblings = siblings
        self.rules = rules
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
        self.open_sizes: dict[str, OpenSize] = {}
        self.leaving: list[tuple[Exception, dict[str, Value]]] = []
        self.running: list[Function] = []
        self.generators: dict[ast.AST, bool] = {}

    # ---- following ---------------------------------------------------------------------------

    def evaluate(self, node: ast.expr | None) -> Value:
        """Return the value of an expression; a kind that has no rule is Unknown."""
        if node is None:
            return None
        self.tick()
        rule = self.rules.get(type(node))
        return unknown(node) if rule is None else rule(self, node)

    def operand(self, node: ast.expr) -> Value:
        """Return a value that is computed with: a tile is read."""
        value = self.evaluate(node)
        if isinstance(value, Tile):
            self.touch(value)
            return Device(value.name, base=value)
        return value

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Follow statements one after another."""
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Follow a statement; a kind that has no rule is passed over."""
        self.tick()
        rule = self.rules.get(type(node))
        if rule is not None:
            rule(self, node)

    @contextmanager
    def elsewhere(self, scope: Scope, file: str) -> Iterator[None]:
        """Follow another module meanwhile: with its names, outside of any kernel or function."""
        kept = {name: getattr(self, name) for name in _OF_A_PLACE}
        self.scope, self.file, self.traced, self.trace = scope, file, False, None
        self.doubts, self.returns, self.contexts, self.leaving = [], [], [], []
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(self, name, value)

    def imported(self, module: str, level: int, name: str | None = None) -> Value:
        """Return a module of the author's, or a name of one; None if it is none.

        Args:
            module: Dotted, without the dots in front of it.
            level: How many of those there are.
            name: The name; None for the module itself.
        """
        if self.siblings is None:
            return None
        scope = self.siblings.module(self, module, level)
        if name is None:
            return None if scope is None else Module(scope)
        if scope is not None and name in scope.vars:
            return scope.vars[name]
        inner = self.siblings.module(self, f"{module}.{name}" if module else name, level)
        if inner is not None:
            return Module(inner)
        return None if scope is None else self.missing(name)

    # ---- budget and doubts -------------------------------------------------------------------

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

    def open_size(self, name: str, dtype: Value = "int32") -> Device:
        """Return a size that stays open until run time, with its value if one was given.

        Raises:
            InputError: The value is no whole number.
        """
        value = None
        if name in self.given:
            value = self.given[name]
            if isinstance(value, bool) or not isinstance(value, int):
                if name in self.taken:  # a parameter of that name, which is no size
                    return Device(name, (name,))
                raise InputError(f"--set {name}={value!r}: a size is a whole number")
            self.taken.add(name)
        self.open_sizes[name] = OpenSize(name, _bits(dtype))
        return Device(name, (name,), value, extent=name)

    def touch(self, value: Value, *, write: bool = False) -> None:
        """Note that a statement uses a tile."""
        if self.trace is not None:
            self.trace.touch(value, write=write)

    def gap(self, what: str, line: int) -> None:
        """Note that something may allocate what we do not see."""
        if self.trace is not None:
            self.trace.gap(f"line {line}: what {what} allocates is not known")

    def joined_under_doubt(self, names: Mapping[str, Value], name: str, new: Value) -> Value:
        """Return what a name may be bound to anew: undecided while there is a doubt."""
        why = self.doubt
        return new if why is None or name not in names else join([names[name], new], why)

    def sound(self, value: Value) -> Value:
        """Return a value, or why it is not known what a container holds."""
        poisoned = self.poisoned.get(id(value))
        return value if poisoned is None else poisoned[1]

    def poison(self, container: Value) -> None:
        """Note that a container was changed though that may not happen."""
        why = self.doubt
        if why is not None:
            self.poisoned[id(container)] = (container, why)


def _bits(dtype: Value) -> int:
    """Return the bits of the integer that holds a size: 32 unless the source says otherwise."""
    return 64 if isinstance(dtype, str) and "64" in dtype else 32
