"""Values of kernels that need some: --set over files and folders, --values, --template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tilefit._errors import InputError
from tilefit._kernel.kernel import Listing, Parameter
from tilefit._planning.values import read_values, template
from tilefit.cli import main as command

ROWS = """
import tilelang
import tilelang.language as T


@tilelang.jit
def {name}(rows, columns, dtype="float16", block=4):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, block), threads=128) as bx:
            tile = T.alloc_shared((block, columns), dtype)
            T.copy(A[bx * block, 0], tile)
            T.copy(tile, B[bx * block, 0])

    return main
"""
FINISHED = ROWS.replace("@tilelang.jit\n", "") + "\nfinished = {name}(64, 256)\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with a kernel that needs two values in each of two files, and a finished one."""
    folder = tmp_path / "ops"
    (folder / "more").mkdir(parents=True)
    (folder / "first.py").write_text(ROWS.format(name="first"), encoding="utf-8")
    (folder / "more" / "second.py").write_text(ROWS.format(name="second"), encoding="utf-8")
    (folder / "third.py").write_text(FINISHED.format(name="third"), encoding="utf-8")
    return folder


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = command(["plan", *words, "-d", "h100", "--json"])
    return code, json.loads(capsys.readouterr().out)


def bytes_of(answer: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {
        (one["kernel"], one["params"].get("columns", 0)): one["memories"][0]["total_bytes"]
        for one in answer["results"]
    }


ESTIMATE = pytest.param(("--estimate",), id="estimate")
COMPILED = pytest.param((), id="compiled", marks=pytest.mark.tilelang)


@pytest.mark.parametrize("flags", [ESTIMATE, COMPILED])
def test_what_needs_values_is_no_failure(
    library: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = asked(capsys, str(library), *flags)
    assert code == 2  # a value is missing
    counts = answer["seen"]
    assert (counts["seen"], counts["planned"], counts["failed"], counts["needing"]) == (3, 1, 0, 2)
    needed = {
        one["kernel"]: one["parameters"] for file in answer["files"] for one in file["needs_values"]
    }
    assert needed == {"first": ["rows", "columns"], "second": ["rows", "columns"]}
    assert command(["plan", str(library), "-d", "h100", *flags]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert "3 seen = 1 planned + 0 refused + 0 failed + 2 that need values." in lines
    # a line each, without a word more
    assert [line for line in lines if line.endswith("::first  rows, columns")]
    assert [line for line in lines if line.endswith("::second  rows, columns")]


@pytest.mark.parametrize("flags", [ESTIMATE, COMPILED])
def test_set_reaches_every_kernel_below_a_folder(
    library: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--set", "rows=128", "--set", "columns=512")
    code, answer = asked(capsys, str(library), *given, *flags)
    assert code == 0
    found = bytes_of(answer)
    assert {kernel for kernel, _ in found} >= {"first", "second"}
    assert found["first", 512] == found["second", 512] == 4 * 512 * 2
    assert answer["seen"]["needing"] == 0
    code, answer = asked(capsys, str(library), "--set", "rows=128", *flags)
    assert (code, answer["seen"]["needing"]) == (2, 2)
    needed = [one["parameters"] for file in answer["files"] for one in file["needs_values"]]
    assert needed == [["columns"], ["columns"]]


@pytest.mark.parametrize("flags", [ESTIMATE, COMPILED])
def test_a_name_that_no_kernel_has_is_refused(
    library: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["plan", str(library), "-d", "h100", "--set", "colums=512", *flags]) == 2
    assert "unknown parameter 'colums'; did you mean columns?" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [ESTIMATE, COMPILED])
def test_a_factory_that_its_file_calls_is_counted_once(
    library: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    _, answer = asked(capsys, str(library / "third.py"), *flags)
    assert answer["seen"]["seen"] == 1
    assert answer["results"][0]["memories"][0]["total_bytes"] == 4 * 256 * 2


@pytest.mark.parametrize("flags", [ESTIMATE, COMPILED])
def test_a_template_is_filled_in_and_taken(
    library: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    values = library.parent / "kernels.toml"
    assert command(["plan", str(library), "--template", "-o", str(values)]) == 0
    text = values.read_text(encoding="utf-8")
    assert text.count("[[kernel]]") == 2
    assert "# may be given too: dtype = 'float16', block = 4" in text
    # as it is, it gives nothing
    _, answer = asked(capsys, str(library), "--values", str(values), *flags)
    assert answer["seen"]["needing"] == 2
    one = '{ rows = "?", columns = "?" }'
    assert text.count(one) == 2
    filled = text.replace(one, "{ rows = 64, columns = 512 }, { rows = 64, columns = 1024 }")
    values.write_text(filled, encoding="utf-8")
    code, answer = asked(capsys, str(library), "--values", str(values), *flags)
    assert code == 0
    found = bytes_of(answer)
    for kernel in ("first", "second"):
        assert found[kernel, 512] == 4 * 512 * 2
        assert found[kernel, 1024] == 4 * 1024 * 2
    # rows of one kernel are told apart by what differs
    assert command(["plan", str(library), "-d", "h100", "--values", str(values), *flags]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "first.py::first columns=512" in out
    assert "first.py::first columns=1024" in out


def test_values_of_one_file_or_kernel(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = library / "values.toml"
    values.write_text(
        '[[kernel]]\nfile = "first.py"\nname = "first"\n'
        'sets = [{ rows = 8, columns = 64, dtype = "fp32" }]\n',
        encoding="utf-8",
    )
    path = str(library / "first.py")
    for source in (path, f"{path}::first"):
        code, answer = asked(capsys, source, "--values", str(values), "--estimate")
        assert (code, bytes_of(answer)) == (0, {("first", 64): 4 * 64 * 4})
    assert command(["plan", str(library / "third.py"), "-d", "h100", "--values", str(values)]) == 2
    assert "first.py is not among the files that are planned" in capsys.readouterr().err


def test_a_kernel_that_the_file_does_not_have(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = library / "values.toml"
    values.write_text('[[kernel]]\nfile = "first.py"\nname = "fist"\nsets = [{ rows = 8 }]\n')
    path = str(library / "first.py")
    assert command(["plan", path, "-d", "h100", "--values", str(values), "--estimate"]) == 2
    captured = capsys.readouterr()
    assert "unknown kernel of first.py 'fist'; did you mean first?" in captured.out + captured.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[kernel]\nfile = 'a'\n", "two brackets"),
        ("kernel = 3\n", "two brackets"),
        ("kernel = [3]\n", "is no table"),
        ("[[kernel]]\nname = 'k'\nsets = [{}]\n", "needs file and name"),
        ("[[kernel]]\nfile = 'k.py'\nname = 'k'\n", "sets is a list of tables"),
        ("[[kernel]]\nfile = 'k.py'\nname = 'k'\nsets = {}\n", "sets is a list of tables"),
        ("[[kernel]]\nfile = 'gone.py'\nname = 'k'\nsets = [{}]\n", "no such file"),
        ("[[kernel]]\nfile = 'k.py'\nname = 'k'\nset = [{}]\n", "set"),
        ("[[kernels]]\n", "kernels"),
        ("[[kernel]\n", "is not TOML"),
        ("[[kernel]]\nfile='k.py'\nname='k'\nsets=[{}]\n" * 2, "twice"),
    ],
)
def test_a_values_file_of_another_form_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("")
    path = tmp_path / "values.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words) as raised:
        read_values(path)
    assert "\n" not in str(raised.value)


def test_names_of_any_kind_survive_a_template(tmp_path: Path) -> None:
    odd = tmp_path / 'a "b"\\c.py'
    odd.write_text("")
    needed = Parameter(name="größe", default=None, required=True)
    path = tmp_path / "values.toml"
    listing = Listing(name="k", style="factory", line=1, parameters=(needed,))
    path.write_text(template([(odd, listing)], tmp_path), encoding="utf-8")
    assert read_values(path).of(odd) == {"k": ({},)}


def test_a_template_says_what_it_does_not_go_with(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["plan", str(library), "--template", "--set", "rows=4"]) == 2
    assert "leave out --set" in capsys.readouterr().err
    watching = ("-d", "h100", "--watch", "--values", "kernels.toml")
    assert command(["plan", str(library / "first.py"), *watching]) == 2
    assert "--watch takes no --values" in capsys.readouterr().err
    assert command(["plan", str(library / "third.py"), "--template"]) == 2
    assert "no kernel here needs a value" in capsys.readouterr().err
