"""``NAME=VALUE`` as flags take it: parameters, and compiler options."""

from __future__ import annotations

from tilefit._errors import InputError

TYPE_CHECKING = False  # importing typing costs 2 ms at every start
if TYPE_CHECKING:
    from typing import Any


def settings(texts: list[str]) -> dict[str, Any]:
    """Parse every ``NAME=VALUE``; a name that is given twice is refused."""
    found: dict[str, Any] = {}
    for text in texts:
        name, value = setting(text)
        if name in found:
            raise InputError(f"--set {name} is given twice: {found[name]!r} and {value!r}")
        found[name] = value
    return found


def setting(text: str) -> tuple[str, Any]:
    """Parse one ``NAME=VALUE``."""
    from tilefit._planning.shapes import parse_value

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--set {text!r} is not NAME=VALUE, as in --set num_stages=3")
    return name, parse_value(value)


def pass_configs(texts: list[str]) -> dict[str, Any]:
    """Parse every ``NAME=VALUE`` of ``--pass-config``; ``true`` and ``false`` count too."""
    from tilefit._planning.shapes import parse_value

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.replace(".", "_").isidentifier():
            raise InputError(
                f"--pass-config {text!r} is not NAME=VALUE, as in tl.disable_tma_lower=True"
            )
        if name in found:
            raise InputError(f"--pass-config {name} is given twice")
        found[name] = parse_value({"true": "True", "false": "False"}.get(value, value))
    return found
