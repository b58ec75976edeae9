"""The JSON Schema of what each command prints with ``--json``: ``data/schema.json``, or a part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilefit._errors import UnknownNameError
from tilefit._home import PACKAGE

_DEFS = "#/$defs/"


def schema(command: str | None = None) -> dict[str, Any]:
    """Return the schema of every command, or that of one with the parts that it names.

    Raises:
        UnknownNameError: No command of that name prints JSON.
    """
    text = (Path(PACKAGE) / "data" / "schema.json").read_text(encoding="utf-8")
    whole: dict[str, Any] = json.loads(text)
    if command is None:
        return whole
    commands = [one["$ref"].removeprefix(_DEFS) for one in whole["anyOf"]]
    if command not in commands:
        raise UnknownNameError("command with --json", command, commands)
    parts, wanted = whole["$defs"], {command: None}
    for name in (todo := [command]):  # grows while it is walked
        new = [found for found in _named(parts[name]) if found not in wanted]
        wanted |= dict.fromkeys(new)
        todo += dict.fromkeys(new)
    return {
        "$schema": whole["$schema"],
        "title": f"What tilefit {command} prints with --json",
        "description": whole["description"],
        "$ref": f"{_DEFS}{command}",
        "$defs": {name: parts[name] for name in wanted},
    }


def _named(part: Any) -> Iterator[str]:
    """Yield the names of the parts that a part refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].removeprefix(_DEFS)
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _named(inner)


def render(command: str | None = None) -> str:
    """Return the schema as text."""
    return json.dumps(schema(command), indent=2) + "\n"
