"""What is asked of a toolchain: one kernel with its parameters, for a target."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One kernel to be read for a target.

    Attributes:
        kernel: Its name, as the file offers it.
        target: As the toolchain names it.
        params: Its parameters: Python literals.
        signature: Types of its arguments, where a toolchain takes them from the caller.
        options: Compiler options on top of the author's own.
        want_build: Whether what it takes to assemble it is wanted.
    """

    kernel: str
    target: str
    params: Mapping[str, Any] = field(default_factory=dict)
    signature: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    want_build: bool = False

    @property
    def key(self) -> str:
        """A text that two requests share only if they ask for the same."""
        return repr(
            (
                *(self.kernel, self.target, self.signature, self.want_build),
                *(sorted((k, repr(v)) for k, v in d.items()) for d in (self.params, self.options)),
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-ready values; parameters as the text of their literals."""
        return {
            "kernel": self.kernel,
            "target": self.target,
            "params": {name: _literal(value) for name, value in self.params.items()},
            "signature": self.signature,
            "options": dict(self.options),
            "want_build": self.want_build,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Request:
        """Rebuild a request from `to_dict`, also after a trip through JSON."""
        params = {name: ast.literal_eval(text) for name, text in data["params"].items()}
        return cls(**{**data, "params": params})


def _literal(value: Any) -> str:
    """Return a value as Python writes it; infinity is a number that is too large for a float."""
    infinite = {float("inf"): "1e999", float("-inf"): "-1e999"}
    return infinite.get(value, repr(value)) if isinstance(value, float) else repr(value)
