"""Functions of TileLang's language: what each of them declares, reads and writes."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilefit._frontends.source.allocate import allocation, dtype_of, is_allocation
from tilefit._frontends.source.ascend import REGIONS
from tilefit._frontends.source.expressions import Expressions
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
from tilefit._frontends.source.ops import items_of
from tilefit._frontends.source.unknown import names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Arguments,
    Device,
    DTypeName,
    Function,
    PrimFunc,
    Tensor,
    Tile,
    Unknown,
    Value,
)


class Operations(Expressions):
    """Adds TileLang's language to what can be evaluated."""

    def language(self, dialect: str, name: str, arguments: Arguments, node: ast.Call) -> Value:
        """Call a function of a language module."""
        places, named = arguments.places, arguments.names
        if arguments.rest is not None and (is_allocation(name) or name in (*LAUNCHES, *LOOPS)):
            return self._unsure(arguments, node)
        if is_allocation(name):
            return self._allocate(dialect, name, arguments, node)
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
            ask = self.missing if name == "const" else self.open_size
            values = tuple(ask(size) for size in sizes)
            return values[0] if len(values) == 1 else values
        if name == "dtype" and places:
            found = dtype_of(places[0])
            return found if isinstance(found, Unknown) else DTypeName(found)
        if name in ("jit", "macro", "prim_func") and places and isinstance(places[0], Function):
            return self.decorated(places[0], name)
        result = arithmetic(name, places, node)
        if result is not None:
            return result
        self._implied(dialect, name, arguments, node)
        return self._operation(name, arguments, node)

    def decorated(self, function: Function, kind: str) -> Value:
        """Return a function under ``@T.macro``, ``@T.prim_func`` or ``@tilelang.jit``."""
        if kind == "prim_func":
            return PrimFunc(replace(function, kind=kind), function.scope.snapshot())
        return replace(function, kind=kind)

    def _unsure(self, arguments: Arguments, node: ast.Call) -> Value:
        self.gap(text_of(node), node.lineno)
        return unknown(node, *arguments.all)

    def _allocate(self, dialect: str, name: str, arguments: Arguments, node: ast.Call) -> Value:
        dialects = self.adapter if dialect == "tilelang" and self.adapter else (dialect,)
        tile = allocation(dialects, name, arguments.places, arguments.names, node.lineno)
        if tile is None or self.trace is None:
            return self._unsure(arguments, node)
        if name.startswith("simd."):
            tile.dtype = vector_type(tile.dtype)
        tile.doubt = self.doubt
        self.trace.allocate(tile)
        return tile

    def _implied(self, dialect: str, name: str, arguments: Arguments, node: ast.Call) -> None:
        """Note what an operation allocates by itself."""
        if self.trace is None:
            return
        in_simd = "SimdVF" in self.contexts
        tiles = implied(
            dialect, name, arguments.places, arguments.names, node.lineno, in_simd=in_simd
        )
        if tiles is None:
            self.gap(text_of(node), node.lineno)
        for tile in tiles or ():
            tile.doubt = self.doubt
            self.trace.allocate(tile)
            self.trace.touch(tile, write=True)

    def _operation(self, name: str, arguments: Arguments, node: ast.Call) -> Value:
        """Note what an operation of the language reads and writes."""
        places, named = arguments.places, arguments.names
        base = None
        if self.trace is not None and name.startswith("annotate"):
            self.trace.annotate(name, next(iter([*places, *named.values()]), None))
        if self.trace is not None and not name.startswith(("annotate", "use_", "set_")):
            writes = written_by(name, places)
            for at, value in enumerate(places):
                for item in items_of(value) or [value]:
                    self.trace.touch(item, write=at in writes)
            for value in named.values():
                self.trace.touch(value, write=name not in ("copy", "gemm"))
            if "copy" in name or "im2col" in name:
                source = places[0] if places else named.get("src")
                target = places[1] if len(places) > 1 else named.get("dst")
                self.trace.touch(target, write=True)
                self.trace.copy(source, target)
            if "gemm" in name:
                self.trace.gemm([*places[:3], *(named[key] for key in "ABC" if key in named)])
            if name in REGIONS:
                self.trace.region(name, self.doubt)
        if name in ("view", "reshape") and places:  # other names for the same elements
            first = places[0]
            base = first.base if isinstance(first, Device) else first
        whole = isinstance(base, (Tile, Tensor))
        return Device(text_of(node), names_of(*arguments.all), base=base if whole else None)
