"""What a value can be while a file is read without being run.

Numbers, text, tuples, lists, dicts and ranges stand for themselves. Everything else is one of the
classes below. Two of them must not be confused: an `Unknown` value is decided before the kernel
exists, we only cannot say how; a `Device` value is decided when the kernel runs. An ``if`` on the
first means one branch, on the second both.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from tilefit._kernel.scopes import ScopeRow

Value = Any
"""Any Python value, or one of the classes here."""

Where = ast.AST | str
"""An expression, or its text: made into text only where that is needed."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the source does not give.

    Attributes:
        names: What has to be given with ``--set`` to know it; empty if nothing would do.
        text: The expression, for people.
    """

    names: tuple[str, ...] = ()
    text: str = "?"


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A value that exists only while the kernel runs.

    Attributes:
        text: Its expression.
        names: The open sizes, or missing names, in it.
        value: What it comes to, where every size in it was given.
        base: The `Tensor` or `Tile` whose elements it is.
        extent: The same in Python's arithmetic over the open sizes (`_kernel.extent`), where it
            hangs on nothing else.
    """

    text: str
    names: tuple[str, ...] = ()
    value: int | None = None
    base: Tensor | Tile | None = None
    extent: str | None = None


class DTypeName(str):
    """An element type as TileLang's language module names it (``T.float16``)."""


@dataclass(frozen=True, slots=True)
class TorchDType:
    """An element type of torch or numpy: equal to none of TileLang's, though it names one."""

    name: str


@dataclass(frozen=True, slots=True)
class Path:
    """A module or something in it, by its dotted name; modules are never imported."""

    path: str

    @property
    def last(self) -> str:
        """The part behind the last dot."""
        return self.path.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """``owner.name``, about to be called."""

    owner: Value
    name: str


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor in global memory: a parameter of the kernel, or its output.

    Attributes:
        name: The parameter.
        shape: A tuple, or Unknown.
        dtype: Its element type as written.
    """

    name: str
    shape: Value
    dtype: Value


@dataclass(slots=True, eq=False)
class Tile:
    """A buffer that the kernel allocates.

    Attributes:
        name: The variable that holds it.
        scope: Scope string.
        shape: Dimensions as written.
        dtype: Canonical name of the element type, or Unknown.
        row: What the allocation function gives by default.
        line: Line of the call.
        others: What it gives in other spellings that the file may be written in.
        scope_given: The author names the scope.
        doubt: Why it may not be allocated at all.
        used: A statement that can run touches it.
    """

    name: str
    scope: str | Unknown
    shape: tuple[Value, ...] | Unknown
    dtype: str | Unknown
    row: ScopeRow
    line: int
    others: tuple[ScopeRow, ...] = ()
    scope_given: bool = False
    doubt: Unknown | None = None
    used: bool = False


@dataclass(slots=True, eq=False)
class Scope:
    """The names of one function, or of the module.

    Attributes:
        vars: Names bound here.
        parent: The enclosing scope.
        elsewhere: Names declared ``global`` or ``nonlocal``, with the scope that has them.
        stars: Modules whose names were all imported.
        file: Of another module than the file itself: where it is.
        kind: ``function`` (or module), ``class`` or ``comprehension``.
    """

    vars: dict[str, Value] = field(default_factory=dict)
    parent: Scope | None = None
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    kind: str = "function"
    file: FilePath | None = None

    def find(self, name: str) -> Scope | None:
        """Return the scope that binds a name."""
        scope: Scope | None = self
        while scope is not None:
            scope = scope.elsewhere.get(name, scope)
            if name in scope.vars:
                return scope
            scope = scope.parent
        return None

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        return self if self.parent is None else self.parent.module

    @property
    def closure(self) -> Scope:
        """What is defined here sees: not the names of the class whose body this is."""
        return self.parent if self.kind == "class" and self.parent is not None else self

    @property
    def function(self) -> Scope:
        """The scope around comprehensions."""
        return self.parent.function if self.kind == "comprehension" and self.parent else self

    def snapshot(self) -> Scope:
        """Copy the scopes of functions as they are now; the module's stays the same."""
        if self.parent is None:
            return self
        return Scope(dict(self.vars), self.parent.snapshot(), dict(self.elsewhere))


