"""Real nvcc and ptxas, no GPU: what they say of generated code, and that the wheels suffice."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.opened import ask
from tilefit._assembler.nvcc import Assembly, assemble
from tilefit._assembler.toolkit import Toolkit, find_toolkit
from tilefit._errors import KernelError, ToolchainError

KERNELS = Path(__file__).parent / "kernels"
EMPTY = 'extern "C" __global__ void nothing() {}\n'
# 20000 floats of static shared memory, 80000 bytes: sm_80 takes 48 KiB
TOO_MUCH = """
extern "C" __global__ void k(float* out) {
  __shared__ float a[20000];
  a[threadIdx.x] = out[0]; __syncthreads(); out[1] = a[int(out[2])];
}
"""


@pytest.fixture
def only_wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Toolkit:
    """A toolkit on a machine whose PATH holds g++ and nothing else."""
    compiler = shutil.which("g++")
    assert compiler is not None
    (tmp_path / "g++").symlink_to(compiler)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    return find_toolkit(hide_system=True)


def build(
    path: Path, kernel: str, params: dict[str, Any], target: str, **options: Any
) -> tuple[tuple[Any, ...], Assembly]:
    """Lower a kernel in this process and assemble what came out."""
    from tilefit._frontends.tilelang.frontend import TileLangFrontend

    source = TileLangFrontend().load(path)
    kernels = source.read(ask(kernel, params, target, want_build=True))
    made = kernels[0].build
    assert made is not None
    folders = [Path(folder) for folder in made.include_dirs]
    assembly = assemble(made.source, target, folders, flags=made.flags, **options)
    return kernels, assembly


@pytest.mark.cuda
@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("target", "kinds", "static"),
    [
        ("sm_80", ("HMMA",), 0),
        # 3 full and 3 empty barriers of 8 bytes, rounded up to the dynamic array's 1024
        ("sm_90a", ("HGMMA",), 1024),
        ("sm_100a", ("HMMA",), 1024),
        ("sm_120a", ("HMMA",), 1024),
    ],
)
def test_the_wheels_alone_assemble_the_bundled_gemm(
    root: Path, only_wheels: Toolkit, target: str, kinds: tuple[str, ...], static: int
) -> None:
    assert only_wheels.origin == "wheels"
    path = root / "examples" / "gemm.py"
    _, assembly = build(path, "matmul", {"num_stages": 3}, target, toolkit=only_wheels)
    assert assembly.reason is None
    (use,) = assembly.functions
    assert (use.name, use.matrix_kinds, use.static_bytes) == ("gemm_kernel", kinds, static)
    assert use.matrix_instructions is not None
    assert use.matrix_instructions > 0
    # 128 x 128 fp32 of the accumulator over 128 threads are 128 registers; 255 is the most
    assert 128 < use.registers_per_thread <= 255
    assert (use.spill_store_bytes, use.spill_load_bytes) == (0, 0)
    if target == "sm_90a":
        # 65536 registers hold 240 x 256 of them once: one block, whatever shared memory allows
        assert use.registers_per_thread == 240


@pytest.mark.cuda
@pytest.mark.tilelang
def test_the_system_toolkit_and_the_wheels_agree(root: Path) -> None:
    system, wheels = find_toolkit(), find_toolkit(hide_system=True)
    if system.origin != "system" or system.version != wheels.version:
        return  # nothing to compare with on this machine
    path = root / "examples" / "gemm.py"
    answers = [build(path, "matmul", {}, "sm_90a", toolkit=kit)[1] for kit in (system, wheels)]
    assert [a.toolkit_origin for a in answers] == ["system", "wheels"]
    assert answers[0].functions == answers[1].functions != ()


@pytest.mark.cuda
@pytest.mark.tilelang
def test_fp8_on_sm_80_assembles_without_one_matrix_instruction(root: Path) -> None:
    path = root / "examples" / "gemm.py"
    _, assembly = build(path, "matmul", {"dtype": "float8_e4m3fn"}, "sm_80")
    assert assembly.reason is None
    assert [f.matrix_instructions for f in assembly.functions] == [0]


@pytest.mark.cuda
@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("kernel", "target", "static"),
    [
        # each item starts at a multiple of 16: 700 bytes, 52 at 704, 7 at 768
        ("three_items", "sm_80", [768 + 7]),
        # lowered in the order of use: 256, 36 at 256, 3 at 304
        ("small_used_last", "sm_80", [304 + 3]),
        ("flags_and_barrier", "sm_90a", [16 + 5]),
        # the dynamic array of one function rounds the static part of the other
        ("two_functions", "sm_90a", [0, 1024]),
    ],
)
def test_the_static_rule_gives_what_ptxas_gives(
    kernel: str, target: str, static: list[int]
) -> None:
    from tilefit._placement.place import place

    kernels, assembly = build(KERNELS / "statics.py", kernel, {}, target)
    assert [f.static_bytes for f in assembly.functions] == static
    assert [place(k)[0].static_bytes for k in kernels] == static


@pytest.mark.tilelang
def test_the_flags_are_those_that_tilelang_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang.cache.cuda_binary_cache import CUDABinaryCache
    from tilelang.contrib import nvcc
    from tilelang.cuda.backend import tilelang_callback_cuda_compile

    from tilefit._frontends.tilelang.build import include_dirs_of_tilelang, nvcc_flags
    from tilefit._frontends.tilelang.frontend import tvm_target

    passed: list[str] = []
    monkeypatch.setattr(CUDABinaryCache, "load", lambda *_: None)
    monkeypatch.setattr(CUDABinaryCache, "save", lambda *_: None)
    monkeypatch.setattr(
        nvcc, "compile_cuda", lambda *_, options, **__: passed.extend(options) or b""
    )
    configs = {
        "tl.device_compile_flags": ["-DA=1 -DB='x y'", "-maxrregcount=64"],
        "tl.enable_fast_math": True,
        "tl.ptxas_register_usage_level": 3,
    }
    with tvm_target("sm_90a") as target:
        tilelang_callback_cuda_compile(EMPTY, target, configs)
    folders = [f"-I{folder}" for folder in include_dirs_of_tilelang()]
    assert passed == ["-std=c++20", *folders, *nvcc_flags(configs)]
    assert nvcc_flags({}, ["-DA=1"]) == ("-DA=1",)
    assert nvcc_flags({"tl.enable_fast_math": False}) == ()


def test_a_compile_flag_with_an_open_quote_is_named() -> None:
    from tilefit._frontends.tilelang.build import nvcc_flags

    with pytest.raises(KernelError, match="-DA='x"):
        nvcc_flags({}, "-DA='x")


@pytest.mark.cuda
def test_what_cannot_be_assembled_is_an_outcome_with_a_reason() -> None:
    for source, target, reason in [
        (EMPTY, "sm_70", "has no sm_70"),
        (TOO_MUCH, "sm_80", "uses too much shared data (0x13880 bytes, 0xc000 max)"),
        ("#include <no_such.h>\n", "sm_80", "kernel.cu line 1: no_such.h: No such file"),
    ]:
        assembly = assemble(source, target, [])
        assert assembly.reason is not None
        assert assembly.functions == ()
        assert assembly.reason is not None
        assert reason in assembly.reason


@pytest.mark.cuda
def test_flags_and_include_folders_reach_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#if !(WANTED == 7)\n#error without the flag\n#endif\n")
    source = '#include "mine.h"\n' + EMPTY
    assert assemble(source, "sm_80", [tmp_path], flags=["-DWANTED=7"]).reason is None
    assert assemble(source, "sm_80", [tmp_path]).reason is not None


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def toolkit(nvcc: Path, nvdisasm: Path | None = None) -> Toolkit:
    return Toolkit(
        nvcc=nvcc, host_compiler=Path("g++"), nvdisasm=nvdisasm, origin="system", version="13.0"
    )


def test_a_compiler_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "child"
    nvcc = script(tmp_path / "nvcc", f"sleep 60 & echo $! > {note}; wait")
    start = time.monotonic()
    assembly = assemble(EMPTY, "sm_80", [], toolkit=toolkit(nvcc), timeout_seconds=1.0)
    assert time.monotonic() - start < 20
    assert assembly.reason == "nvcc did not finish within 1 s and was stopped"
    child = note.read_text().strip()
    state = subprocess.run(["ps", "-o", "state=", "-p", child], capture_output=True, text=True)
    assert state.stdout.strip() in ("", "Z")


def test_without_a_disassembler_the_count_is_unknown_and_said_so(tmp_path: Path) -> None:
    nvcc = script(
        tmp_path / "nvcc",
        "echo \"ptxas info    : Compiling entry function 'k' for 'sm_80'\"\n"
        'echo "ptxas info    : Used 8 registers, used 0 barriers"',
    )
    broken = script(tmp_path / "nvdisasm", "echo cannot read it; exit 1")
    for nvdisasm, words in [(None, "no nvdisasm here"), (broken, "cannot read it")]:
        assembly = assemble(EMPTY, "sm_80", [], toolkit=toolkit(nvcc, nvdisasm))
        assert [f.matrix_instructions for f in assembly.functions] == [None]
        assert words in assembly.notes[0]


def test_a_missing_host_compiler_or_toolkit_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"no g\+\+ on the PATH"):
        find_toolkit()
    script(tmp_path / "g++", "exit 0")
    monkeypatch.setattr("tilefit._assembler.toolkit._wheels", lambda: None)
    with pytest.raises(ToolchainError, match=r"pip install 'tilefit\[cuda\]'"):
        find_toolkit(hide_system=True)


def test_incomplete_wheels_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "g++", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    for need in ("bin/nvcc", "bin/ptxas", "include/cuda_runtime.h", "include/crt/host_config.h"):
        path = tmp_path / "cu13" / need
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr("tilefit._assembler.toolkit._wheels", lambda: tmp_path / "cu13")
    with pytest.raises(ToolchainError, match="lack nvidia-nvvm, nvidia-cuda-cccl:"):
        find_toolkit(hide_system=True)


def test_cuda_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, release in [("home/bin", "12.9"), ("path", "12.8")]:
        (tmp_path / name).mkdir(parents=True)
        script(tmp_path / name / "nvcc", f"echo release {release}, V1")
    script(tmp_path / "path" / "g++", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_toolkit().version == "12.9"
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "gone"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert find_toolkit().version == "12.8"
