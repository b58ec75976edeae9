"""Files that no author means well with: the source frontend answers soon, in a line or a kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.opened import ask
from tilefit._errors import InputError, TilefitError
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.kernel import Kernel

SECONDS = 20.0
HEAD = "import tilelang\nimport tilelang.language as T\n"
KERNEL = """
def kernel(rows=64):
{before}
    @T.prim_func
    def main(A: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, 64), "float16")
{inside}
    return main
"""


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def file_of(before: str = "pass", inside: str = "pass", ahead: str = "") -> str:
    body = KERNEL.format(before=indented(before, 4), inside=indented(inside, 12))
    return f"{HEAD}{ahead}\n{body}"


def nested(depth: int, opening: str, closing: str, core: str = "1") -> str:
    return opening * depth + core + closing * depth


def calls_twice(levels: int) -> str:
    """Functions of which each calls the one below twice: 2 ** levels calls in all."""
    lines = ["def f0(x):\n    return x"]
    lines += [f"def f{i}(x):\n    return f{i - 1}(f{i - 1}(x))" for i in range(1, levels)]
    return "\n".join(lines) + f"\ny = f{levels - 1}(1)"


def forks(count: int) -> str:
    return "\n".join(f"if absent_{i}:\n    y{i} = 1\nelse:\n    y{i} = 2" for i in range(count))


def nested_forks(depth: int) -> str:
    return (
        "\n".join(f"{'  ' * i}if absent_{i}:" for i in range(depth)) + "\n" + "  " * depth + "y=1"
    )


def chain_of_classes(count: int) -> str:
    lines = ["class C0:\n    x = 1"]
    lines += [f"class C{i}(C{i - 1}):\n    y = C{i - 1}.x" for i in range(1, count)]
    return "\n".join(lines)


# ---- the kernel is still found, and its tile known or unknown with a reason ------------------

SURROUNDED = {
    "while True": file_of(ahead="while True:\n    pass"),
    "while True in the factory": file_of(before="while True:\n    rows = rows + 1"),
    "while True in the kernel": file_of(inside="while True:\n    T.clear(tile)"),
    "a loop of 10**12": file_of(before="for i in range(10**12):\n    rows += 1"),
    "loops in loops": file_of(
        before="for i in range(999):\n    for j in range(999):\n        for k in range(999):\n"
        "            rows += 1"
    ),
    "a comprehension of 10**12": file_of(before="x = [i for i in range(10**12)]"),
    "comprehensions in one": file_of(
        before="x = [i for i in range(999) for j in range(999) for k in range(999)]"
    ),
    "a list that grows while it is read": file_of(before="x = [1]\nfor i in x:\n    x.append(i)"),
    "a list doubled": file_of(before="x = [1]\nfor i in range(60):\n    x = x + x"),
    "a list doubled in place": file_of(before="x = [1]\nfor i in range(60):\n    x += x"),
    "a list put into itself": file_of(before="x = [1]\nfor i in range(60):\n    x[0:0] = x"),
    "a list of itself": file_of(before="x = [1]\nfor i in range(60):\n    x = [x, x]\ny = x == x"),
    "text doubled": file_of(before="x = 'ab'\nfor i in range(60):\n    x = x + x"),
    "text formatted": file_of(before="x = 'ab'\nfor i in range(60):\n    x = f'{x}{x}'"),
    "text padded": file_of(before="x = '%999999999d' % 1\ny = f'{1:999999999}'"),
    "text repeated": file_of(before="x = 'ab' * 10**10\ny = (1,) * 10**10"),
    "a tower of powers": file_of(before="x = 9 ** 9 ** 9 ** 9\ny = 1 << 10**12"),
    "a number squared": file_of(before="x = 3\nfor i in range(60):\n    x = x * x"),
    "a sum over 10**12": file_of(before="x = sum(range(10**12))\ny = max(range(10**12))"),
    "a product of sets": file_of(
        before="import itertools\nx = list(itertools.product(range(999), repeat=9))"
    ),
    "a factorial": file_of(
        before="import math\nx = math.factorial(10**9)\ny = math.comb(10**9, 7)"
    ),
    "recursion": file_of(before="def f(x):\n    return f(x + 1)\ny = f(0)"),
    "recursion of two": file_of(
        before="def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\ny = f(0)"
    ),
    "recursion that forks": file_of(before="def f(x):\n    return f(x) + f(x)\ny = f(0)"),
    "2**40 calls": file_of(before=calls_twice(40)),
    "a lambda on itself": file_of(before="f = lambda g: g(g)\ny = f(f)"),
    "a decorator on itself": file_of(ahead="def d(f):\n    return d(f)\n@d\ndef g():\n    pass"),
    "a class of itself": file_of(
        ahead="class C:\n    def __init__(self):\n        self.x = C()\nc = C()"
    ),
    "a property of itself": file_of(
        ahead="class C:\n    @property\n    def x(self):\n        return self.x\ny = C().x"
    ),
    "2,000 classes in a row": file_of(ahead=chain_of_classes(2000)),
    "2,000 undecided branches": file_of(before=forks(2000)),
    "80 undecided branches in each other": file_of(before=nested_forks(80)),
    "star imports": file_of(ahead="from absent import *\nfrom .absent import *\nfrom os import *"),
    "an import of itself": file_of(ahead="import kernels\nfrom kernels import kernel as other"),
    "names of builtins bound": file_of(ahead="range = len = int = print = None"),
    "2,000 attributes": file_of(ahead="x = a" + ".b" * 2000),
    "2,000 sums": file_of(ahead="x = " + "+".join(["1"] * 2000)),
    "2,000 calls": file_of(ahead="x = f" + "()" * 2000),
    "2,000 sums in the kernel": file_of(inside="x = " + "+".join(["tile[0, 0]"] * 2000)),
    "2,000 elifs": file_of(
        before="if absent:\n    y = 0\n"
        + "\n".join(f"elif absent == {i}:\n    y = {i}" for i in range(2000))
    ),
    "90 functions in each other": file_of(
        ahead="\n".join(" " * i + f"def f{i}():" for i in range(90)) + "\n" + " " * 90 + "pass"
    ),
    "a global of 1 MB": file_of(ahead=f"x = '{'a' * 990_000}'"),
    "1 MB of statements": file_of(ahead="x = 1\n" * (990_000 // 6)),
    "1 MB of items": file_of(ahead=f"x = [{'1,' * 490_000}]"),
    "10,000 kernels": file_of(ahead="@T.prim_func\ndef f():\n    pass\n" * 10_000),
    "10,000 loops": file_of(
        inside='for i in range(10):\n    x = T.alloc_shared((8,), "float16")\n' * 10_000
    ),
}


def answer(path: Path) -> tuple[Kernel, ...] | str:
    """Read the kernel of a file, or return the one line that refuses."""
    try:
        return SourceFrontend().load(path).read(ask("kernel", {}, "sm_90a"))
    except TilefitError as error:
        return str(error)


@pytest.mark.parametrize("text", SURROUNDED.values(), ids=SURROUNDED)
def test_a_kernel_in_a_hostile_file_is_answered_soon(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(text, encoding="utf-8")
    start = time.process_time()
    found = answer(path)
    assert time.process_time() - start < SECONDS
    if isinstance(found, str):
        assert found
        assert "\n" not in found
        return
    (kernel,) = found
    tile = next((b for b in kernel.buffers if b.name == "tile"), None)
    known = kernel.staged.dynamic_bytes is not None
    assert known or kernel.notes
    if known:
        assert tile is not None
        assert tile.bytes == 64 * 64 * 2


# ---- no kernel can be read: one line ---------------------------------------------------------

REFUSED: dict[str, Callable[[], bytes]] = {
    "an open bracket": lambda: b"x = (",
    "5,000 brackets": lambda: nested(5000, "(", ")").encode(),
    "100,000 brackets": lambda: nested(100_000, "[", "]").encode(),
    "10 MB of brackets": lambda: b"(" * 10_000_000,
    "5,000 calls in each other": lambda: nested(5000, "f(", ")").encode(),
    "5,000 signs": lambda: b"x = " + b"-" * 5000 + b"1",
    "5,000 lambdas": lambda: b"x = " + b"lambda: " * 5000 + b"1",
    "5,000 powers": lambda: ("x = " + "**".join(["2"] * 5000)).encode(),
    "200 blocks in each other": lambda: "\n".join(" " * i + "if x:" for i in range(200)).encode(),
    "a zero byte": lambda: b"x = 1\0",
    "no text": lambda: bytes(range(256)) * 100,
    "10 MB of Python": lambda: b"x = 1\n" * (10_000_000 // 6),
    "10 MB of no text": lambda: b"\xff\xfe" * 5_000_000,
    "an unknown encoding": lambda: b"# -*- coding: absent -*-\nx = 1",
    "a number of 10,000 digits": lambda: b"x = " + b"9" * 10_000,
    "Python 2": lambda: b"print 'x'",
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_what_holds_no_kernel_is_refused_in_a_line_soon(
    tmp_path: Path, content: Callable[[], bytes]
) -> None:
    path = tmp_path / "kernels.py"
    path.write_bytes(content())
    start = time.process_time()
    with pytest.raises(InputError) as error:
        SourceFrontend().load(path).read(ask("kernel", {}, "sm_90a"))
    assert time.process_time() - start < SECONDS
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
