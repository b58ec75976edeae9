"""Attributes and items: ``owner.name`` and ``owner[index]``."""

from __future__ import annotations

from tilefit._errors import InputError
from tilefit._frontends.source.classes import class_attribute
from tilefit._frontends.source.language import TENSORS, dialect_of, tensor_of
from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.modules import member
from tilefit._frontends.source.options import METHODS, Options, option
from tilefit._frontends.source.unknown import known, text_of, unknown
from tilefit._frontends.source.values import (
    ClassValue,
    Device,
    Instance,
    Method,
    Module,
    Path,
    Super,
    Tensor,
    Tile,
    Unknown,
    Value,
    Where,
)
from tilefit._kernel.dtype import parse_dtype


def attribute(machine: Machine, owner: Value, name: str, where: Where) -> Value:
    """Return ``owner.name``."""
    if isinstance(owner, Path):
        return member(owner, name, machine.facts)
    if isinstance(owner, Module):
        return machine.sound(_of_module(machine, owner, name))
    if isinstance(owner, Device) and owner.base is not None and name == "dtype":
        owner = owner.base
    if isinstance(owner, (Tile, Tensor)):
        return getattr(owner, name) if name in ("shape", "dtype") else Method(owner, name)
    if isinstance(owner, str) and name in ("bits", "bytes", "itemsize", "lanes"):
        # a text has none of them: where one is asked for them, a dtype was meant
        return _dtype_attribute(owner, name)
    if isinstance(owner, Device):
        return Device(text_of(where), owner.names)
    if isinstance(owner, Options):
        # a parser has methods, what it gives has the options
        return Method(owner, name) if name in METHODS else option(owner, name, where)
    if isinstance(owner, (str, list, dict, set, tuple)):
        return Method(owner, name)
    if isinstance(owner, (Instance, ClassValue, Super)):
        return machine.sound(class_attribute(machine, owner, name, where))
    return unknown(where, owner)


def _of_module(machine: Machine, owner: Module, name: str) -> Value:
    """Return a name of another module, or a module below it."""
    if name in owner.scope.vars:
        return owner.scope.vars[name]
    with machine.elsewhere(owner.scope, machine.file):
        found = machine.imported(name, 1) if _is_package(owner) else None
    return machine.missing(name) if found is None else found


def _is_package(owner: Module) -> bool:
    return owner.scope.file is not None and owner.scope.file.name == "__init__.py"


def subscript(machine: Machine, owner: Value, index: Value, where: Where) -> Value:
    """Return ``owner[index]``."""
    if isinstance(owner, (Tile, Tensor)):
        machine.touch(owner)
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
            return machine.sound(owner[index])
        except Exception:
            return unknown(where)
    return unknown(where, owner, index)


def _dtype_attribute(dtype: str, name: str) -> Value:
    try:
        bits = parse_dtype(dtype).bits
    except InputError:
        return Unknown((), f"{dtype}.{name}")
    return {"bits": bits, "lanes": 1}.get(name, -(-bits // 8))
