"""The forms in which people hand a kernel and its values over: each means what they think."""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilefit
from tilefit._errors import InputError, KernelError
from tilefit._frontends.tilelang.versions import with_version
from tilefit.cli import main as command

pytestmark = pytest.mark.tilelang

KERNELS = Path(__file__).parent / "kernels"
FORMS = str(KERNELS / "dispatching.py")


@pytest.fixture(scope="module")
def forms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dispatching_forms", FORMS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def shared(report: Any) -> int:
    (result,) = report.results
    assert str(result.status) == "fits"
    return int(next(use.total_bytes for use in result.uses if use.memory == "shared"))


# ---- factories that choose ----------------------------------------------------------------


@pytest.mark.parametrize(("part", "columns_of_a_tile"), [(0, 512), (256, 256)])
def test_a_factory_that_returns_another_ones_kernel(part: int, columns_of_a_tile: int) -> None:
    sizes = {"rows": 256, "columns": 512, "part": part, "block": 4}
    report = tilefit.plan(f"{FORMS}::rows_of", "h100", **sizes)
    assert shared(report) == 4 * columns_of_a_tile * 2


@pytest.mark.parametrize(("columns", "rows_of_a_tile"), [(256, 64), (1024, 16)])
def test_a_factory_that_calls_a_jit_object_compiles_nothing(
    forms: ModuleType, columns: int, rows_of_a_tile: int
) -> None:
    report = tilefit.plan(forms.smaller_where_wide, "h100", columns=columns)
    assert shared(report) == rows_of_a_tile * columns * 2
    # the pass configs of the jit object count: warp specialisation would add 128 threads
    (result,) = report.results
    assert result.lowered is not None
    assert result.lowered.launch.threads == 128


def test_what_is_listed_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["plan", FORMS, "--list"]) == 0
    out = capsys.readouterr().out
    assert "rows_of(rows, columns, dtype='float16', part=0, block=4, threads=128)" in out
    assert "reference" not in out
    assert command(["plan", FORMS, "--list", "--estimate"]) == 0
    assert capsys.readouterr().out == out


