"""Tile parameters: given by the caller, or read from the configuration that a log prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tilefit._errors import InputError
from tilefit._kernel.dtype import DType, parse_dtype

_ASSIGNED = re.compile(
    r"\b([A-Za-z][A-Za-z0-9_]{0,40})[\"']?[ ]?[=:][ ]?[\"']{0,2}([A-Za-z0-9][A-Za-z0-9_.]{0,24})"
)
_IN_A_NAME = re.compile(r"(?<=_)(b[qkdmn]|w[mn])([0-9]{1,5})(?![0-9a-z])")
_TYPE_IN_A_NAME = re.compile(r"_(b?float(?:16|32)|fp16|bf16|fp32)_")
_SHAPE = re.compile(r"^([0-9]{1,6})[x*,]([0-9]{1,6})$")
_MAX = 2**31 - 1

# what authors call them, without case, - and _ : our own name for it
_NAMES = {
    "block_m": ("blockm", "blocksizem", "bm", "tbm", "tilem", "mblock", "blockq", "bq"),
    "block_n": ("blockn", "blocksizen", "bn", "tbn", "tilen", "nblock", "blockkv", "tilesize"),
    "block_k": ("blockk", "blocksizek", "bk", "tbk", "tilek", "kblock"),
    "block": ("blocksize", "block", "xblock", "blk", "tile"),
    "num_stages": ("numstages", "stages", "numstage", "pipelinestages", "kstages"),
    "head_dim": ("headdim", "headsize", "qkheaddim", "blockdmodel", "blockd", "bd", "dqk"),
    "v_head_dim": ("vheaddim", "headdimv", "blockdv", "dv"),
    "qk_rounded": ("qkheaddimrounded", "qkrounded"),
    "v_rounded": ("vheaddimrounded", "vrounded"),
    "dtype": ("dtype", "indtype", "inputdtype", "datatype", "dataty", "elementtype"),
    "a_dtype": ("x", "adtype", "xdtype", "dtypea"),
    "b_dtype": ("w", "bdtype", "wdtype", "dtypeb", "weightdtype"),
    "threads": ("threads", "numthreads", "threadsperblock", "blockthreads"),
    "num_warps": ("numwarps", "warps"),
    "registers": ("regs", "registers", "numregs", "nregs", "registersperthread"),
    "shape": ("s", "shape"),
    "op": ("op",),
    "copies": ("copies", "versions"),
}
_CANONICAL = {name: ours for ours, names in _NAMES.items() for name in names}
_TYPES = ("dtype", "a_dtype", "b_dtype")
_TEXTS = ("op", "shape")


@dataclass(frozen=True, slots=True)
class Tile:
    """Tile parameters under our own names.

    Attributes:
        numbers: Sizes and counts.
        types: Element types, by parameter.
        texts: What is neither.
        spelled: Our name -> the name that the author uses.
        given: As given, in order.
    """

    numbers: Mapping[str, int]
    types: Mapping[str, DType]
    texts: Mapping[str, str]
    spelled: Mapping[str, str]
    given: tuple[tuple[str, object], ...]

    def has(self, *names: str) -> bool:
        """Say whether all of these numbers are known."""
        return all(name in self.numbers for name in names)

    def __getitem__(self, name: str) -> int:
        return self.numbers[name]

    def replaced(self, name: str, value: int) -> Tile:
        """Return the same tile with another value of one number."""
        numbers = {**self.numbers, name: value}
        return Tile(numbers, self.types, self.texts, self.spelled, self.given)


def tile(params: Mapping[str, object]) -> Tile:
    """Return parameters under our own names; unknown names are kept only in `Tile.given`."""
    numbers: dict[str, int] = {}
    types: dict[str, DType] = {}
    texts: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, value in params.items():
        ours = _CANONICAL.get(_fold(name), "")
        if ours in _TYPES:
            found = _dtype(value)
            if found is None:
                texts.setdefault(ours, str(value))  # mxfp4: two types in one name
            else:
                types.setdefault(ours, found)
        elif ours in _TEXTS:
            texts.setdefault(ours, str(value))
        elif ours and _is_count(value):
            numbers.setdefault(ours, int(str(value)))
            spelled.setdefault(ours, name)
    _read_shape(texts, numbers, types)
    return Tile(numbers, types, texts, spelled, tuple(params.items()))


def params_near(text: str, *, last: bool = False) -> dict[str, object]:
    """Return the tile parameters that a stretch of a log prints; empty if they are too few.

    One name and a number prove nothing, so two of known names are asked for.

    Args:
        text: The stretch.
        last: Where a name stands twice, believe the last (the nearest before a message).
    """
    found: dict[str, object] = {}
    assigned = list(_ASSIGNED.finditer(text))
    for match in reversed(assigned) if last else assigned:
        name, value = match[1], match[2].rstrip(".")
        if _CANONICAL.get(_fold(name)) in (None, "block", "shape", "op", "a_dtype", "b_dtype"):
            continue
        if value.isdecimal():
            found.setdefault(name, int(value))
        elif _dtype(value) is not None:
            found.setdefault(name, value)
    for match in _IN_A_NAME.finditer(text):
        found.setdefault(match[1], int(match[2]))
    in_name = _TYPE_IN_A_NAME.search(text)
    if in_name is not None and found:
        found.setdefault("dtype", in_name[1])
    return found if len(found) > 1 else {}


def _read_shape(texts: dict[str, str], numbers: dict[str, int], types: dict[str, DType]) -> None:
    """Read ``160x160 fp16``: a shape, and a type behind it."""
    words = texts.get("shape", "").split()
    shape = _SHAPE.match(words[0]) if words else None
    if shape is None:
        return
    numbers.setdefault("rows", int(shape[1]))
    numbers.setdefault("columns", int(shape[2]))
    behind = _dtype(words[1]) if len(words) > 1 else None
    if behind is not None:
        types.setdefault("dtype", behind)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX


def _dtype(value: object) -> DType | None:
    try:
        return parse_dtype(str(value))
    except InputError:
        return None


def _fold(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")
