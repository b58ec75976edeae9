"""The source frontend: what a kernel declares, by Python's `ast` alone, or unknown with a name."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
import sysconfig
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.opened import ask
from tilefit._errors import InputError, KernelError, RefusedError, TilefitError, UnknownNameError
from tilefit._frontends.source.frontend import SourceFile, SourceFrontend
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import Evidence, Memory, Owner

HEAD = """
import tilelang
import tilelang.language as T
"""

# a kernel of one tile, whose shape and type an earlier part of the file or function decides
ONE_TILE = """
    @T.prim_func
    def main(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_shared({shape}, {dtype})
            T.copy(A[bx, 0], tile)
            T.copy(tile, B[bx, 0])

    return main
"""


def load(tmp_path: Path, text: str, head: str = HEAD) -> SourceFile:
    path = tmp_path / "kernels.py"
    path.write_text(head + textwrap.dedent(text), encoding="utf-8")
    return SourceFrontend().load(path)


def read(
    tmp_path: Path, text: str, name: str = "kernel", target: str = "sm_90a", **params: Any
) -> Kernel:
    """Read the only device function of a kernel."""
    (kernel,) = load(tmp_path, text).read(ask(name, params, target))
    return kernel


def factory(before: str, shape: str = "(x, 64)", dtype: str = '"float16"', args: str = "") -> str:
    """A factory of one tile; `before` binds what the shape needs."""
    body = textwrap.indent(textwrap.dedent(before), "    ")
    return f"def kernel({args}):\n{body}\n{ONE_TILE.format(shape=shape, dtype=dtype)}"


def tile_of(kernel: Kernel, name: str = "tile") -> Buffer:
    (found,) = [b for b in kernel.buffers if b.name == name]
    return found


def notes(kernel: Kernel) -> str:
    return "\n".join(kernel.notes)


# ---- the bundled GEMM ------------------------------------------------------------------------


def test_the_bundled_gemm_declares_three_copies_of_both_operands(root: Path) -> None:
    source = SourceFrontend().load(root / "examples" / "gemm.py")
    (kernel,) = source.read(ask("matmul", {}, "sm_90a"))
    # a 128x64 and a 64x128 tile of 2-byte elements, three stages; the 128x128 float32 accumulator
    # is in registers
    assert kernel.staged.dynamic_bytes == 3 * (128 * 64 + 64 * 128) * 2
    assert kernel.staged.static_bytes == 0
    assert (kernel.toolchain, kernel.toolchain_version) == ("source", "tilelang")
    assert [(b.name, b.copies, b.bytes, b.why) for b in kernel.buffers] == [
        ("A_s", 3, 3 * 128 * 64 * 2, "pipeline"),
        ("B_s", 3, 3 * 64 * 128 * 2, "pipeline"),
        ("C_l", 1, 128 * 128 * 4, None),
    ]
    assert {b.evidence for b in kernel.buffers} == {Evidence.DECLARED}
    # 4096 / 128 blocks in x and y; 4096 / 64 iterations
    assert kernel.launch.grid == (32, 32, 1)
    assert (kernel.launch.threads_declared, kernel.launch.threads) == (128, 128)
    (loop,) = kernel.loops
    assert (loop.variable, loop.extent, loop.num_stages) == ("k", 64, 3)
    assert loop.copied == ("A_s", "B_s")
    assert loop.buffers == ("A_s", "B_s", "C_l")
    assert kernel.gemms == 1


def test_set_changes_what_is_declared(root: Path) -> None:
    source = SourceFrontend().load(root / "examples" / "gemm.py")
    given = {"num_stages": 4, "block_K": 32, "dtype": "float8_e4m3fn", "threads": 256}
    (kernel,) = source.read(ask("matmul", given, "sm_90a"))
    assert kernel.staged.dynamic_bytes == 4 * (128 * 32 + 32 * 128) * 1
    assert kernel.launch.threads == 256
    assert dict(kernel.params)["num_stages"] == 4
    assert dict(kernel.params)["block_M"] == 128  # a default is recorded too


def test_a_kernel_survives_its_trip_as_json(root: Path) -> None:
    for file in ("gemm.py", "alloc_scopes/scopes.py", "alloc_scopes/tmem.py"):
        source = SourceFrontend().load(root / "examples" / file)
        (kernel,) = source.read(ask(source.kernels()[0].name, {}, "sm_100a"))
        assert Kernel.from_dict(json.loads(json.dumps(kernel.to_dict()))) == kernel


# ---- how the language is imported ------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "t", "alloc"),
    [
        ("import tilelang.language as T", "T", "T.alloc_shared"),
        ("import tilelang.language as L", "L", "L.alloc_shared"),
        ("from tilelang import language as TL", "TL", "TL.alloc_shared"),
        ("import tilelang as tl", "tl.language", "tl.language.alloc_shared"),
        ("import tilelang\nT = tilelang.language", "T", "T.alloc_shared"),
        (
            "import tilelang.language as T\nfrom tilelang.language import alloc_shared",
            "T",
            "alloc_shared",
        ),
        (
            "import tilelang.language as T\nfrom tilelang.language import alloc_shared as smem",
            "T",
            "smem",
        ),
        ("import tilelang.cuda.language as T", "T", "T.alloc_shared"),
        (
            "import tilelang.language as T\nfrom tilelang.language.allocate import alloc_shared",
            "T",
            "alloc_shared",
        ),
        (
            "import tilelang.language as T\nfrom tilelang.language import *",
            "T",
            "alloc_shared",
        ),
        (
            "try:\n    import tilelang.language as T\nexcept ImportError:\n    T = None",
            "T",
            "T.alloc_shared",
        ),
    ],
)
def test_any_alias_of_the_language_is_followed(
    tmp_path: Path, imports: str, t: str, alloc: str
) -> None:
    text = f"""
@{t}.prim_func
def kernel(A: {t}.Tensor((128, 64), "float16")):
    with {t}.Kernel(1, threads=128):
        tile = {alloc}((128, 64), "float16")
        {t}.copy(A, tile)
"""
    (kernel,) = load(tmp_path, text, imports).read(ask("kernel", {}, "sm_80"))
    assert tile_of(kernel).bytes == 128 * 64 * 2


def test_another_library_of_the_same_alias_is_no_kernel(tmp_path: Path) -> None:
    text = "@T.prim_func\ndef kernel():\n    x = T.alloc_shared((1,), 'int8')\n"
    source = load(tmp_path, text, "import somewhere as T\n")
    assert source.kernels() == ()


# ---- styles ----------------------------------------------------------------------------------

STYLES = {
    "prim_func": """
        @T.prim_func
        def kernel(A: T.Tensor((96, 64), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((96, 64), "float16")
                T.copy(A, tile)
        """,
    "jit factory": """
        @tilelang.jit(out_idx=[-1])
        def kernel(rows=96):
            @T.prim_func
            def main(A: T.Tensor((rows, 64), "float16")):
                with T.Kernel(1, threads=128):
                    tile = T.alloc_shared((rows, 64), "float16")
                    T.copy(A, tile)
            return main
        """,
    "eager": """
        @tilelang.jit
        def kernel(A, rows: int = 96):
            A: T.Tensor[[rows, 64], T.float16]
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((rows, 64), A.dtype)
                T.copy(A, tile)
        """,
    "cached factory": """
        import functools

        @functools.lru_cache(maxsize=None)
        def kernel(rows=96):
            @T.prim_func
            def main(A: T.Tensor((rows, 64), "float16")):
                with T.Kernel(1, threads=128):
                    tile = T.alloc_shared((rows, 64), "float16")
                    T.copy(A, tile)
            return main
        """,
    "two levels, a function": """
        def kernel(columns=64):
            def build(rows=96):
                @T.prim_func
                def main(A: T.Tensor((rows, columns), "float16")):
                    with T.Kernel(1, threads=128):
                        tile = T.alloc_shared((rows, columns), "float16")
                        T.copy(A, tile)
                return main
            return build
        """,
    "two levels, a jit object": """
        def kernel(columns=64):
            @tilelang.jit
            def build(rows=96):
                @T.prim_func
                def main(A: T.Tensor((rows, columns), "float16")):
                    with T.Kernel(1, threads=128):
                        tile = T.alloc_shared((rows, columns), "float16")
                        T.copy(A, tile)
                return main
            return build
        """,
    "a factory of the same file": """
        def _make(rows, columns):
            @T.prim_func
            def main(A: T.Tensor((rows, columns), "float16")):
                with T.Kernel(1, threads=128):
                    tile = T.alloc_shared((rows, columns), "float16")
                    T.copy(A, tile)
            return main

        @tilelang.jit
        def kernel(rows=96):
            return _make(rows, columns=64)
        """,
    "through a macro": """
        @T.macro
        def fill(source, rows):
            tile = T.alloc_shared((rows, 64), "float16")
            T.copy(source, tile)

        @tilelang.jit
        def kernel(rows=96):
            @T.prim_func
            def main(A: T.Tensor((rows, 64), "float16")):
                with T.Kernel(1, threads=128):
                    fill(A, rows)
            return main
        """,
    "autotuned": """
        def configs():
            return [dict(rows=r, threads=t) for r in (96, 128) for t in (64, 128)]

        @tilelang.autotune(configs=configs())
        @tilelang.jit
        def kernel(rows=None, threads=None):
            @T.prim_func
            def main(A: T.Tensor((rows, 64), "float16")):
                with T.Kernel(1, threads=threads):
                    tile = T.alloc_shared((rows, 64), "float16")
                    T.copy(A, tile)
            return main
        """,
}


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_a_96_by_64_tile_is_found_in_every_style(tmp_path: Path, text: str) -> None:
    kernel = read(tmp_path, text)
    assert tile_of(kernel).shape == (96, 64)
    assert kernel.staged.dynamic_bytes == 96 * 64 * 2


@pytest.mark.parametrize("style", [s for s in STYLES if s not in ("prim_func",)])
def test_set_reaches_the_level_that_takes_the_parameter(tmp_path: Path, style: str) -> None:
    assert read(tmp_path, STYLES[style], rows=40).staged.dynamic_bytes == 40 * 64 * 2


def test_an_autotuner_gives_its_first_configuration_and_says_so(tmp_path: Path) -> None:
    kernel = read(tmp_path, STYLES["autotuned"])
    assert kernel.launch.threads == 64
    assert "first configuration (rows=96, threads=64)" in notes(kernel)


def test_a_method_is_listed_with_its_class_and_takes_the_parameters_of_both(
    tmp_path: Path,
) -> None:
    text = """
    class Attention:
        def __init__(self, width=64, dtype="float16"):
            self.width = width
            self.dtype = dtype

        @property
        def columns(self):
            return 2 * self.width

        def kernel(self, rows):
            @T.prim_func
            def main(A: T.Tensor((rows, self.columns), self.dtype)):
                with T.Kernel(1, threads=128):
                    tile = T.alloc_shared((rows, self.columns), self.dtype)
                    T.copy(A, tile)
            return main
    """
    source = load(tmp_path, text)
    (listing,) = source.kernels()
    assert listing.name == "Attention.kernel"
    assert [p.name for p in listing.parameters] == ["width", "dtype", "rows"]
    (kernel,) = source.read(ask("Attention.kernel", {"rows": 16, "width": 32}, "sm_90a"))
    assert kernel.staged.dynamic_bytes == 16 * (2 * 32) * 2


def test_a_dataclass_holds_a_configuration(tmp_path: Path) -> None:
    text = """
    from dataclasses import dataclass

    @dataclass
    class Config:
        rows: int
        columns: int = 64

    """
    text = textwrap.dedent(text) + factory("c = Config(rows=24)", "(c.rows, c.columns)")
    assert read(tmp_path, text).staged.dynamic_bytes == 24 * 64 * 2


def test_a_listing_has_names_styles_lines_and_parameters(tmp_path: Path) -> None:
    text = """
    ROWS = 64

    def helper(x):
        return x + 1

    @T.macro
    def part(x):
        T.clear(x)

    @tilelang.jit
    def eager(A, rows: int, threads: int = 128):
        M, N = T.const("M, N")
        A: T.Tensor[[M, N], T.float16]
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((rows, 64), T.float16)

    def factory(rows=ROWS * 2, dtype=T.float16, *, wide=False):
        @T.prim_func
        def main():
            with T.Kernel(1):
                tile = T.alloc_shared((rows, 64), dtype)
        return main
    """
    eager, made = load(tmp_path, text).kernels()
    assert (eager.name, eager.style, made.name, made.style) == (
        *("eager", "eager"),
        *("factory", "factory"),
    )
    # a decorated function begins at its decorator; HEAD has three lines, `ROWS` stands on the fifth
    assert (eager.line, made.line) == (14, 21)
    assert [(p.name, p.default, p.required) for p in eager.parameters] == [
        ("rows", None, True),
        ("threads", 128, False),
        ("M", None, True),
        ("N", None, True),
    ]
    assert [(p.name, p.default, p.required) for p in made.parameters] == [
        ("rows", 128, False),
        ("dtype", "float16", False),
        ("wide", False, False),
    ]


# ---- expressions -----------------------------------------------------------------------------

# what is bound before -> the number of rows, by arithmetic
ROWS = {
    "a constant of the function": ("x = 48", 48),
    "floor division": ("x = 100 // 7", 14),
    "ceildiv": ("x = T.ceildiv(100, 7)", 15),
    "cdiv of tilelang": ("x = tilelang.cdiv(100, 7)", 15),
    "min and max": ("x = min(max(16, 32), 24)", 24),
    "min of the language": ("x = T.min(48, 80)", 48),
    "shift and power": ("x = (1 << 4) + 2**3", 24),
    "next power of two": ("from tilelang.math import next_power_of_2\nx = next_power_of_2(33)", 64),
    "math": ("import math\nx = math.ceil(math.sqrt(80))", 9),
    "a taken branch": ("if True:\n    x = 8\nelse:\n    x = 16", 8),
    "a conditional expression": ("x = 8 if 3 > 4 else 16", 16),
    "a chained comparison": ("x = 8 if 1 < 2 < 3 else 16", 8),
    "a dtype's bits": ("x = 512 // T.float16.bits", 32),
    "a comparison of dtypes": ("x = 8 if T.float16 == 'float16' else 16", 8),
    "torch's dtype is none of TileLang's": (
        "import torch\nx = 8 if torch.float16 == 'float16' else 16",
        16,
    ),
    "match on a bool": (
        "match True:\n    case True:\n        x = 8\n    case _:\n        x = 16",
        8,
    ),
    "match on text": (
        "match 'b':\n    case 'a' | 'b':\n        x = 8\n    case _:\n        x = 16",
        8,
    ),
    "a dictionary": ("c = {'rows': 8}\nx = c['rows']", 8),
    "a dictionary with a default": ("x = {}.get('rows', 8)", 8),
    "keyword arguments from a dictionary": (
        "def f(rows, wide=False):\n    return rows * (2 if wide else 1)\n"
        "x = f(**{'rows': 8, 'wide': True})",
        16,
    ),
    "positional arguments from a list": (
        "def f(a, b=1, *c):\n    return a + b + sum(c)\nx = f(*[1, 2, 3, 4])",
        10,
    ),
    "a closure": ("def f():\n    return y\ny = 8\nx = f()", 8),
    "a lambda": ("f = lambda a, b=2: a * b\nx = f(8)", 16),
    "partial": ("import functools\nf = functools.partial(max, 8)\nx = max(8, 4)", 8),
    "a loop": ("x = 0\nfor i in range(4):\n    x += i", 6),
    "a loop that breaks": ("for x in (8, 16, 24):\n    if x > 8:\n        break", 16),
    "a while loop": ("x = 1\nwhile x < 100:\n    x *= 2", 128),
    "a comprehension": ("x = sum([i for i in range(8) if i % 2])", 16),
    "unpacking": ("a, (x, *b) = 1, (8, 2, 3)", 8),
    "a walrus": ("x = (y := 8) + y", 16),
    "recursion": ("def f(n):\n    return 1 if n == 0 else n * f(n - 1)\nx = f(4)", 24),
    "text": ("x = len('float16'.removeprefix('float')) * 8", 16),
    "an f-string": ("x = {'t8': 8}[f't{4 * 2}']", 8),
    "enumerate and zip": ("x = sum(i * a * b for i, (a, b) in enumerate(zip([1, 2], [3, 4])))", 8),
    "the product of a shape": ("import math\nx = math.prod((2, 4))", 8),
    "a checked assertion": ("x = 8\nassert x % 8 == 0, 'rows'", 8),
    "an unreached raise": ("x = 8\nif x > 8:\n    raise ValueError(x)", 8),
    "try without a reason to fail": ("try:\n    import math\nfinally:\n    x = 8", 8),
    "nonlocal": ("x = 1\ndef f():\n    nonlocal x\n    x = 8\nf()", 8),
}


@pytest.mark.parametrize(("before", "rows"), ROWS.values(), ids=ROWS)
def test_an_expression_comes_to_what_python_says(tmp_path: Path, before: str, rows: int) -> None:
    scope: dict[str, Any] = {}
    if not any(word in before for word in ("T.", "tilelang", "torch", "nonlocal")):
        exec(before, scope)  # the expectation itself, by Python
        assert scope["x"] == rows
    assert tile_of(read(tmp_path, factory(before))).shape == (rows, 64)


def test_module_constants_and_defaults_are_followed(tmp_path: Path) -> None:
    text = "BLOCK = 32\nSHAPE = (BLOCK * 2, BLOCK)\n" + factory("", "SHAPE")
    assert tile_of(read(tmp_path, text)).shape == (64, 32)


def test_a_shape_may_be_a_list_a_variable_or_of_another_tile(tmp_path: Path) -> None:
    text = """
    @T.prim_func
    def kernel(A: T.Tensor((24, 40), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared([8, 16], "float16")
            b = T.alloc_shared(a.shape, "float32")
            c = T.alloc_shared((a.shape[0], b.shape[1] * 2), b.dtype)
            d = T.alloc_fragment(A.shape, A.dtype)
    """
    kernel = read(tmp_path, text)
    assert [(b.shape, b.dtype) for b in kernel.buffers] == [
        ((8, 16), "float16"),
        ((8, 16), "float32"),
        ((8, 32), "float32"),
        ((24, 40), "float16"),
    ]


@pytest.mark.parametrize(
    ("dtype", "spelled", "bits"),
    [
        ('"float16"', "float16", 16),
        ("T.bfloat16", "bfloat16", 16),
        ("T.float", "float32", 32),
        ("torch.float8_e4m3fn", "float8_e4m3fn", 8),
        ('"int4"', "int4", 4),
        ("T.float4_e2m1fn", "float4_e2m1fn", 4),
        ("np.float32", "float32", 32),
        ("int", "int32", 32),
        ("tilelang.tvm.DataType('int8')", "int8", 8),
        ("dtype", "uint8", 8),
        ("{'a': 'int16'}['a']", "int16", 16),
    ],
)
def test_a_dtype_in_any_spelling(tmp_path: Path, dtype: str, spelled: str, bits: int) -> None:
    text = "import torch\nimport numpy as np\n" + factory("dtype = T.uint8", "(3, 7)", dtype)
    tile = tile_of(read(tmp_path, text))
    assert tile.dtype == spelled
    assert tile.bytes == -(-3 * 7 * bits // 8)  # 21 elements, rounded up once


def test_helpers_and_loops_build_lists_of_buffers(tmp_path: Path) -> None:
    text = """
    def ring(count, rows):
        made = []
        for i in range(count):
            made.append(T.alloc_shared((rows, 8 * (i + 1)), "float16"))
        return made

    @tilelang.jit
    def kernel(slots=3):
        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16")):
            with T.Kernel(1, threads=128):
                tiles = ring(slots, 16)
                pair = [T.alloc_fragment((4, 4), "float32") for _ in range(2)]
                for tile in tiles:
                    T.copy(A[0, 0], tile)
                T.clear(pair[0])
        return main
    """
    kernel = read(tmp_path, text)
    # 8, 16 and 24 columns; the loop over the list gives them its variable's name, as TileLang does
    shapes = [(b.name, b.shape) for b in kernel.buffers]
    assert shapes[:3] == [("tile", (16, 8)), ("tile", (16, 16)), ("tile", (16, 24))]
    assert shapes[3:] == [("", (4, 4)), ("", (4, 4))]
    assert kernel.staged.dynamic_bytes == 16 * (8 + 16 + 24) * 2
    assert read(tmp_path, text, slots=1).staged.dynamic_bytes == 16 * 8 * 2


def test_range_is_a_loop_of_the_device_where_tilelang_traces(tmp_path: Path) -> None:
    text = """
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128) as bx:
            for i in range(4):
                inner = T.alloc_shared((8, 8), "float16")
                T.copy(A[i, bx], inner)
            for rows in (8, 16):
                tile = T.alloc_shared((rows, 8), "float16")
                T.copy(A[0, 0], tile)
    """
    kernel = read(tmp_path, text)
    # one buffer of the device loop, two of the loop over a tuple
    assert [b.shape for b in kernel.buffers] == [(8, 8), (8, 8), (16, 8)]


def test_both_branches_of_a_device_condition_are_allocated(tmp_path: Path) -> None:
    text = """
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float16"), n: T.int32):
        with T.Kernel(4, threads=128) as bx:
            if bx > n:
                a = T.alloc_shared((8, 8), "float16")
            else:
                b = T.alloc_shared((16, 8), "float16")
    """
    kernel = read(tmp_path, text)
    assert [b.name for b in kernel.buffers] == ["a", "b"]
    assert kernel.staged.dynamic_bytes == (8 * 8 + 16 * 8) * 2


# ---- never a guess ---------------------------------------------------------------------------

# what is bound before, with the rows if `flag` is true and if it is false
UNDECIDED = {
    "if": ("x = 8\nif flag:\n    x = 16", 16, 8),
    "if and else": ("if flag:\n    x = 16\nelse:\n    x = 8", 16, 8),
    "a conditional expression": ("x = 16 if flag else 8", 16, 8),
    "and": ("x = 16 if (flag and 1 < 2) else 8", 16, 8),
    "not": ("x = 8 if not flag else 16", 16, 8),
    "match": ("match flag:\n    case True:\n        x = 16\n    case _:\n        x = 8", 16, 8),
    "an early return": ("def f():\n    if flag:\n        return 16\n    return 8\nx = f()", 16, 8),
    "an inner return": (
        "def f():\n    y = 8\n    if flag:\n        if flag:\n            return 16\n"
        "        y = 9\n"
        "    return y\nx = f()",
        16,
        8,
    ),
    "append": ("l = [8]\nif flag:\n    l.append(8)\nx = sum(l)", 16, 8),
    "the length of a list": ("l = [0] * 8\nif flag:\n    l += l\nx = len(l)", 16, 8),
    "extend under another name": ("l = [8]\nm = l\nif flag:\n    m.extend([8])\nx = sum(l)", 16, 8),
    "an item": ("l = [8]\nif flag:\n    l[0] = 16\nx = l[0]", 16, 8),
    "a key": ("d = {'r': 8}\nif flag:\n    d['r'] = 16\nx = d['r']", 16, 8),
    "update": ("d = {'r': 8}\nif flag:\n    d.update(r=16)\nx = d['r']", 16, 8),
    "break": ("x = 0\nfor i in (8, 8):\n    x += i\n    if not flag:\n        break", 16, 8),
    "continue": ("x = 8\nfor i in (1,):\n    if not flag:\n        continue\n    x = 16", 16, 8),
    "a loop of unknown length": ("x = 8\nfor i in range(int(flag)):\n    x *= 2", 16, 8),
    "while": ("x = 8\nwhile flag and x < 16:\n    x = 16", 16, 8),
    "nonlocal": (
        "y = 8\ndef f():\n    nonlocal y\n    if flag:\n        y = 16\nf()\nx = y",
        16,
        8,
    ),
    "an attribute": (
        "class C:\n    pass\nc = C()\nc.r = 8\nif flag:\n    c.r = 16\nx = c.r",
        16,
        8,
    ),
    "a tuple": ("s = (8, 1)\nif flag:\n    s = (16, 1)\nx = s[0]", 16, 8),
    "which function": (
        "def f():\n    return 8\nif flag:\n    def f():\n        return 16\nx = f()",
        16,
        8,
    ),
    "a dictionary of configurations": ("x = {True: 16, False: 8}[flag]", 16, 8),
    "keyword arguments": (
        "def f(r=8):\n    return r\nk = {}\nif flag:\n    k = {'r': 16}\nx = f(**k)",
        16,
        8,
    ),
}


@pytest.mark.parametrize(("before", "yes", "no"), UNDECIDED.values(), ids=UNDECIDED)
def test_a_size_that_hangs_on_an_unknown_flag_is_unknown_until_it_is_given(
    tmp_path: Path, before: str, yes: int, no: int
) -> None:
    for flag, rows in ((True, yes), (False, no)):
        scope: dict[str, Any] = {"flag": flag}
        # the expectation itself, by Python; inside a function for `nonlocal`
        body = textwrap.indent(f"{before}\nreturn x", "    ")
        exec(f"def run():\n{body}\nx = run()", scope)
        assert scope["x"] == rows
    text = factory(before, args="flag")
    kernel = read(tmp_path, text)
    tile = tile_of(kernel)
    assert tile.bytes is None
    assert kernel.staged.dynamic_bytes is None
    assert not isinstance(tile.shape[0], int)
    assert "--set flag=VALUE" in notes(kernel)
    assert tile_of(read(tmp_path, text, flag=True)).shape == (yes, 64)
    assert tile_of(read(tmp_path, text, flag=False)).shape == (no, 64)


def test_a_branch_that_may_be_taken_lists_its_buffers_without_bytes(tmp_path: Path) -> None:
    text = """
    def kernel(wide, rows=8):
        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16")):
            with T.Kernel(1, threads=128):
                always = T.alloc_shared((rows, 8), "float16")
                if wide:
                    left = T.alloc_shared((rows, 8), "float16")
                else:
                    right = T.alloc_shared((rows, 16), "float16")
        return main
    """
    kernel = read(tmp_path, text)
    assert [(b.name, b.bytes) for b in kernel.buffers] == [
        ("always", 8 * 8 * 2),
        ("left", None),
        ("right", None),
    ]
    assert kernel.staged.dynamic_bytes is None
    assert "whether left is allocated, whether right is allocated" in notes(kernel)
    assert "--set wide=VALUE" in notes(kernel)
    assert [b.name for b in read(tmp_path, text, wide=True).buffers] == ["always", "left"]
    assert read(tmp_path, text, wide=False).staged.dynamic_bytes == (8 * 8 + 8 * 16) * 2


def test_an_unknown_kernel_is_named_with_the_flag_that_decides_it(tmp_path: Path) -> None:
    one = ONE_TILE.format(shape="(8, 8)", dtype='"float16"')
    two = ONE_TILE.format(shape="(16, 8)", dtype='"float16"')
    text = (
        f"def kernel(split):\n    if split > 1:\n{textwrap.indent(one, '    ')}\n"
        f"    else:\n{textwrap.indent(two, '    ')}\n"
    )
    kernel = read(tmp_path, text)
    assert (kernel.buffers, kernel.staged.dynamic_bytes) == ((), None)
    assert "--set split=VALUE" in notes(kernel)
    assert read(tmp_path, text, split=4).staged.dynamic_bytes == 8 * 8 * 2
    assert read(tmp_path, text, split=1).staged.dynamic_bytes == 16 * 8 * 2


def test_the_name_of_what_cannot_be_evaluated_may_be_set(tmp_path: Path) -> None:
    text = "import torch\n" + factory(
        "x = torch.cuda.get_device_properties(0).multi_processor_count"
    )
    kernel = read(tmp_path, text)
    assert "--set x=VALUE" in notes(kernel)
    assert read(tmp_path, text, x=132).staged.dynamic_bytes == 132 * 64 * 2


def test_what_the_file_asks_the_device_for_is_answered_by_its_facts(tmp_path: Path) -> None:
    text = (
        HEAD
        + "import torch\n"
        + factory(
            "major, minor = torch.cuda.get_device_capability()\n"
            "x = 16 if major >= 9 else 8\n"
            "y = torch.cuda.get_device_properties(0).multi_processor_count",
            "(x, y)",
        )
    )
    path = tmp_path / "asks.py"
    path.write_text(text)
    facts = {"capability": [9, 0], "cores": 132}
    (kernel,) = SourceFrontend().load(path, facts).read(ask("kernel", {}, "sm_90a"))
    assert tile_of(kernel).shape == (16, 132)


def test_a_constant_of_another_file_is_missing_by_its_name(tmp_path: Path) -> None:
    text = "from config import BLOCK\n" + factory("x = BLOCK // 2")
    kernel = read(tmp_path, text)
    assert "--set BLOCK=VALUE" in notes(kernel)
    assert read(tmp_path, text, BLOCK=64).staged.dynamic_bytes == 32 * 64 * 2


@pytest.mark.parametrize(
    "call",
    ["helper(A)", "other.helper(A)", "emitter.load(A)", "[f(A) for f in FUNCTIONS]"],
)
def test_what_code_of_another_file_allocates_is_not_known(tmp_path: Path, call: str) -> None:
    text = f"""
    import other
    from other import helper, FUNCTIONS, Emitter

    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128):
            emitter = Emitter()
            tile = T.alloc_shared((8, 8), "float16")
            {call}
    """
    kernel = read(tmp_path, text)
    assert tile_of(kernel).bytes == 8 * 8 * 2
    assert kernel.staged.dynamic_bytes is None
    assert "allocates is not known" in notes(kernel)


def test_a_decorator_of_another_file_hides_no_parameters(tmp_path: Path) -> None:
    text = "from other import cached\n@cached(size=8)\n" + factory("x = rows", args="rows=24")
    assert read(tmp_path, text).staged.dynamic_bytes == 24 * 64 * 2


@pytest.mark.parametrize(
    "before",
    [
        "x = 2**10**9",
        "x = 1 << 10**9",
        "x = len('a' * 10**10)",
        "x = len([0] * 10**10)",
        "x = sum(range(10**12))",
        "x = 7\nwhile True:\n    x = x * x",
        "while True:\n    pass",
        "def f():\n    return f()\nx = f()",
        "x = len(list(range(10**9)))",
        "x = int('9' * 5000)",
        "x = 64 // 0",
        "x = 'a' + 1",
        "x = {}['rows']",
        "import itertools\nx = len(list(itertools.product(range(1000), repeat=9)))",
        "x = len(f'{1:1000000000}')",
        "x = len('%1000000000d' % 1)",
    ],
)
def test_a_size_that_is_hostile_or_wrong_is_unknown_and_soon(tmp_path: Path, before: str) -> None:
    start = time.monotonic()
    kernel = read(tmp_path, factory(before))
    assert kernel.staged.dynamic_bytes is None
    assert notes(kernel)
    assert time.monotonic() - start < 20


# ---- copies by the declared rule -------------------------------------------------------------


def copies_of(tmp_path: Path, body: str, **params: Any) -> dict[str, tuple[int | None, str | None]]:
    text = f"""
def kernel(S=3, N=8):
    @T.prim_func
    def main(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_shared((8, 8), "float16")
            b = T.alloc_shared((8, 8), "float16")
            f = T.alloc_fragment((8, 8), "float16")
{textwrap.indent(textwrap.dedent(body), " " * 12)}
    return main
"""
    kernel = read(tmp_path, text, **params)
    return {buffer.name: (buffer.copies, buffer.why) for buffer in kernel.buffers}


RULES = {
    "a copy from a parameter is kept once a stage": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.copy(A[k, 0], a)\n    T.copy(a, f)",
        (3, "pipeline"),
    ),
    "by keyword": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.copy(src=A[k, 0], dst=a)",
        (3, "pipeline"),
    ),
    "into a part": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.copy(A[k, 0], a[0:4, :])",
        (3, "pipeline"),
    ),
    "by TMA": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.tma_copy(A[k, 0], a)",
        (3, "pipeline"),
    ),
    "in an inner loop": (
        "for k in T.Pipelined(N, num_stages=S):\n    for i in T.serial(2):\n"
        "        T.copy(A[k, i], a)",
        (3, "pipeline"),
    ),
    "under a device condition": (
        "for k in T.Pipelined(N, num_stages=S):\n    if k < bx:\n        T.copy(A[k, 0], a)",
        (3, "pipeline"),
    ),
    "one stage": (
        "for k in T.Pipelined(N, num_stages=1):\n    T.copy(A[k, 0], a)",
        (1, "one-stage"),
    ),
    "no stages": (
        "for k in T.Pipelined(N, num_stages=0):\n    T.copy(A[k, 0], a)",
        (1, "not-pipelined"),
    ),
    "a plain loop": ("for k in T.serial(N):\n    T.copy(A[k, 0], a)", (1, "not-pipelined")),
    "outside of the loop": (
        "T.copy(A[0, 0], a)\nfor k in T.Pipelined(N, num_stages=S):\n    T.copy(A[k, 0], b)",
        (1, "not-pipelined"),
    ),
    "only read in the loop": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.copy(a, f)",
        (1, "read-only"),
    ),
    "filled from registers": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.copy(f, a)",
        (1, "same-stage"),
    ),
    "filled from another tile": (
        "for k in T.Pipelined(N, num_stages=S):\n    T.copy(b, a)",
        (1, "same-stage"),
    ),
    "stored element by element": (
        "for k in T.Pipelined(N, num_stages=S):\n    for i in T.Parallel(8):\n"
        "        a[i, 0] = A[i, k]",
        (1, "same-stage"),
    ),
    "order and stage lists": (
        "for k in T.Pipelined(N, order=[0, 1], stage=[0, 1]):\n    T.copy(A[k, 0], a)\n"
        "    T.copy(a, f)",
        (2, "explicit-order"),
    ),
    "the deeper of two loops": (
        "for k in T.Pipelined(N, num_stages=2):\n    T.copy(A[k, 0], a)\n"
        "for k in T.Pipelined(N, num_stages=4):\n    T.copy(B[k, 0], a)",
        (4, "pipeline"),
    ),
    "a loop without iterations": (
        "for k in T.Pipelined(N // 16, num_stages=S):\n    T.copy(A[k, 0], a)",
        (0, "empty-loop"),
    ),
    "a loop without iterations, and a use elsewhere": (
        "for k in T.Pipelined(N // 16, num_stages=S):\n    T.copy(A[k, 0], a)\nT.clear(a)",
        (3, "pipeline"),
    ),
    "a persistent loop": (
        "for k in T.Persistent([N], 4, bx, num_stages=2):\n    T.copy(A[k, 0], a)",
        (2, "pipeline"),
    ),
}


@pytest.mark.parametrize(("body", "expected"), RULES.values(), ids=RULES)
def test_copies_follow_the_declared_rule(
    tmp_path: Path, body: str, expected: tuple[int, str]
) -> None:
    found = copies_of(tmp_path, body)
    assert found["a"] == expected
    assert found["f"] == (1, None)  # registers are never multiplied


def test_an_unknown_stage_count_makes_the_copies_unknown(tmp_path: Path) -> None:
    text = """
    def kernel(stages):
        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((8, 8), "float16")
                for k in T.Pipelined(8, num_stages=stages):
                    T.copy(A[k, 0], tile)
        return main
    """
    kernel = read(tmp_path, text)
    tile = tile_of(kernel)
    assert (tile.copies, tile.bytes, kernel.staged.dynamic_bytes) == (None, None, None)
    assert kernel.loops[0].num_stages is None
    assert "copies of tile" in notes(kernel)
    assert "--set stages=VALUE" in notes(kernel)
    assert read(tmp_path, text, stages=5).staged.dynamic_bytes == 5 * 8 * 8 * 2


def test_loops_are_listed_with_their_iterations(tmp_path: Path) -> None:
    text = """
    def kernel(N=100, S=2):
        M = T.dynamic("m")

        @T.prim_func
        def main(A: T.Tensor((M, 512), "float16")):
            with T.Kernel(T.ceildiv(M, 8), threads=128) as bx:
                tile = T.alloc_shared((8, 8), "float16")
                for k in T.Pipelined(T.ceildiv(N, 32), num_stages=S):
                    T.copy(A[k, 0], tile)
                for j in T.Pipelined(1, N, num_stages=S):
                    T.copy(A[j, 0], tile)
                for m in T.Pipelined(T.ceildiv(M, 32), num_stages=S):
                    T.copy(A[m, 0], tile)
                for p, q in T.Parallel(8, N // 200):
                    tile[p, q] = 0
                for r in T.serial(0, 8, 2):
                    T.clear(tile)
        return main
    """
    kernel = read(tmp_path, text)
    # plain loops are listed only where they have no iterations
    assert [(lo.variable, lo.extent, lo.num_stages) for lo in kernel.loops] == [
        ("k", 4, 2),  # 100 / 32, rounded up
        ("j", 99, 2),
        ("m", "(m + 31) // 32", 2),
        ("q", 0, None),
    ]
    assert "--set m=VALUE" in notes(kernel)
    sized = read(tmp_path, text, m=1000)
    assert sized.loops[2].extent == 32  # 1000 / 32, rounded up
    assert sized.launch.grid == (125, 1, 1)


# ---- scopes and memories ---------------------------------------------------------------------

SCOPES = """
@T.prim_func
def kernel(A: T.Tensor((512, 512), "float16")):
    with T.Kernel(1, threads=128):
        dynamic = T.alloc_shared((8, 8), "float16")
        static = T.alloc_shared((5,), "float32", scope="shared")
        positional = T.alloc_shared((3,), "float32", "shared")
        flags = T.alloc_shared((7,), "bool")
        fragment = T.alloc_fragment((8, 8), "float32")
        local = T.alloc_local((4,), "float32")
        variable = T.alloc_var("int32", init=3)
        workspace = T.alloc_global((64, 64), "float32")
        barriers = T.alloc_barrier([128] * 3)
        one_barrier = T.alloc_barrier(128)
        reducer = T.alloc_reducer((4,), "float32", op="max")
        descriptor = T.alloc_wgmma_desc()
"""


def test_every_allocation_of_the_common_dialect_has_its_scope_and_memory(tmp_path: Path) -> None:
    kernel = read(tmp_path, SCOPES)
    shared, registers = Memory.SHARED, Memory.REGISTERS
    assert [(b.name, b.scope, b.memory, b.static, b.bytes) for b in kernel.buffers] == [
        ("dynamic", "shared.dyn", shared, False, 8 * 8 * 2),
        ("static", "shared", shared, True, 5 * 4),
        ("positional", "shared", shared, True, 3 * 4),
        ("flags", "shared", shared, True, 7),
        ("fragment", "local.fragment", registers, False, 8 * 8 * 4),
        ("local", "local", registers, False, 4 * 4),
        ("variable", "local.var", registers, False, 4),
        ("workspace", "global", Memory.GLOBAL, False, 64 * 64 * 4),
        ("barriers", "shared.barrier", shared, True, 3 * 8),
        ("one_barrier", "shared.barrier", shared, True, 8),
        ("reducer", "local.reducer", Memory.UNDECIDED, False, 4 * 4),
        ("descriptor", "local.descriptor.wgmma", registers, False, 8),
    ]
    assert kernel.staged.dynamic_bytes == 8 * 8 * 2
    assert kernel.staged.static_bytes == 5 * 4 + 3 * 4 + 7 + 3 * 8 + 8
    owners = {b.name: b.owner for b in kernel.buffers}
    assert owners["fragment"] is Owner.BLOCK  # written in the block's shape
    assert owners["local"] is Owner.THREAD


def test_a_store_to_a_variable_keeps_the_variable(tmp_path: Path) -> None:
    text = """
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128):
            n = T.alloc_var("int32")
            n = 8
            tile = T.alloc_shared((n, 8), "float16")
    """
    kernel = read(tmp_path, text)
    # TileLang stores 8 in it: the size is one of run time, not 8
    assert tile_of(kernel).bytes is None


def test_tensor_memory_is_counted_in_columns(root: Path) -> None:
    source = SourceFrontend().load(root / "examples" / "alloc_scopes" / "tmem.py")
    (kernel,) = source.read(ask("tmem_accumulator", {}, "sm_100a"))
    # 128 columns of 128 lanes x 32 bit
    assert tile_of(kernel, "C_t").memory is Memory.TENSOR
    assert tile_of(kernel, "C_t").bytes == 128 * 128 * 4
    (narrow,) = source.read(ask("tmem_accumulator", {"block_N": 96}, "sm_100a"))
    assert tile_of(narrow, "C_t").bytes == 128 * 128 * 4  # 96 columns take 128
    (least,) = source.read(ask("tmem_accumulator", {"block_N": 16}, "sm_100a"))
    assert tile_of(least, "C_t").bytes == 32 * 128 * 4  # 32 at least


def test_operations_that_allocate_by_themselves_are_counted(tmp_path: Path) -> None:
    text = """
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((8, 32), "float32")
            g = T.alloc_fragment((8,), "float32")
            s = T.alloc_shared((8, 32), "float16")
            T.cumsum(f, dim=1)
            T.cumsum(s, dim=1)
            T.reduce_sum(f, g, dim=1)
            T.reduce_max(s, g, dim=1)
            T.print(f)
    """
    kernel = read(tmp_path, text)
    assert [(b.name, b.scope, b.shape, b.dtype) for b in kernel.buffers[3:]] == [
        ("scan_smem", "shared.dyn", (8, 32), "float32"),  # only a fragment is scanned that way
        ("s_frag", "local.fragment", (8, 32), "float16"),
        ("smem", "shared", (8, 32), "float32"),
    ]
    assert kernel.staged.dynamic_bytes == 8 * 32 * 2 + 8 * 32 * 4
    assert kernel.staged.static_bytes == 8 * 32 * 4


def test_an_amd_target_keeps_tiles_in_lds(root: Path) -> None:
    source = SourceFrontend().load(root / "examples" / "gemm.py")
    (kernel,) = source.read(ask("matmul", {}, "gfx942"))
    assert {b.memory for b in kernel.buffers} == {Memory.LDS, Memory.REGISTERS}
    assert kernel.staged.dynamic_bytes == 3 * (128 * 64 + 64 * 128) * 2


@pytest.mark.parametrize("target", ["sm_90a", "gfx942"])
def test_a_kernel_for_ascend_is_refused_for_a_gpu(root: Path, target: str) -> None:
    source = SourceFrontend().load(root / "examples" / "alloc_scopes" / "ascend.py")
    with pytest.raises(RefusedError, match=r"line 54: .*tilelang\.ascend"):
        source.read(ask("ascend_scope_showcase", {}, target))


def test_several_launches_are_several_kernels(root: Path) -> None:
    source = SourceFrontend().load(root / "tests" / "kernels" / "corpus" / "several.py")
    first, second, third = source.read(ask("three_steps", {}, "sm_90a"))
    assert [k.function for k in (first, second, third)] == [
        "work_kernel",
        "work_kernel_1",
        "work_kernel_2",
    ]
    assert [k.staged.dynamic_bytes for k in (first, second, third)] == [
        8 * 256 * 4,
        2 * 4 * 256 * 4,
        16 * 256 * 4,
    ]


def test_threads_in_several_dimensions_and_a_cluster(tmp_path: Path) -> None:
    text = """
    def kernel(size=4, warps=None):
        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16")):
            with T.Kernel(8, 16, 2, threads=(32, 4), cluster_dims=(size, 1, 1)) as (x, y, z):
                tile = T.alloc_shared((8, 8), "float16")
        return main
    """
    launch = read(tmp_path, text).launch
    assert launch.threads == 32 * 4
    assert launch.grid == (8, 16, 2)
    assert launch.cluster == (4, 1, 1)
    assert read(tmp_path, text, size=1).launch.cluster is None  # no cluster at all


def test_threads_left_out_are_128_on_a_gpu_and_open_if_unknown(tmp_path: Path) -> None:
    text = """
    def kernel(given):
        @T.prim_func
        def main():
            with T.Kernel(4{more}) as x:
                tile = T.alloc_shared((8, 8), "float16")
        return main
    """
    left_out = read(tmp_path, text.replace("{more}", ""), given=0).launch
    assert (left_out.threads_declared, left_out.threads) == (None, 128)
    kernel = read(tmp_path, text.replace("{more}", ", threads=given * 32"))
    assert kernel.launch.threads is None
    assert "threads: not known without given: add --set given=VALUE" in notes(kernel)
    assert kernel.staged.dynamic_bytes == 8 * 8 * 2  # the bytes do not hang on it


# ---- errors ----------------------------------------------------------------------------------


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("x = 1\ndef f(:\n")
    with pytest.raises(InputError, match=r"bad\.py:2: syntax error"):
        SourceFrontend().load(path)


@pytest.mark.parametrize(
    "content", [b"\x00", b"\xff\xfe\x00", b"x = " + b"(" * 10_000, b"# coding: nonsense\n"]
)
def test_what_is_no_python_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    with pytest.raises(InputError):
        SourceFrontend().load(path)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        SourceFrontend().load(tmp_path / "absent.py")


def test_an_unknown_kernel_and_parameter_are_named_with_near_ones(root: Path) -> None:
    source = SourceFrontend().load(root / "examples" / "gemm.py")
    with pytest.raises(UnknownNameError, match="did you mean matmul"):
        source.read(ask("matmull", {}, "sm_90a"))
    with pytest.raises(UnknownNameError, match="did you mean num_stages"):
        source.read(ask("matmul", {"num_stage": 3}, "sm_90a"))


def test_an_open_size_is_a_whole_number(tmp_path: Path) -> None:
    text = "def kernel():\n    M = T.dynamic('m')\n" + ONE_TILE.format(
        shape="(M, 8)", dtype="'int8'"
    )
    with pytest.raises(InputError, match="--set m='x': a size is a whole number"):
        read(tmp_path, text, m="x")
    assert read(tmp_path, text, m=5).staged.dynamic_bytes == 5 * 8
    assert read(tmp_path, text).staged.dynamic_bytes is None


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("raise ValueError(f'rows must not be {rows}')", "raises ValueError: rows must not be 128"),
        ("assert rows % 3 == 0", "asserts rows % 3 == 0"),
        ("if rows > 64:\n    raise NotImplementedError", "raises NotImplementedError"),
    ],
)
def test_what_the_author_refuses_is_an_error_with_its_line(
    tmp_path: Path, before: str, said: str
) -> None:
    with pytest.raises(KernelError, match=rf"kernels\.py:\d+ {said}"):
        read(tmp_path, factory(before, args="rows=128"))


def test_a_raise_that_may_not_happen_is_no_error(tmp_path: Path) -> None:
    before = "x = 8\nif rows > 64:\n    raise ValueError('too many')"
    assert read(tmp_path, factory(before, args="rows")).staged.dynamic_bytes == 8 * 64 * 2


def test_a_factory_that_returns_something_else_says_so(tmp_path: Path) -> None:
    text = """
    def kernel():
        @T.prim_func
        def main():
            with T.Kernel(1):
                tile = T.alloc_shared((8, 8), "float16")
        return 5
    """
    with pytest.raises(KernelError, match="calling kernel gives a int, no kernel"):
        read(tmp_path, text)


# ---- odd files -------------------------------------------------------------------------------


def test_the_standard_library_holds_no_kernel_and_raises_nothing() -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    files = [f for f in sorted(folder.rglob("*.py")) if "site-packages" not in f.parts]
    read_files = 0
    for file in files[::17]:
        if "bad" in file.stem or "lib2to3" in file.parts:
            continue  # tests of the parser itself: no Python of today
        assert SourceFrontend().load(file).kernels() == (), file
        read_files += 1
    assert read_files > 50


ODD = (
    *("None", "-1", "0", "2**70", "'x'", "[]", "{}", "(1, 2)", "lambda: 1", "T", "T.alloc_shared"),
    *(
        "absent",
        "float('nan')",
        "...",
        "[None]",
        "1e400",
        "True",
        "range(3)",
        "T.float16",
        "{1: 2}",
    ),
)


class Mutate(ast.NodeTransformer):
    """Puts odd values in place of some expressions and drops some statements."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        context = getattr(node, "ctx", None)
        loads = isinstance(node, ast.expr) and (context is None or isinstance(context, ast.Load))
        if loads and not isinstance(node, ast.Starred) and self.chance.random() < 0.01:
            return ast.parse(self.chance.choice(ODD), mode="eval").body
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and self.chance.random() < 0.1:
            body.pop(self.chance.randrange(len(body)))
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        return node


def read_or_refuse(source: SourceFile, name: str, target: str) -> None:
    """Read a kernel, or see it refused in one line."""
    try:
        kernels = source.read(ask(name, {}, target))
    except TilefitError as error:
        message = str(error)
    else:
        message = ""
        for kernel in kernels:  # as text: a parameter may be no number
            text = json.dumps(kernel.to_dict())
            assert json.dumps(Kernel.from_dict(json.loads(text)).to_dict()) == text
    assert "\n" not in message


def test_mutated_kernels_give_a_kernel_or_one_of_our_errors(root: Path, tmp_path: Path) -> None:
    chance = random.Random(20261129)
    files = sorted((root / "tests" / "kernels").rglob("*.py"))
    path = tmp_path / "mutant.py"
    seen = 0
    for _ in range(40):
        tree = Mutate(chance).visit(ast.parse(chance.choice(files).read_text(encoding="utf-8")))
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
        try:
            source = SourceFrontend().load(path)
        except InputError:
            continue
        for listing in source.kernels():
            seen += 1
            read_or_refuse(source, listing.name, chance.choice(["sm_90a", "gfx942", "ascend"]))
    assert seen > 100


def test_nothing_but_the_standard_library_is_imported(root: Path) -> None:
    script = f"""
import sys
before = set(sys.modules)
from pathlib import Path
from tilefit._frontends.source.frontend import SourceFrontend
source = SourceFrontend().load(Path({str(root / "examples" / "gemm.py")!r}))
from tilefit._kernel.request import Request
asked = Request(kernel="matmul", params={{"num_stages": 2}}, target="sm_90a")
kernel, = source.read(asked)
print(kernel.staged.dynamic_bytes)
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    total, modules = done.stdout.splitlines()
    assert int(total) == 2 * (128 * 64 + 64 * 128) * 2
    assert set(modules.split()) <= {*sys.stdlib_module_names, "tilefit"}