# ---- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["row_bytes", "row_bytes_unsaid"])
@pytest.mark.parametrize(("dtype", "bytes_each"), [("float16", 2), ("float8_e4m3fn", 1)])
@pytest.mark.parametrize("flags", [(), ("--estimate",)])
def test_a_dtype_that_is_asked_for_its_bytes(
    kernel: str,
    dtype: str,
    bytes_each: int,
    flags: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ("--set", f"dtype={dtype}", "--set", "bytes_per_row=512")
    assert command(["plan", f"{FORMS}::{kernel}", "-d", "h100", *given, *flags, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    (tile,) = [b for b in result["buffers"] if b["name"] == "tile"]
    assert tile["shape"] == [64, 512 // bytes_each]
    assert tile["bytes"] == 64 * 512


def test_the_columns_of_a_file_of_shapes_stay_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("\ufeffpart,rows,columns\n64,128,256\n128,128,512\n", encoding="utf-8")
    flags = ("--estimate", "--shapes", str(shapes))
    assert command(["plan", f"{FORMS}::rows_of", "-d", "h100", *flags]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["part", "columns"]


# ---- objects of the process --------------------------------------------------------------------


def test_any_callable_that_gives_a_kernel(forms: ModuleType) -> None:
    class Maker:
        def __call__(self, part: int, block: int) -> Any:
            return forms.rows_of(256, 512, "float16", part).get_tir(block, 128)

        def method(self, part: int) -> Any:
            return forms.rows_of(256, 512, "float16", part)

    given = {"part": 256, "block": 4}
    made = (
        Maker(),
        Maker().method,
        lambda part, block: forms.rows_of(256, 512, "float16", part),
        functools.partial(forms.rows_of, 256, 512, "float16"),
        functools.partial(forms._parts_of_rows, 256, 512, "float16"),
    )
    for one in made:
        assert shared(tilefit.plan(one, "h100", **given)) == 4 * 256 * 2
    with pytest.raises(KernelError, match="gave a int, not a TileLang kernel"):
        tilefit.plan(lambda: 3, "h100")
    with pytest.raises(InputError, match="a int is no TileLang kernel"):
        tilefit.plan(3, "h100")
    with pytest.raises(InputError, match=r"'parts'.*did you mean part"):
        tilefit.plan(forms.rows_of, "h100", rows=256, columns=512, parts=4)


ASKING = """
import functools
import torch
import tilelang
import tilelang.language as T


@functools.lru_cache(maxsize=32)
def cached(rows, columns):
    wide = 2 * columns if torch.cuda.get_device_capability()[0] >= 9 else columns

    @tilelang.jit
    def build(threads=128):
        @T.prim_func
        def main(A: T.Tensor((rows, wide), "float16")):
            with T.Kernel(rows, threads=threads) as bx:
                tile = T.alloc_shared((wide,), "float16")
                T.copy(A[bx, 0], tile)
                T.copy(tile, A[bx, 0])

        return main

    return build
"""


def test_a_factory_of_this_process_is_told_of_each_device(tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(ASKING, encoding="utf-8")
    code = (
        "import asking, tilefit, torch\n"
        "for names in (['h100', 'a100'], ['a100', 'h100']):\n"
        "    report = tilefit.plan(asking.cached, names, rows=64, columns=1024)\n"
        "    print([r.uses[0].total_bytes for r in report.results])\n"
        "print(torch.cuda.is_available())\n"  # the process itself is told nothing
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    # 1,024 columns of 2 B; twice as many from compute capability 9 on
    assert done.stdout.split("\n")[:3] == ["[4096, 2048]", "[2048, 4096]", "False"], done.stderr


def test_a_factory_that_fails_for_another_reason_says_its_own(forms: ModuleType) -> None:
    def broken(rows: int = 4) -> Any:
        raise ZeroDivisionError("rows by nothing")

    with pytest.raises(KernelError, match="rows by nothing"):
        tilefit.plan(broken, "h100")


# ---- packages ----------------------------------------------------------------------------------

KERNEL = (KERNELS / "mains" / "package" / "tiles.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("named", [True, False])
def test_a_package_whose_init_breaks(
    named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "ours"
    package.mkdir()
    (package / "__init__.py").write_text("from .gone import nothing\n", encoding="utf-8")
    (package / "sizes.py").write_text("COLUMNS = 128\n", encoding="utf-8")
    text = KERNEL.replace("import tilelang\n", "import tilelang\nfrom .sizes import COLUMNS\n", 1)
    text = text.replace("columns=64", "columns=COLUMNS")
    (package / "tiles.py").write_text(f"{text}\n\ntile = tile_of(80)\n", encoding="utf-8")
    source = str(package / "tiles.py")
    given = (f"{source}::tile_of", "--set", "rows=80") if named else (source,)
    assert command(["plan", *given, "-d", "h100", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (result,) = answer["results"]
    assert result["memories"][0]["total_bytes"] == 80 * 128 * 2
    remarks = result["notes"] if named else answer["files"][0]["remarks"]
    assert any("ours/__init__.py was left out" in one and "gone" in one for one in remarks)


def test_a_relative_import_without_a_package_is_followed_by_name_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = f"{KERNELS / 'mains' / 'package' / 'main.py'}::tile_of"
    assert command(["plan", source, "-d", "h100", "--set", "rows=80", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["memories"][0]["total_bytes"] == 80 * 64 * 2


def test_bases_of_a_package_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bases = (
        "from not_there import Base, Other\nimport abc\n\n"
        "class Mixin(Other):\n    pass\n\n"
        "class Both(Base, Other):\n    pass\n\n"
        "class Mixed(Base, Mixin):\n    pass\n\n"
        "class Last(Mixin, Base):\n    pass\n\n"
        "class Known(Base, abc.ABC):\n    pass\n\n"
        "assert Mixed.anything is not None and isinstance(Mixed(), Mixin)\n"
    )
    path = tmp_path / "bases.py"
    path.write_text(f"{bases}{KERNEL}", encoding="utf-8")
    assert command(["plan", f"{path}::tile_of", "-d", "h100", "--set", "rows=80", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert any("not_there" in note for note in result["notes"])


# ---- names that another TileLang has ---------------------------------------------------------

GONE = KERNEL.replace("import tilelang\n", "import tilelang\nfrom tilelang import of_old\n", 1)
ANOTHER = "this TileLang is 0.1.15; --python names an interpreter that has another"


@pytest.mark.parametrize("kernel", ["", "::tile_of"])
def test_a_name_that_this_tilelang_lacks(
    kernel: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gone.py"
    path.write_text(GONE, encoding="utf-8")
    assert command(["plan", f"{path}{kernel}", "-d", "h100", "--set", "rows=80"]) == 2
    assert ANOTHER in capsys.readouterr().err


def test_a_name_of_the_language_that_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    path.write_text(KERNEL.replace("alloc_shared", "alloc_of_old"), encoding="utf-8")
    with pytest.raises(KernelError, match=r"alloc_of_old.*this TileLang is"):
        tilefit.plan(f"{path}::tile_of", "h100", rows=80)


def test_only_what_tilelang_lacks_is_its_versions_fault() -> None:
    for message in ("module 'torch' has no attribute 'x'", "No module named 'tilelang_extra'"):
        assert with_version(message) == message


def test_a_file_that_cannot_be_executed_is_listed_from_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gone.py"
    path.write_text(GONE, encoding="utf-8")
    assert command(["plan", str(path), "--list"]) == 0
    first, note = capsys.readouterr().out.splitlines()
    assert first.startswith("tile_of(rows, columns=64)   factory")
    assert note.startswith("note: listed from the source alone: gone.py:")
    assert command(["plan", str(path), "--list", "--json"]) == 0
    assert "of_old" in json.loads(capsys.readouterr().out)["note"]
    assert command(["plan", FORMS, "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["note"] is None
