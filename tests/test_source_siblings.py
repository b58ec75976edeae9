"""An estimate follows the author's other modules, and executes none of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.opened import ask
from tilefit._frontends.source.frontend import SourceFile, SourceFrontend
from tilefit._kernel.kernel import Buffer

HELPERS = '''
"""Helpers of the kernels."""
import tilelang.language as T
import no_such_package

ALIGN = 256
TILES = {"sm_90a": (128, 64), "sm_80": (64, 32)}

def align_up(n, to=ALIGN):
    return (n + to - 1) // to * to

def accumulator(dtype):
    return {"float16": "float32"}[dtype]

def adding(op):
    @T.macro
    def add(x, out):
        scratch = T.alloc_fragment((4,), "float32")
        out[0] = out[0] + x[0]
    return add

raise SystemExit("nothing of this is executed")
'''

KERNEL = """
import tilelang
import tilelang.language as T
{imports}

def kernel(N=1000, dtype="float16"):
    {before}
    @T.prim_func
    def main(A: T.Tensor((64, N), dtype)):
        with T.Kernel(8, threads=128) as bx:
            s = T.alloc_shared(({shape}), {dtype})
            {inside}
            T.copy(A[0, 0], s)
    return main
"""


def package(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def kernel(
    imports: str,
    shape: str = "align_up(N),",
    dtype: str = "dtype",
    before: str = "",
    inside: str = "",
) -> str:
    return KERNEL.format(imports=imports, shape=shape, dtype=dtype, before=before, inside=inside)


def buffers(path: Path, **params: Any) -> dict[str, Buffer]:
    (found,) = load(path).read(ask("kernel", params, "sm_90a"))
    return {buffer.name: buffer for buffer in found.buffers}


def load(path: Path) -> SourceFile:
    return SourceFrontend().load(path)


ALIGNED = 1024 * 2  # 1000 rounded up to a multiple of 256, of 2 B each
IMPORTS = [
    ("from .helpers import align_up", "align_up(N),"),
    ("from .helpers import align_up as up, ALIGN", "up(N, ALIGN),"),
    ("from . import helpers", "helpers.align_up(N),"),
    ("from .helpers import *", "align_up(N),"),
    ("from pkg.helpers import align_up", "align_up(N),"),
    ("import pkg.helpers", "pkg.helpers.align_up(N),"),
    ("import pkg.helpers as h", "h.align_up(N),"),
    ("from pkg import helpers as h", "h.align_up(N),"),
    ("from .again import align_up", "align_up(N),"),  # a module that only passes it on
    ("from . import align_up", "align_up(N),"),  # so does the package itself
    ("from .deep.inner import up_two", "up_two(N),"),  # which imports from two levels up
    ("from .circle import align_up", "align_up(N),"),  # which imports the kernel's module
]


@pytest.mark.parametrize(("imports", "shape"), IMPORTS, ids=[text for text, _ in IMPORTS])
def test_a_helper_of_the_package(tmp_path: Path, imports: str, shape: str) -> None:
    package(
        tmp_path / "pkg",
        {
            "__init__.py": "from .helpers import align_up\n",
            "helpers.py": HELPERS,
            "again.py": "from .helpers import align_up\n",
            "circle.py": "from .kern import kernel\nfrom .helpers import align_up\n",
            "deep/__init__.py": "",
            "deep/inner.py": "from ..helpers import align_up\n\n"
            "def up_two(n):\n    return align_up(n)\n",
            "kern.py": kernel(imports, shape),
        },
    )
    assert buffers(tmp_path / "pkg" / "kern.py")["s"].bytes == ALIGNED


@pytest.mark.parametrize("imports", ["from helpers import align_up", "import helpers as h"])
def test_a_helper_beside_a_script(tmp_path: Path, imports: str) -> None:
    shape = "align_up(N)," if "from" in imports else "h.align_up(N),"
    package(tmp_path, {"helpers.py": HELPERS, "kern.py": kernel(imports, shape)})
    assert buffers(tmp_path / "kern.py")["s"].bytes == ALIGNED


def test_tables_dtypes_and_macros_of_a_helper(tmp_path: Path) -> None:
    text = kernel(
        "from helpers import TILES, accumulator, adding",
        shape="*TILES['sm_90a'],",
        dtype="accumulator(dtype)",
        before="add = adding('sum')",
        inside="add(s, s)",
    )
    package(tmp_path, {"helpers.py": HELPERS, "kern.py": text})
    found = buffers(tmp_path / "kern.py")
    assert (found["s"].shape, found["s"].bytes) == ((128, 64), 128 * 64 * 4)
    assert found["scratch"].bytes == 4 * 4  # what the macro allocates


def test_what_a_helper_leaves_open_is_named_with_its_flag(tmp_path: Path) -> None:
    helpers = "import os\nWIDTH = int(os.environ['WIDTH'])\n"
    text = kernel("from helpers import WIDTH", shape="WIDTH,")
    package(tmp_path, {"helpers.py": helpers, "kern.py": text})
    one = buffers(tmp_path / "kern.py")["s"]
    assert one.bytes is None
    assert "--set WIDTH=VALUE" in (one.needs or "")
    assert buffers(tmp_path / "kern.py", WIDTH=64)["s"].bytes == 64 * 2


def test_a_helper_that_cannot_be_read_leaves_its_names_open(tmp_path: Path) -> None:
    package(tmp_path, {"helpers.py": "def (:", "kern.py": kernel("from helpers import align_up")})
    one = buffers(tmp_path / "kern.py")["s"]
    assert (one.bytes, one.needs) == (None, "the source alone does not say: align_up(N)")


def test_a_module_beside_the_file_is_not_the_language(tmp_path: Path) -> None:
    """Python's own and TileLang's modules are not looked for beside the file."""
    text = kernel("import math", shape="math.ceil(N / 256) * 256,")
    package(
        tmp_path,
        {
            "math.py": "def ceil(n):\n    return 7\n",
            "tilelang/__init__.py": "",
            "tilelang/language.py": "def alloc_shared(shape, dtype):\n    return 0\n",
            "kern.py": text,
        },
    )
    assert buffers(tmp_path / "kern.py")["s"].bytes == ALIGNED


def test_the_factories_of_a_helper_are_none_of_the_file(tmp_path: Path) -> None:
    helpers = kernel("", shape="8,").replace("def kernel(", "def other(")
    jit = "\n@tilelang.jit\n" + helpers.strip().partition("\n\n")[2].replace("other", "jitted")
    package(
        tmp_path,
        {
            "helpers.py": helpers + jit,
            "kern.py": "from helpers import other, jitted\n" + kernel("", shape="8,"),
        },
    )
    # as for TileLang's own reading: a jit function is offered wherever it is imported
    assert {one.name for one in load(tmp_path / "kern.py").kernels()} == {"kernel", "jitted"}


def test_the_modules_that_were_followed_are_what_an_answer_rests_on(tmp_path: Path) -> None:
    package(tmp_path, {"helpers.py": HELPERS, "kern.py": kernel("from helpers import align_up")})
    source = load(tmp_path / "kern.py")
    source.read(ask("kernel", {}, "sm_90a"))
    names = {Path(file).relative_to(tmp_path.resolve()) for file in map(Path, source.files)}
    assert names >= {Path("kern.py"), Path("helpers.py")}
    # one that is not there yet would be imported instead
    assert Path("helpers/__init__.py") in names
