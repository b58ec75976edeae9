"""`tilefit plan` on real kernels, lowered here by TileLang for cards that are not here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tilefit
from tests.stand_in import StandIn, use
from tilefit._frontends.tilelang.frontend import TileLangFrontend
from tilefit._kernel.kernel import Listing
from tilefit.cli import main

# TileLang warns about what these kernels are written to provoke
pytestmark = [pytest.mark.tilelang, pytest.mark.filterwarnings("ignore")]

KIB = 1024
# one stage of the bundled GEMM: a 128x64 and a 64x128 tile of fp16
STAGE_BYTES = (128 * 64 + 64 * 128) * 2
H100_BYTES = 227 * KIB
A100_BYTES = 163 * KIB


class InProcess(StandIn):
    """A session without a child process: one import of the toolchain for all these tests.

    The child process itself is tested in test_hostile_files.py and test_readme.py.
    """

    def load(self, _: object = ()) -> tuple[Listing, ...]:
        frontend = TileLangFrontend()
        self.toolchain, self.version = frontend.toolchain, frontend.version()
        self.source = frontend.load(self.path)
        self.read = self.source.read
        return self.source.kernels()


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, InProcess)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))


def plan_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["plan", *arguments, "--json"])
    out = capsys.readouterr().out
    # in this process TileLang's own warnings land on standard output before the answer
    return code, json.loads(out[out.index("{\n") :])


def one(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code, body = plan_json(capsys, *arguments)
    assert len(body["results"]) == 1
    return code, body["results"][0]


@pytest.fixture
def gemm(root: Path) -> str:
    return f"{root / 'examples' / 'gemm.py'}::matmul"


@pytest.fixture
def limits_file(root: Path) -> str:
    return str(root / "tests" / "kernels" / "launch_limits.py")


@pytest.fixture
def styles(root: Path) -> str:
    return str(root / "tests" / "kernels" / "styles.py")


def test_the_bundled_gemm_on_h100_as_the_issue_states_it(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"M": 4096, "N": 4096, "K": 4096, "block_M": 128, "block_N": 128, "block_K": 64}
    settings = [f"--set={k}={v}" for k, v in {**sizes, "num_stages": 3}.items()]
    code, result = one(capsys, gemm, "-d", "h100", *settings)
    assert code == 0
    assert result["verdict"] == "fits"
    assert result["target"] == "sm_90a"
    assert (result["threads_declared"], result["threads"]) == (128, 256)
    shared = result["memories"][0]
    assert shared["dynamic_bytes"] == 3 * STAGE_BYTES
    # 3 full and 3 empty mbarriers of 8 bytes, rounded up to the dynamic array's 1,024
    assert shared["static_raw_bytes"] == 2 * 3 * 8
    assert shared["static_bytes"] == 1024
    assert shared["total_bytes"] == 3 * STAGE_BYTES + 1024
    assert shared["limit_bytes"] == H100_BYTES
    assert shared["margin_bytes"] == H100_BYTES - 3 * STAGE_BYTES - 1024
    assert shared["evidence"] == "modelled"
    # 7 stages are 229,376 + 1,024 = 230,400 of 232,448; 8 are 263,168
    assert result["max_stages"] == 7
    assert result["max_stages_bytes"] == 7 * STAGE_BYTES + 1024
    assert result["next_stage_bytes"] == 8 * STAGE_BYTES + 1024
    assert result["params"]["num_stages"] == 3
    assert result["params"]["dtype"] == "float16"


def test_the_same_gemm_on_a100_has_no_barriers_and_no_extra_threads(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, gemm, "-d", "a100")
    shared = result["memories"][0]
    assert code == 0
    assert result["threads"] == result["threads_declared"] == 128
    assert (shared["dynamic_bytes"], shared["static_bytes"]) == (3 * STAGE_BYTES, 0)
    assert shared["limit_bytes"] == A100_BYTES
    assert shared["evidence"] == "compiled"
    assert result["max_stages"] == A100_BYTES // STAGE_BYTES == 5


def test_every_buffer_of_the_gemm_is_listed_with_its_copies(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, result = one(capsys, gemm, "-d", "h100")
    buffers = {b["name"]: b for b in result["buffers"]}
    a, b, c = buffers["A_s"], buffers["B_s"], buffers["C_l"]
    assert (a["shape"], a["dtype"], a["copies"]) == ([128, 64], "float16", 3)
    assert a["bytes"] == 3 * 128 * 64 * 2
    assert b["bytes"] == 3 * 64 * 128 * 2
    assert sorted((a["offset"], b["offset"])) == [0, 3 * 128 * 64 * 2]
    assert (c["memory"], c["scope"], c["bytes"]) == (
        "registers",
        "local.fragment",
        128 * 128 * 4,
    )
    # the consumer warp group has 128 threads: 128 x 128 fp32 over them
    assert c["bytes_per_thread"] == 128 * 128 * 4 // 128
    assert buffers["mbarrier"]["origin"] == "compiler"
    assert buffers["mbarrier"]["static"] is True
    # the lines of the alloc calls in the bundled file
    text = Path(result["file"]).read_text().splitlines()
    assert "A_s = T.alloc_shared" in text[a["line"] - 1]


def test_three_devices_give_a_row_each_and_exit_0(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, body = plan_json(capsys, gemm, "-d", "h100,a100,rtx-4090")
    assert code == 0
    rows = [(r["device"], r["target"], r["verdict"], r["max_stages"]) for r in body["results"]]
    # rtx-4090: 99 KiB hold 3 stages of 32 KiB
    assert rows == [
        ("h100", "sm_90a", "fits", 7),
        ("a100", "sm_80", "fits", 5),
        ("rtx-4090", "sm_89", "fits", 99 * KIB // STAGE_BYTES),
    ]
    assert body["evidence"] == "modelled"


def test_one_stage_too_many_does_not_fit_and_names_the_edit(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, gemm, "-d", "rtx-4090", "--set", "num_stages=4")
    assert code == 1
    assert result["verdict"] == "does-not-fit"
    assert result["memories"][0]["margin_bytes"] == 99 * KIB - 4 * STAGE_BYTES
    assert result["suggestions"][0]["set"] == {"num_stages": 3}
    assert result["suggestions"][0]["total_bytes"] == 3 * STAGE_BYTES


def test_the_text_ends_with_a_command_that_fits(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", gemm, "-d", "rtx-4090", "--set", "num_stages=4"]) == 1
    text = capsys.readouterr().out
    assert "DOES NOT FIT" in text
    command = text.strip().splitlines()[-1].split()
    assert command[:2] == ["tilefit", "plan"]
    assert main(command[1:]) == 0


def test_h200_and_the_bare_architecture_lower_for_the_same_target(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, body = plan_json(capsys, gemm, "-d", "h200,sm_90")
    assert {r["target"] for r in body["results"]} == {"sm_90a"}


def test_1024_threads_become_1152_and_cannot_be_launched(
    limits_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, f"{limits_file}::many_threads", "-d", "h100")
    assert (code, result["verdict"]) == (1, "does-not-fit")
    assert (result["threads_declared"], result["threads"]) == (1024, 1024 + 128)
    threads = next(c for c in result["limits"] if c["name"] == "threads")
    assert (threads["limit"], threads["verdict"]) == (1024, "does-not-fit")
    assert result["max_stages"] is None
    assert "threads" in result["max_stages_reason"]


def test_the_same_1024_threads_are_fine_without_warp_specialisation(
    limits_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, f"{limits_file}::many_threads", "-d", "a100")
    assert (code, result["threads"]) == (0, 1024)


@pytest.mark.parametrize(
    ("device", "size", "verdict"),
    [
        ("h100", 32, "does-not-fit"),  # 16 is the non-portable maximum
        ("h100", 16, "fits"),
        ("h100", 8, "fits"),  # the portable maximum
        ("a100", 2, "does-not-fit"),  # no clusters below 9.0
        ("h100", 3, "does-not-fit"),  # 32 blocks are no multiple of 3
    ],
)
def test_cluster_sizes(
    limits_file: str, capsys: pytest.CaptureFixture[str], device: str, size: int, verdict: str
) -> None:
    _, result = one(capsys, f"{limits_file}::cluster", "-d", device, "--set", f"size={size}")
    assert result["verdict"] == verdict


@pytest.mark.parametrize(
    ("rows", "verdict"), [(65535, "fits"), (65536, "does-not-fit"), (70000, "does-not-fit")]
)
def test_grid_y_ends_at_65535(
    limits_file: str, capsys: pytest.CaptureFixture[str], rows: int, verdict: str
) -> None:
    _, result = one(capsys, f"{limits_file}::tall_grid", "-d", "h100", "--set", f"blocks_y={rows}")
    assert result["verdict"] == verdict


def test_a_loop_without_iterations_is_unknown_and_exits_2(
    limits_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, f"{limits_file}::no_iterations", "-d", "h100")
    assert (code, result["verdict"]) == (2, "unknown")
    assert "A_s" in result["reason"]
    assert "--set" in result["reason"]
    assert result["max_stages"] is None


def test_the_same_loop_with_iterations_fits(
    limits_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, f"{limits_file}::no_iterations", "-d", "h100", "--set", "block_K=64")
    assert (code, result["verdict"]) == (0, "fits")


def test_an_open_size_is_a_condition_until_it_is_set(
    limits_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = f"{limits_file}::dynamic_rows"
    code, result = one(capsys, kernel, "-d", "h100")
    assert (code, result["verdict"]) == (0, "fits")
    # ceil(m / 128) blocks in grid.y, of which CUDA allows 65,535
    assert f"m <= {128 * 65535:,}" in result["reason"]
    assert result["memories"][0]["verdict"] == "fits"
    code, result = one(capsys, kernel, "-d", "h100", "--set", "m=4096")
    assert (code, result["verdict"]) == (0, "fits")
    assert result["grid"] == [4096 // 128, 4096 // 128, 1]
    code, result = one(capsys, kernel, "-d", "h100", "--set", f"m={128 * 70000}")
    assert (code, result["verdict"]) == (1, "does-not-fit")


def test_a_stage_parameter_without_a_pipelined_loop_has_no_largest_count(
    limits_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = one(capsys, f"{limits_file}::no_pipeline", "-d", "h100")
    assert (code, result["max_stages"]) == (0, None)
    assert "num_stages" in result["max_stages_reason"]


def test_num_stages_0_pipelines_nothing(gemm: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = one(capsys, gemm, "-d", "h100", "--set", "num_stages=0")
    assert (code, result["max_stages"]) == (0, None)
    assert result["memories"][0]["dynamic_bytes"] == STAGE_BYTES


def test_a_kernel_that_the_compiler_refuses_is_cannot_lower(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # an MMA tile has rows in multiples of 16
    code, result = one(capsys, gemm, "-d", "h100", "--set", "block_M=100")
    assert (code, result["verdict"]) == (1, "cannot-lower")
    assert "16" in result["reason"]
    assert "\n" not in result["reason"]


def test_an_eager_kernel_takes_its_const_sizes_by_set(
    styles: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = [f"--set={name}=1024" for name in "MNK"]
    code, result = one(capsys, f"{styles}::eager", "-d", "h100", *sizes)
    assert code == 0
    assert result["memories"][0]["total_bytes"] == 3 * STAGE_BYTES + 1024
    assert result["max_stages"] == 7


@pytest.mark.parametrize(
    ("kernel", "settings", "total"),
    [
        ("ready", [], 128 * 64 * 2),
        ("plain", ["--set=rows=32"], 32 * 64 * 2),
        ("plain", ["--set=rows=32", "--set=dtype=fp32"], 32 * 64 * 4),
        ("dtype_object", ["--set=dtype=fp32"], 128 * 64 * 4),
        ("dtype_object", ["--set=dtype=T.float16"], 128 * 64 * 2),
    ],
)
def test_every_style_of_writing_a_kernel(
    styles: str, capsys: pytest.CaptureFixture[str], kernel: str, settings: list[str], total: int
) -> None:
    code, result = one(capsys, f"{styles}::{kernel}", "-d", "a100", *settings)
    assert code == 0
    assert result["memories"][0]["total_bytes"] == total


def test_list_shows_kernels_parameters_and_defaults(
    styles: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", styles, "--list", "--json"]) == 0
    out = capsys.readouterr().out
    found = {k["name"]: k for k in json.loads(out[out.index("{\n") :])["kernels"]}
    assert list(found) == ["eager", "ready", "plain", "dtype_object"]
    assert [p["name"] for p in found["eager"]["parameters"]] == [
        *("block_M", "block_N", "block_K", "num_stages"),
        *("M", "N", "K"),
    ]
    plain = {p["name"]: (p["required"], p["default"]) for p in found["plain"]["parameters"]}
    assert plain == {
        "rows": (True, None),
        "columns": (False, 64),
        "dtype": (False, "float16"),
    }


def test_a_tmem_accumulator_takes_columns_and_12x_has_none(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(root / "examples" / "alloc_scopes" / "tmem.py")
    _, result = one(capsys, file, "-d", "b200")
    tensor = next(m for m in result["memories"] if m["memory"] == "tensor")
    # a 128x128 fp32 accumulator: 128 lanes x 32 bit a column
    assert tensor["columns"] == 128
    assert tensor["limit_bytes"] == 512 * 128 * 4
    code, result = one(capsys, file, "-d", "rtx-5090")
    assert (code, result["verdict"]) == (1, "cannot-lower")
    assert result["reason"].startswith("it uses tensor memory (tcgen05), which ")


def test_a_kernel_object_of_this_process_gives_the_same_answer(root: Path) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("bundled_gemm", root / "examples" / "gemm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    of_factory = tilefit.plan(module.matmul, "h100", num_stages=2).results[0]
    of_prim_func = tilefit.plan(module.matmul.get_tir(num_stages=2), "h100").results[0]
    for result in (of_factory, of_prim_func):
        assert result.uses[0].total_bytes == 2 * STAGE_BYTES + 1024
    assert of_factory.stages.largest == 7


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["{gemm}x"], "matmul"),
        (["{gemm}", "--set", "num_stage=3"], "num_stages"),
        (["{styles}::plain"], "--set rows=VALUE"),
        (["{gemm}", "--set", "block_K=0"], "gemm.py"),
    ],
)
def test_wrong_names_and_values_are_one_line_and_exit_2(
    gemm: str,
    styles: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    named: str,
) -> None:
    filled = [a.format(gemm=gemm, styles=styles) for a in arguments]
    assert main(["plan", *filled, "-d", "h100"]) == 2
    # (what TileLang logs in this process goes to standard output: a child's is never shown)
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert named in errors


def test_far_too_many_stages_end_at_the_count_that_fits(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No edit of one or two stages helps: 99 KiB hold 3 stages of 32 KiB."""
    assert main(["plan", gemm, "-d", "rtx-4090", "--set", "num_stages=12"]) == 1
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last.endswith("--set num_stages=3")
