"""Matrix instructions: which a kernel came to, whether its target has them, why no better ones."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilefit
from tests.lowering import source
from tests.opened import ask
from tests.values import kernel as bare
from tilefit._assembler.assemble import assembled
from tilefit._devices.matrix import has_matrix
from tilefit._kernel.kernel import Assembled, Kernel, MatrixUse
from tilefit._verdict.judge import Status
from tilefit._verdict.matrix import matrix_checks
from tilefit.cli import main as command

FILE = Path(__file__).parent / "kernels" / "matrix.py"


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("matrix_kernels", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def planned(kernel: Any, device: str, **params: Any) -> Any:
    (result,) = tilefit.plan(kernel, device, **params).results
    return result


def built(kernel: str, target: str, **params: Any) -> Kernel:
    """Lower a kernel and assemble it."""
    (one,) = assembled(source(FILE).read(ask(kernel, params, target, want_build=True)))
    return one


# ---- which they are ------------------------------------------------------------------------------


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("device", "path", "shape"),
    [
        ("t4", "mma", "m16n8k8"),
        ("a100", "mma", "m16n8k16"),
        ("h100", "wgmma", "m64n128k16"),
        ("rtx-5090", "mma", "m16n8k16"),
        ("mi300x", "mfma", "f32_16x16x16f16"),
        ("gfx1100", "wmma", "f32_16x16x16_f16_w32"),
    ],
)
def test_the_path_of_a_gemm(kernels: ModuleType, device: str, path: str, shape: str) -> None:
    # the shapes are those of the instruction sets: PTX ISA (mma, wgmma), CDNA 3 and RDNA 3 ISA
    result = planned(kernels.along_k, device)
    assert result.lowered.matrix == (MatrixUse(path=path, shape=shape, dtype="float16"),)
    assert not any("T.gemm" in note for note in result.lowered.notes)


@pytest.mark.tilelang
@pytest.mark.parametrize("flags", [(), ("--estimate",)])
def test_it_is_said_in_text_and_json(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["plan", f"{FILE}::along_k", "-d", "a100", *flags]
    assert command([*asked, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert command(asked) == 0
    text = capsys.readouterr().out
    if flags:  # the source alone does not say
        assert result["matrix"] is None
        assert "\nmatrix" not in text
    else:
        assert result["matrix"] == [{"path": "mma", "shape": "m16n8k16", "dtype": "float16"}]
        assert "\nmatrix  mma m16n8k16 float16\n" in text


# ---- whether they exist ----------------------------------------------------------------------


@pytest.mark.tilelang
def test_a_kernel_that_can_only_trap_is_no_fit(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--set", "dtype=float8_e4m3")
    assert command(["plan", f"{FILE}::along_k", "-d", "a100,rtx-4090", *given, "--json"]) == 1
    no, yes = json.loads(capsys.readouterr().out)["results"]
    assert (no["verdict"], yes["verdict"]) == ("cannot-build", "fits")
    assert "mma on float8_e4m3 (m16n8k32) needs sm_89 and later" in no["reason"]
    # two stages of (128 + 128) rows of 64 elements of a byte
    assert [m["verdict"] for m in no["memories"]] == ["fits"]
    assert no["memories"][0]["total_bytes"] == 2 * (128 + 128) * 64
    report = tilefit.plan(f"{FILE}::along_k", "a100", dtype="float8_e4m3")
    assert not report.fits


@pytest.mark.cuda
@pytest.mark.tilelang
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120a"])
@pytest.mark.parametrize(
    ("dtype", "acc"), [("bfloat16", "float32"), ("float8_e5m2", "float32"), ("int8", "int32")]
)
def test_the_table_is_what_the_assembler_makes(dtype: str, acc: str, target: str) -> None:
    kernel = built("along_k", target, dtype=dtype, acc=acc)
    made = kernel.assembled
    assert made is not None
    assert kernel.matrix is not None
    known = [has_matrix(target, use) for use in kernel.matrix]
    if not known:  # it multiplies element by element
        assert (made.matrix_instructions, made.traps) == (0, 0)
    elif known == [True]:
        assert made.matrix_instructions
        assert made.traps == 0
    else:
        assert known == [False]
        assert made.matrix_instructions == 0
        assert made.traps


LLVM = r"""
import sys
from triton._C.libtriton import llvm

name, arch, ret, a, c = sys.argv[1:]
llvm.init_targets()
call = f"{ret} @llvm.amdgcn.{name}({a} %x, {a} %y, {c} %z, i32 0, i32 0, i32 0)"
print(len(llvm.translate_to_asm(
    f"declare {ret} @llvm.amdgcn.{name}({a}, {a}, {c}, i32, i32, i32)\n"
    f"define amdgpu_kernel void @k(ptr addrspace(1) %p, {a} %x, {a} %y, {c} %z) {{\n"
    f"  %r = call {call}\n  store {ret} %r, ptr addrspace(1) %p\n  ret void\n}}\n",
    "amdgcn-amd-amdhsa", arch, "", [], False, False)))