@dataclass(slots=True, eq=False)
class Function:
    """A function of the file.

    Attributes:
        node: Its definition.
        scope: Where it was defined.
        defaults: Values of the parameters that have one.
        kind: ``plain``, ``jit``, ``macro`` or ``prim_func``.
        configs: What an autotuner tries, first one first.
        options: Its compiler options (``pass_configs=``).
        bound: Arguments given beforehand (functools.partial, the object of a method).
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    defaults: dict[str, Value]
    kind: str = "plain"
    configs: Value = None
    options: Value = None
    bound: dict[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name; that of a lambda is ``<lambda>``."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def line(self) -> int:
        """Line of its first decorator, or of its ``def``."""
        return min([self.node.lineno, *(d.lineno for d in self.decorators)])

    @property
    def decorators(self) -> list[ast.expr]:
        """Its decorators."""
        return [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements; none for a lambda."""
        return [] if isinstance(self.node, ast.Lambda) else self.node.body

    @property
    def static(self) -> bool:
        """Whether it is a static method: no object is passed."""
        return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in self.decorators)

    @property
    def parameters(self) -> list[ast.arg]:
        """Its parameters, without ``*args`` and ``**kwargs``."""
        given = self.node.args
        return [*given.posonlyargs, *given.args, *given.kwonlyargs]


@dataclass(slots=True, eq=False)
class ClassValue:
    """A class of the file.

    Attributes:
        node: Its definition.
        scope: What its body binds.
        bases: The classes of this file that it inherits from, in Python's order.
        whole: Whether all that it inherits is in this file.
    """

    node: ast.ClassDef
    scope: Scope
    bases: tuple[ClassValue, ...] = ()
    whole: bool = True

    def find(self, name: str) -> Value:
        """Return an attribute, None if neither it nor a base of this file has it."""
        return next((c.scope.vars[name] for c in (self, *self.bases) if name in c.scope.vars), None)

    def names(self) -> list[str]:
        """Return the names of its attributes, those that it inherits first."""
        found: dict[str, None] = {}
        for one in (*reversed(self.bases), self):
            found.update(dict.fromkeys(one.scope.vars))
        return list(found)


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the file, with its own attributes."""

    owner: ClassValue
    vars: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Super:
    """What ``super()`` gives: an object, looked at from above one of its classes.

    Attributes:
        instance: The object.
        classes: Its classes that are left to look into.
    """

    instance: Instance
    classes: tuple[ClassValue, ...]


@dataclass(slots=True, eq=False)
class PrimFunc:
    """A kernel that can be traced: its function with the closure of the moment.

    Attributes:
        function: Its function.
        scope: The closure.
        arguments: Those of an eager kernel.
        options: Compiler options of what built it, None without.
    """

    function: Function
    scope: Scope
    arguments: dict[str, Value] = field(default_factory=dict)
    options: Value = None


@dataclass(frozen=True, slots=True)
class Module:
    """Another module of the author's, as ``import helpers`` binds it."""

    scope: Scope


@dataclass(slots=True, eq=False)
class Launcher:
    """What ``T.Kernel(...)`` returns."""

    grid: tuple[Value, ...]
    threads: Value
    cluster: Value
    line: int


@dataclass(slots=True, eq=False)
class LoopFrame:
    """What ``T.Pipelined(...)`` and its kin return.

    Attributes:
        extents: Iterations of each nested loop.
        stages: num_stages; None if the loop is not pipelined.
        explicit: There are order= and stage= lists.
        variable: Name that TileLang gives its variable, None for the author's.
    """

    extents: tuple[Value, ...]
    stages: Value = None
    explicit: bool = False
    variable: str | None = None


@dataclass(slots=True)
class Arguments:
    """What a call passes.

    Attributes:
        places: By position.
        names: By name.
        rest: A ``*args`` or ``**kwargs`` whose content is unknown.
    """

    places: list[Value] = field(default_factory=list)
    names: dict[str, Value] = field(default_factory=dict)
    rest: Unknown | None = None

    @property
    def all(self) -> list[Value]:
        """Every value."""
        return [*self.places, *self.names.values(), *([self.rest] if self.rest else [])]
