"""Classes of a file and their objects, as values of a file that is read without being run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tilefit._frontends.source.values import Scope, Value


@dataclass(slots=True, eq=False)
class ClassValue:
    """A class of the file.

    Attributes:
        node: Its definition.
        scope: What its body binds.
        bases: The classes of this file that it inherits from, nearest first, none twice.
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
    """What ``super()`` gives: an object, looked at from above one of its classes."""

    instance: Instance
    above: ClassValue
