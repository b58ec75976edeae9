"""What the source frontend makes of plain Python is what Python makes of it, or unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.opened import ask
from tilefit._frontends.source.frontend import SourceFrontend

KERNEL = """
import tilelang.language as T

{snippet}

@T.prim_func
def kernel():
    with T.Kernel(1):
        A = T.alloc_shared((answer,), "int8")
"""
GIVEN = (1, 64, 128)
SNIPPETS = {
    "a walrus in a comprehension binds outside of it": """
last = 1
doubled = [last := 2 * n for n in (1, 2, 3)]
answer = last
""",
    "a method does not see the names of its class": """
BLOCK = 128
class Tiles:
    BLOCK = 64
    def block(self):
        return BLOCK
answer = Tiles().block()
""",
    "nor does a class inside of another": """
BLOCK = 128
class Outer:
    BLOCK = 64
    class Inner:
        SIZE = BLOCK
answer = Outer.Inner.SIZE
""",
    "a class body sees its own names": """
BLOCK = 128
class Tiles:
    BLOCK = 64
    SIZE = 2 * BLOCK
answer = Tiles.SIZE
""",
    "`or` gives its first operand where that is true": "answer = given or 32",
    "`and` gives its first operand where that is false": "answer = (given - 1 and 32) + 8",
    "an attribute that was None may stay so": """
class Tiles:
    def __init__(self):
        self.block = None
        if given > 100:
            self.block = 64
answer = 16 if Tiles().block is None else 64
""",
    "so may a global": """
block = None
def choose():
    global block
    if given > 100:
        block = 64
choose()
answer = 16 if block is None else 64
""",
    "`get` of a key that is not known": "answer = {64: 32, 128: 16}.get(given, 8)",
    "`index` of an item that is not known": "answer = 8 + [1, 64, 128].index(given)",
    "`index` among items that are not known": "answer = 8 + [given, 64, 128].index(64)",
    "`count` among items that are not known": "answer = 8 + [given, 64].count(64)",
    "a key that is not known may be one that is there": """
blocks = {64: 8, 128: 16}
blocks[given] = 32
answer = blocks[64]
""",
    "so it may where the dict is written": "answer = {64: 8, given: 32}[64]",
    "or comes from a comprehension": "answer = {n: i for i, n in ((8, 64), (16, given))}.get(64)",
    "what is added to a list is there under all its names": """
first = [8]
second = first
first += [16] * (given > 100)
answer = 8 + len(second)
""",
    "a set is changed under all its names": """
first = {8, 16}
second = first
first &= {16, 32}
answer = max(second)
""",
    "a dataclass has the fields that it inherits": """
from dataclasses import dataclass
@dataclass
class Above:
    rows: int = 8
@dataclass
class Below(Above):
    columns: int = 16
answer = Below(32, 64).columns + Below().rows
""",
    "a deep copy is one": """
import copy
first = [8]
second = copy.deepcopy(first)
second.append(16)
answer = first[-1]
""",
    "a list in a list may be changed": """
lists = [[8]]
if given > 100:
    lists[0].append(16)
answer = lists[0][-1]
""",
    "a dict of an object may be changed": """
class Tiles:
    def __init__(self):
        self.sizes = {"block": 8}
tiles = Tiles()
if given > 100:
    tiles.sizes["block"] = 16
answer = tiles.sizes["block"]
""",
    "an object says whether it is true": """
class Tiles:
    def __len__(self):
        return 0
answer = given + (8 if Tiles() else 16)
""",
    "`else` of a loop of unknown length": """
answer = 8
for n in range(given):
    if n > 99:
        break
else:
    answer = 16
""",
    "a set drops what is there twice": "answer = 8 + len(set([given, 64]))",
    "`|=` changes a dict under all its names": """
first = {"block": 64}
second = first
first |= {"block": 128}
answer = second["block"]
""",
    "of two bases with one above both, the second is before that": """
class Top:
    SIZE = 8
class Left(Top):
    pass
class Right(Top):
    SIZE = 16
class Both(Left, Right):
    pass
answer = Both.SIZE
""",
    "`super` goes on where the object's own class does": """
class Top:
    def size(self):
        return 8
class Left(Top):
    def size(self):
        return 1 + super().size()
class Right(Top):
    def size(self):
        return 16
class Both(Left, Right):
    pass
answer = Both().size()
""",
    "a pattern that may match may bind": """
first = 8
match [given, 2]:
    case [first, 2]:
        pass
answer = first
""",
    "a loop may change what it does not run to its end": """
answer = 8
for n in range(given):
    answer = 16
    if n:
        answer = 32
        break
""",
    "`else` of a loop runs unless it is left": """
answer = 8
for n in (1, 2, 3):
    if n == given:
        break
else:
    answer = 16
""",
    "`finally` runs last": """
def size():
    try:
        return 8
    finally:
        global answer
        answer = 16
size()
""",
    "a default is evaluated once, where the function is defined": """
size = 8
def block(n=size):
    return n
size = 16
answer = block()
""",
    "a closure sees the last value": """
sizes = [lambda: n for n in (8, 16)]
answer = sizes[0]()
""",
}


def read(path: Path, given: dict[str, Any]) -> int | None:
    """Return the bytes of the one tile, None if they are not known."""
    (kernel,) = SourceFrontend().load(path).read(ask("kernel", given, "sm_90a"))
    (buffer,) = kernel.buffers
    return buffer.bytes


@pytest.mark.parametrize("title", SNIPPETS)
def test_the_value_is_that_of_python(tmp_path: Path, title: str) -> None:
    snippet = SNIPPETS[title]
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.format(snippet=snippet))
    expected: dict[int, int] = {}
    for given in GIVEN:
        names: dict[str, Any] = {"given": given}
        exec(snippet, names)
        expected[given] = names["answer"]
        passed = {"given": given} if "given" in snippet else {}
        assert read(path, passed) in (expected[given], None)
    # with nothing given, a number is right only if it is the number of all
    assert read(path, {}) in ({*expected.values()} if len({*expected.values()}) == 1 else {None})