"""


@pytest.mark.triton
@pytest.mark.parametrize(
    ("shape", "intrinsic", "operand", "accumulator"),
    [
        ("f32_16x16x16f16", "mfma.f32.16x16x16f16", "<4 x half>", "<4 x float>"),
        ("f32_16x16x16bf16_1k", "mfma.f32.16x16x16bf16.1k", "<4 x i16>", "<4 x float>"),
        ("f32_16x16x4f32", "mfma.f32.16x16x4f32", "float", "<4 x float>"),
        ("f64_16x16x4f64", "mfma.f64.16x16x4f64", "double", "<4 x double>"),
        ("f32_16x16x32_fp8_fp8", "mfma.f32.16x16x32.fp8.fp8", "i64", "<4 x float>"),
        ("i32_16x16x32_i8", "mfma.i32.16x16x32.i8", "i64", "<4 x i32>"),
    ],
)
@pytest.mark.parametrize("target", ["gfx908", "gfx90a", "gfx942", "gfx950"])
def test_the_table_is_what_llvm_selects(
    shape: str, intrinsic: str, operand: str, accumulator: str, target: str
) -> None:
    call = [sys.executable, "-c", LLVM, intrinsic, target, accumulator, operand, accumulator]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    selects = done.returncode == 0
    assert selects or "Cannot select" in done.stderr, done.stderr
    assert has_matrix(target, MatrixUse(path="mfma", shape=shape, dtype="")) is selects


@pytest.mark.parametrize(
    ("target", "use", "known"),
    [
        # the compute capabilities that PTX ISA, mma, names under "Target ISA notes"
        ("sm_75", MatrixUse(path="mma", shape="m16n8k8", dtype="float16"), True),
        ("sm_75", MatrixUse(path="mma", shape="m16n8k16", dtype="float16"), False),
        ("sm_75", MatrixUse(path="mma", shape="m8n8k16", dtype="int8"), True),
        ("sm_70", MatrixUse(path="mma", shape="m8n8k16", dtype="int8"), False),
        ("sm_75", MatrixUse(path="mma", shape="m16n8k8", dtype="bfloat16"), False),
        ("sm_80", MatrixUse(path="mma", shape="m8n8k4", dtype="float64"), True),
        ("sm_89", MatrixUse(path="mma", shape="m16n8k32", dtype="float8_e5m2"), True),
        ("sm_100a", MatrixUse(path="wgmma", shape="m64n64k16", dtype="float16"), False),
        ("sm_120a", MatrixUse(path="tcgen05", shape=None, dtype="float16"), False),
        # nobody told us
        ("sm_90a", MatrixUse(path="mma", shape="m16n8k64", dtype="float4_e2m1fn"), None),
        ("gfx950", MatrixUse(path="mfma", shape="f32_32x32x64_f8f6f4", dtype="float8_e4m3"), None),
    ],
)
def test_what_the_table_knows(target: str, use: MatrixUse, known: bool | None) -> None:
    assert has_matrix(target, use) is known


def made(kernel: Kernel, *, matrix_instructions: int, traps: int) -> Kernel:
    use = Assembled(
        registers_per_thread=64,
        spill_bytes=0,
        stack_bytes=0,
        static_bytes=0,
        matrix_instructions=matrix_instructions,
        traps=traps,
    )
    return replace(kernel, assembly=use)


def test_traps_count_where_a_matrix_instruction_should_be() -> None:
    use = MatrixUse(path="mma", shape="m16n8k64", dtype="float4_e2m1fn")  # not in the table
    kernel = replace(bare(), target="sm_90a", gemms=1, matrix=(use,))
    (check,) = matrix_checks(made(kernel, matrix_instructions=0, traps=96))
    assert check.status is Status.CANNOT_BUILD
    assert check.reason == "its mma was assembled to 96 traps and no matrix instruction"
    assert not list(matrix_checks(kernel))
    assert not list(matrix_checks(made(kernel, matrix_instructions=8, traps=1)))
    # an author's own assertion, beside multiplications one by one
    assert not list(matrix_checks(made(replace(kernel, matrix=()), matrix_instructions=0, traps=1)))


# ---- why no better ones ------------------------------------------------------------------------


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("kernel", "device", "params", "why"),
    [
        ("along_k", "b200", {}, "not tcgen05, which accumulates in tensor memory (T.alloc_tmem)"),
        ("across_k", "h100", {"bm": 32}, "not wgmma, which takes 64 rows at least, and its tile"),
        ("across_k", "h100", {"threads": 64}, "takes groups of 128 threads, and the block has 64"),
        ("across_k", "h100", {"dtype": "float8_e4m3"}, "takes float8_e4m3 along K only"),
        ("along_k", "h100", {"dtype": "float32", "bk": 32}, "does not have for float32 x float32"),
        ("without_wgmma", "h100", {}, "not wgmma, which the kernel's pass configs turn off"),
        ("along_k", "t4", {"dtype": "bfloat16"}, "no matrix instruction: TileLang has none for"),
    ],
)
def test_why_a_gemm_takes_a_slower_path(
    kernels: ModuleType, kernel: str, device: str, params: dict[str, Any], why: str
) -> None:
    result = planned(getattr(kernels, kernel), device, **params)
    assert result.status == "fits"
    assert [why in note for note in result.lowered.notes].count(True) == 1
    assert {use.path for use in result.lowered.matrix} <= {"mma"}
