"""A file's command line as argparse reads it when nothing is given: every option at its default."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefit._frontends.source.unknown import unknown
from tilefit._frontends.source.values import Arguments, Unknown, Value, Where

_GROUPS = ("add_argument_group", "add_mutually_exclusive_group")
METHODS = ("add_argument", "set_defaults", "parse_args", "parse_known_args", *_GROUPS)


@dataclass(slots=True, eq=False)
class Options:
    """A parser and what it gives, in one: what is added to the one is in the other."""

    values: dict[str, Value] = field(default_factory=dict)


def is_parser(path: str) -> bool:
    """Return whether a dotted name is that of argparse's parser."""
    return path == "argparse.ArgumentParser"


def option(options: Options, name: str, where: Where) -> Value:
    """Return an option of a command line that was read."""
    return options.values.get(name, unknown(where))


def parser_method(options: Options, name: str, arguments: Arguments, where: Where) -> Value:
    """Call a method of a parser."""
    if name == "add_argument":
        _add(options, arguments)
        return None
    if name == "set_defaults":
        options.values.update(arguments.names)
        return None
    if name in _GROUPS or name == "parse_args":
        return options
    if name == "parse_known_args":
        return (options, [])
    return unknown(where)


def _add(options: Options, arguments: Arguments) -> None:
    names = [one for one in arguments.places if isinstance(one, str)]
    if not names or arguments.rest is not None:
        return
    long = next((one for one in names if one.startswith("--")), names[0])
    given = arguments.names
    dest = given.get("dest", long.lstrip("-").replace("-", "_"))
    if not isinstance(dest, str):
        return
    off = {"store_true": False, "store_false": True}.get(str(given.get("action")))
    default = given.get("default", off)
    if not long.startswith("-") and "default" not in given:
        default = Unknown((dest,), dest)  # it has to be given
    options.values[dest] = default
