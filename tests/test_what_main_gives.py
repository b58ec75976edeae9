"""FILE, FILE::KERNEL and a kernel object agree: on what is missing, on values, and on failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilefit
from tests.lowering import source
from tilefit._kernel.kernel import Listing, Parameter
from tilefit._kernel.naming import blamed
from tilefit._planning.plan import Options, kernels_in
from tilefit._planning.report import Report
from tilefit._verdict.judge import Status

pytestmark = pytest.mark.tilelang

# one tile of rows x 64 float16
COPY = """
import tilelang
import tilelang.language as T
{imports}

@tilelang.jit
def copy({parameters}):
    @T.prim_func
    def kernel(A: T.Tensor((rows, 64), "float16"), B: T.Tensor((rows, 64), "float16")):
        with T.Kernel({blocks}, threads=128):
            tile = T.alloc_shared((rows, 64), "float16")
            T.copy(A, tile)
            T.copy(tile, B)
    return kernel

if __name__ == "__main__":
    {main}
"""
ROW_BYTES = 64 * 2
NO_LAUNCH = "f launches no kernel: it has no T.Kernel"


def write(
    folder: Path,
    parameters: str = "rows=32",
    imports: str = "",
    main: str = "copy()",
    blocks: str = "1",
) -> str:
    path = folder / "copies.py"
    text = COPY.format(parameters=parameters, imports=imports, main=main, blocks=blocks)
    path.write_text(text)
    return str(path)


def totals(report: Report, device: str) -> dict[str, int | None]:
    """Return for each kernel the bytes of the one tile that it has."""
    found = {}
    for result in report.results:
        if result.device == device and result.lowered is not None:
            (tile,) = [b for b in result.lowered.buffers if b.name == "tile"]
            found[result.kernel] = tile.bytes
    return found


# ---- nothing is launched -----------------------------------------------------------------


@pytest.mark.parametrize("body", ["pass", "x = T.alloc_shared((64,), 'float16')"])
def test_a_kernel_that_launches_nothing_fails(tmp_path: Path, body: str) -> None:
    path = tmp_path / "nothing.py"
    path.write_text(
        "import tilelang\nimport tilelang.language as T\n"
        f"@tilelang.jit\ndef f():\n    @T.prim_func\n    def main():\n        {body}\n"
        "    return main\n"
    )
    with pytest.raises(tilefit.KernelError, match=NO_LAUNCH):
        tilefit.plan(f"{path}::f", "h100")
    report = tilefit.plan(str(path), "h100")
    assert report.results == ()
    assert [one.reason for seen in report.files for one in seen.failures] == [NO_LAUNCH]
    assert report.exit_code == 2


def test_a_prim_func_of_this_process_that_launches_nothing_fails(tmp_path: Path) -> None:
    path = tmp_path / "empty_kernel.py"
    path.write_text("import tilelang.language as T\n@T.prim_func\ndef f():\n    pass\n")
    (kernel,) = source(path)._found.values()
    with pytest.raises(tilefit.KernelError, match=NO_LAUNCH):
        tilefit.plan(kernel, "h100")


# ---- what is not there -------------------------------------------------------------------


def test_a_named_kernel_of_a_file_whose_imports_are_missing_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, imports="import that_nobody_installs")
    (listed,), _ = kernels_in(path)
    assert listed.name == "copy"
    (result,) = tilefit.plan(f"{path}::copy", "h100").results
    assert result.lowered is not None
    assert result.lowered.staged.dynamic_bytes == 32 * ROW_BYTES
    assert "not installed, stood in for: that_nobody_installs" in result.lowered.notes
    named = totals(tilefit.plan(f"{path}::copy", "h100"), "h100")
    assert named == totals(tilefit.plan(path, "h100"), "h100")


def test_an_import_that_a_factory_misses_is_stood_in_for_too(tmp_path: Path) -> None:
    path = Path(write(tmp_path))
    text = path.read_text().replace("    @T.prim_func", "    import that_too\n    @T.prim_func")
    path.write_text(text)
    (result,) = tilefit.plan(f"{path}::copy", "h100").results
    assert result.lowered is not None
    assert "not installed, stood in for: that_too" in result.lowered.notes


def test_code_that_asks_for_a_device_is_told_of_each_that_is_planned_for(tmp_path: Path) -> None:
    ask = "import torch\nMAJOR, MINOR = torch.cuda.get_device_capability()"
    path = write(tmp_path, "rows=16 * MAJOR", imports=ask)
    report = tilefit.plan(f"{path}::copy", ["h100", "a100", "h200"])
    rows = {one.device: one.lowered.staged.dynamic_bytes for one in report.results if one.lowered}
    wide, narrow = 16 * 9 * ROW_BYTES, 16 * 8 * ROW_BYTES
    assert rows == {"h100": wide, "a100": narrow, "h200": wide}


def test_a_value_of_what_is_missing_is_no_size(tmp_path: Path) -> None:
    missing = "from that_nobody_installs import ROWS"
    path = write(tmp_path, "rows=ROWS", imports=missing)
    with pytest.raises(tilefit.KernelError) as caught:
        tilefit.plan(f"{path}::copy", "h100")
    assert "No module named 'that_nobody_installs'" in str(caught.value)
    assert "rows comes from a package that is not installed here" in str(caught.value)
    # with a value for it, nothing is missed
    (result,) = tilefit.plan(f"{path}::copy", "h100", rows=16).results
    assert result.lowered is not None
    assert result.lowered.staged.dynamic_bytes == 16 * ROW_BYTES


def test_a_file_that_fails_for_another_reason_says_so_once(tmp_path: Path) -> None:
    path = write(tmp_path, imports="raise ValueError('of its own')")
    with pytest.raises(tilefit.KernelError, match=r"copies.py:4 raised ValueError: of its own"):
        tilefit.plan(f"{path}::copy", "h100")


# ---- values of main ----------------------------------------------------------------------


@pytest.mark.parametrize("devices", [("h100", "ascend-910b1"), ("ascend-910b1", "h100", "a100")])
def test_an_estimate_beside_a_toolchain_takes_the_values_of_main(
    tmp_path: Path, devices: tuple[str, ...]
) -> None:
    path = write(tmp_path, "rows", main="copy(16); copy(48)")
    report = tilefit.plan(path, devices)
    for device in devices:
        assert totals(report, device) == {"copy": 16 * ROW_BYTES, "copy#2": 48 * ROW_BYTES}
    (seen,) = report.files
    assert seen.failures == ()
    assert seen.planned == 2 * len(devices)


def test_a_value_that_is_set_goes_before_that_of_main(tmp_path: Path) -> None:
    path = write(tmp_path, "rows", main="copy(16)")
    report = tilefit.plan(path, ["h100", "ascend-910b1"], rows=64)
    assert totals(report, "h100") == totals(report, "ascend-910b1") == {"copy": 64 * ROW_BYTES}


def test_without_a_toolchain_device_nothing_is_executed(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    path = write(tmp_path, "rows", imports=f"open({str(trace)!r}, 'w')", main="copy(16)")
    report = tilefit.plan(path, "ascend-910b1")
    ((failure,),) = [seen.failures for seen in report.files]
    assert failure.reason.startswith("needs a value for rows")
    assert not trace.exists()


# ---- values that are wrong ---------------------------------------------------------------


def test_a_word_for_a_whole_number_is_refused_before_it_is_built(tmp_path: Path) -> None:
    path = write(tmp_path)
    said = r"^rows='abc' is no whole number \(default 32\)$"
    with pytest.raises(tilefit.InputError, match=said):
        tilefit.plan(f"{path}::copy", "h100", rows="abc")
    with pytest.raises(tilefit.InputError, match=said):
        tilefit.plan(f"{path}::copy", "h100", rows="abc", options=Options(estimate=True))


def test_an_error_of_the_compiler_names_the_values_that_are_not_the_authors(tmp_path: Path) -> None:
    path = write(tmp_path, "rows, parts=4, threads=128", blocks="rows // parts", main="copy(64)")
    with pytest.raises(tilefit.KernelError, match=r"^with parts=0: copies\.py:\d+ raised "):
        tilefit.plan(f"{path}::copy", "h100", rows=64, parts=0, threads=128)
    # in a file as a whole, too, where the reason is not that a value is missing
    report = tilefit.plan(path, "h100", parts=0)
    ((failure,),) = [seen.failures for seen in report.files]
    assert failure.reason.startswith("with parts=0: copies.py:")


def test_a_refusal_names_them_and_one_without_values_names_none(root: Path, tmp_path: Path) -> None:
    gemm = root / "examples" / "gemm.py"
    (result,) = tilefit.plan(f"{gemm}::matmul", "h100", block_M=7).results
    assert result.status is Status.CANNOT_LOWER
    assert str(result.reason).startswith("with block_M=7: ")
    text, count = re.subn(r"\bblock_M=\d+,", "block_M=7,", gemm.read_text())
    assert count == 1
    (tmp_path / "gemm.py").write_text(text)
    (same,) = tilefit.plan(f"{tmp_path / 'gemm.py'}::matmul", "h100").results
    assert f"with block_M=7: {same.reason}" == result.reason


def test_a_size_of_a_kernel_without_defaults_is_not_to_blame() -> None:
    listing = Listing(
        name="k",
        style="factory",
        line=1,
        parameters=(
            Parameter(name="M", default=None, required=True),
            Parameter(name="block", default=128, required=False),
        ),
    )
    assert blamed(listing, {"M": 1024, "block": 128}) == ""
    assert blamed(listing, {"M": 0, "block": 64}) == "with M=0, block=64: "
