"""Reading a TOML file with one-line complaints that name the bad key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tilefit._errors import InputError, near_misses
from tilefit._kernel.bounded import read_text

if TYPE_CHECKING:
    from pathlib import Path


def read_toml(path: Path, kind: str = "device file") -> dict[str, Any]:
    """Read a TOML file; ``kind`` says what it is in a complaint.

    Raises:
        InputError: It cannot be read, or is not TOML.
    """
    import tomllib  # with the modules that it pulls in, only for commands that need a device

    try:
        return tomllib.loads(read_text(path, f"{kind} {str(path)!r}"))
    except FileNotFoundError:
        raise InputError(f"{kind} {str(path)!r} does not exist") from None
    except OSError as error:
        raise InputError(f"{kind} {str(path)!r}: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{kind} {str(path)!r} is nested too deeply") from None
    except ValueError as error:  # no TOML, no UTF-8, a number of too many digits
        raise InputError(f"{kind} {str(path)!r} is not TOML: {error}") from None


def key_path(where: str, key: str) -> str:
    """Return the dotted path of a key inside the table at ``where`` (empty: the top)."""
    return f"{where}.{key}" if where else key


def refuse_unknown_keys(table: dict[str, Any], keys: Iterable[str], where: str) -> None:
    """Complain about the first key that is none of ``keys``."""
    known = list(keys)
    for key in table:
        if key not in known:
            near = near_misses(key, known)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"{key_path(where, key)}: unknown key; {hint}")


def one_of(value: str, choices: Iterable[str], where: str) -> str:
    """Return ``value`` if it is one of ``choices``."""
    known = list(choices)
    if value not in known:
        raise InputError(f"{where}: {value!r} is none of {', '.join(known)}")
    return value


def as_table(value: object, where: str) -> dict[str, Any]:
    """Return ``value`` if it is a table."""
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a table")
    return value


def subtable(table: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return the table under ``key``; an empty one if it is absent."""
    return as_table(table.get(key, {}), key_path(where, key))


def texts(table: dict[str, Any], key: str) -> dict[str, str]:
    """Return a table of texts."""
    entry = subtable(table, key, "")
    return {name: text(entry, name, key) for name in entry}


def text(table: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    """Return the text under ``key``; without a ``default`` it must be there."""
    value = table.get(key, default)
    if value is None:
        raise InputError(f"{key_path(where, key)} is missing")
    if not isinstance(value, str) or not value:
        raise InputError(f"{key_path(where, key)}: {value!r} is not a text")
    if not value.isprintable():
        raise InputError(f"{key_path(where, key)}: {value!r} has characters that cannot be printed")
    return value


def names(table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return the list of names under ``key``; empty if it is absent."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputError(f"{key_path(where, key)}: {value!r} is not a list of names")
    if not all(name.isprintable() for name in value):
        raise InputError(f"{key_path(where, key)}: {value!r} has characters that cannot be printed")
    return tuple(value)
