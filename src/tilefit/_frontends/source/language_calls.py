"""Calls of TileLang's language: what each of them declares, reads and writes."""

from __future__ import annotations

import ast

from tilefit._frontends.source.allocate import allocation, dtype_of, is_allocation
from tilefit._frontends.source.ascend import REGIONS
from tilefit._frontends.source.functions import decorated
from tilefit._frontends.source.implied import implied, vector_type
from tilefit._frontends.source.language import (
    LAUNCHES,
    LOOPS,
    TENSORS,
    arithmetic,
    launcher_of,
    loop_of,
    tensor_of,
    written_by,
)
from tilefit._frontends.source.machine import Machine
from tilefit._frontends.source.operators import items_of
from tilefit._frontends.source.unknown import names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Arguments,
    Device,
    DTypeName,
    Function,
    Tensor,
    Tile,
    Unknown,
    Value,
)


def language(
    machine: Machine, dialect: str, name: str, arguments: Arguments, node: ast.Call
) -> Value:
    """Call a function of a language module."""
    places, named = arguments.places, arguments.names
    if arguments.rest is not None and (is_allocation(name) or name in (*LAUNCHES, *LOOPS)):
        return _unsure(machine, arguments, node)
    if is_allocation(name):
        return _allocate(machine, dialect, name, arguments, node)
    if name in LAUNCHES:
        return launcher_of(places, named, node.lineno)
    if name in LOOPS:
        return loop_of(name, places, named)
    if name in TENSORS:
        # T.empty(M, N, dtype=...) and T.match_buffer(A, shape, dtype) beside (shape, dtype)
        if name in ("match_buffer", "make_tensor"):
            places = places[1:]
        elif name == "empty" and len(places) > 1 and not isinstance(places[0], (tuple, list)):
            places = [tuple(places)]
        return tensor_of(places, named)
    if name in ("const", "dynamic", "symbolic") and places and isinstance(places[0], str):
        sizes = places[0].replace(",", " ").split()
        values: tuple[Value, ...]
        if name == "const":
            values = tuple(machine.missing(size) for size in sizes)
        else:
            dtype = places[1] if len(places) > 1 else named.get("dtype", "int32")
            values = tuple(machine.open_size(size, dtype) for size in sizes)
        return values[0] if len(values) == 1 else values
    if name == "dtype" and places:
        found = dtype_of(places[0])
        return found if isinstance(found, Unknown) else DTypeName(found)
    if name in ("jit", "macro", "prim_func") and places and isinstance(places[0], Function):
        return decorated(places[0], name)
    result = arithmetic(name, places, node)
    if result is not None:
        return result
    _implied(machine, dialect, name, arguments, node)
    return _operation(machine, name, arguments, node)


def _unsure(machine: Machine, arguments: Arguments, node: ast.Call) -> Value:
    machine.gap(text_of(node), node.lineno)
    return unknown(node, *arguments.all)


def _allocate(
    machine: Machine, dialect: str, name: str, arguments: Arguments, node: ast.Call
) -> Value:
    dialects = machine.adapter if dialect == "tilelang" and machine.adapter else (dialect,)
    tile = allocation(dialects, name, arguments.places, arguments.names, node.lineno)
    if tile is None or machine.trace is None:
        return _unsure(machine, arguments, node)
    if name.startswith("simd."):
        tile.dtype = vector_type(tile.dtype)
    tile.doubt = machine.doubt
    machine.trace.allocate(tile)
    return tile


def _implied(
    machine: Machine, dialect: str, name: str, arguments: Arguments, node: ast.Call
) -> None:
    """Note what an operation allocates by itself."""
    if machine.trace is None:
        return
    in_simd = "SimdVF" in machine.contexts
    tiles = implied(dialect, name, arguments.places, arguments.names, node.lineno, in_simd=in_simd)
    if tiles is None:
        machine.gap(text_of(node), node.lineno)
    for tile in tiles or ():
        tile.doubt = machine.doubt
        machine.trace.allocate(tile)
        machine.trace.touch(tile, write=True)


def _operation(machine: Machine, name: str, arguments: Arguments, node: ast.Call) -> Value:
    """Note what an operation of the language reads and writes."""
    places, named = arguments.places, arguments.names
    base = None
    if machine.trace is not None and name.startswith("annotate"):
        given = next(iter([*places, *named.values()]), None)
        machine.trace.annotate(name, given, machine.doubt)
    if machine.trace is not None and not name.startswith(("annotate", "use_", "set_")):
        writes = written_by(name, places)
        computes = "copy" not in name and "gemm" not in name
        for at, value in enumerate(places):
            for item in items_of(value) or [value]:
                machine.trace.touch(item, write=at in writes, computes=computes)
        for value in named.values():
            write = name not in ("copy", "gemm")
            machine.trace.touch(value, write=write, computes=computes)
        if "copy" in name or "im2col" in name:
            source = places[0] if places else named.get("src")
            target = places[1] if len(places) > 1 else named.get("dst")
            machine.trace.touch(target, write=True, computes=computes)
            machine.trace.copy(source, target)
        if "gemm" in name:
            machine.trace.gemm([*places[:3], *(named[key] for key in "ABC" if key in named)])
        if name in REGIONS:
            machine.trace.region(name, machine.doubt)
    if name in ("view", "reshape") and places:  # other names for the same elements
        first = places[0]
        base = first.base if isinstance(first, Device) else first
    whole = isinstance(base, (Tile, Tensor))
    return Device(text_of(node), names_of(*arguments.all), base=base if whole else None)
