"""The table of messages, read from ``data/messages.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilefit._devices.load import data_file
from tilefit._devices.toml import read_toml
from tilefit._explain.values import Cause
from tilefit._kernel.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One kind of message.

    Attributes:
        name: A short name.
        toolchain: Who prints it, a short name.
        texts: Templates (see `_pattern`).
        unit: What its numbers count; empty if it has none.
        memory: Which memory; None where it is none, or said by the text.
        vendors: Whose devices have such a limit.
        fatal: ``"yes"``, ``"perhaps"`` or ``"warning"``.
        follows: Forms that bring it with them, and say more.
        says: What it means, where it is not that a memory is too small.
        numbers: What its numbers leave out or include.
        named: The words before the name of the function.
        advice: Keys of the advice that applies.
        causes: For a message without numbers: likely ones first; ``{device}`` in the commands.
        source: Where the form is from.
    """

    name: str
    toolchain: str
    texts: tuple[str, ...]
    unit: str = ""
    memory: Memory | None = None
    vendors: tuple[str, ...] = ()
    fatal: str = "yes"
    follows: tuple[str, ...] = ()
    says: str = ""
    numbers: str = ""
    named: str = ""
    advice: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    source: str = ""


@cache
def forms() -> tuple[Form, ...]:
    """Return every form, special ones first."""
    return tuple(_form(entry) for entry in _table()["form"])


def toolchain_title(name: str) -> str:
    """Return the name of a toolchain to read."""
    return str(_table()["toolchains"][name])


def advice(key: str) -> str:
    """Return the sentence of a piece of advice."""
    return str(_table()["advice"][key])


def space(word: str) -> Memory:
    """Return the memory that an Ascend compiler calls ``word``."""
    return Memory(_table()["spaces"][word])


def advice_keys() -> tuple[str, ...]:
    """Return the keys of all advice."""
    return tuple(_table()["advice"])


@cache
def _table() -> Mapping[str, Any]:
    return read_toml(data_file("messages.toml"))


def _form(entry: dict[str, Any]) -> Form:
    memory = entry.get("memory", "")
    return Form(
        name=entry["name"],
        toolchain=entry["toolchain"],
        texts=tuple(entry["text"]),
        unit=entry.get("unit", ""),
        memory=Memory(memory) if memory else None,
        vendors=tuple(entry["vendors"]),
        fatal=entry["fatal"],
        follows=tuple(entry.get("follows", ())),
        says=entry.get("says", ""),
        numbers=entry.get("numbers", ""),
        named=entry.get("named", ""),
        advice=tuple(entry.get("advice", ())),
        causes=tuple(Cause(words, command) for words, command in entry.get("causes", ())),
        source=entry["source"],
    )
