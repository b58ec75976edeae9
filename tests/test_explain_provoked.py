"""Messages provoked from the toolchains themselves, not copied: what they print is understood."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.opened import ask
from tilefit._explain import Finding, explain
from tilefit._kernel.memory import Memory

KERNELS = Path(__file__).parent / "kernels"
MATRIX = 16  # rows and columns of the cube's smallest tile


def one(text: str) -> Finding:
    findings = explain(text).findings
    assert len({finding.form for finding in findings}) == 1, text
    return findings[0]


# --------------------------------------------------------------------------------------- Triton
@pytest.mark.triton
@pytest.mark.parametrize(
    ("required", "limit", "what", "memory", "unit"),
    [
        (3 * 128 * 128 * 2, 101376, "shared memory", Memory.SHARED, "bytes"),
        (640, 512, "tensor memory", Memory.TENSOR, "columns"),
        (64 * 32, 1024, "threads", None, "threads"),
    ],
)
def test_tritons_exception(
    required: int, limit: int, what: str, memory: Memory | None, unit: str
) -> None:
    """`OutOfResources` of the installed release, as it prints itself and in a traceback."""
    from triton.runtime.errors import OutOfResources

    error = OutOfResources(required, limit, what)
    for text in (str(error), f"{type(error).__module__}.{type(error).__name__}: {error}"):
        found = one(text)
        assert (found.form, found.memory, found.unit) == ("triton", memory, unit)
        assert (found.required, found.limit) == (required, limit)


# ---------------------------------------------------------------------------------------- ptxas
@pytest.mark.cuda
@pytest.mark.parametrize(
    ("target", "limit", "device"),
    [("sm_80", 48 * 1024, "a100"), ("sm_90a", 227 * 1024, "h100"), ("sm_120a", 99 * 1024, None)],
)
def test_ptxas_refuses_static_shared_memory(
    target: str, limit: int, device: str | None, tmp_path: Path
) -> None:
    """60,000 floats are too many everywhere; below sm_90 the limit is the 48 KiB of static."""
    from tilefit._assembler.toolkit import find_toolkit

    source = tmp_path / "greedy.cu"
    source.write_text(
        'extern "C" __global__ void greedy(float* out) {\n'
        "  __shared__ float a[60000];\n"
        "  a[threadIdx.x] = out[0]; __syncthreads(); out[1] = a[int(out[2])];\n"
        "}\n",
        encoding="utf-8",
    )
    toolkit = find_toolkit()
    done = subprocess.run(
        [
            *(str(toolkit.nvcc), "-ccbin", str(toolkit.host_compiler), f"-arch={target}"),
            *("-cubin", "-o", str(tmp_path / "greedy.cubin"), str(source)),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    found = one(done.stdout + done.stderr)
    assert (found.form, found.memory, found.name) == ("ptxas-shared", Memory.SHARED, "greedy")
    assert found.required_bytes == 60000 * 4
    assert found.limit_bytes == limit
    assert device is None or device in found.devices


# ------------------------------------------------------------------------------------- TileLang
def lower_for_ascend(kernel: str, *sizes: int) -> None:
    """Lower a kernel of ``kernels/refused_ascend.py``."""
    import tilelang

    path = KERNELS / "refused_ascend.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tilelang.tvm.target.Target({"kind": "ascend"}) as target:
        tilelang.lower(getattr(module, kernel)(*sizes), target=target)


def refusal(kernel: str, *sizes: int) -> str:
    """Return what TileLang says while it refuses to lower such a kernel."""
    try:
        lower_for_ascend(kernel, *sizes)
    except Exception as error:
        return str(error)
    pytest.fail(f"{kernel}{sizes} was lowered")


@pytest.mark.tilelang
def test_tilelang_refuses_too_many_columns() -> None:
    """Two accumulators of 256 columns fill the 512; the third asks for 32 more."""
    from tilefit._errors import RefusedError
    from tilefit._frontends.tilelang.frontend import TileLangFrontend

    source = TileLangFrontend().load(KERNELS / "exact_miss.py")
    with pytest.raises(RefusedError) as caught:
        source.read(ask("tmem_columns", {}, "sm_100a"))
    found = one(str(caught.value))
    assert (found.form, found.unit) == ("tilelang-tmem", "columns")
    assert (found.required, found.limit) == (256 + 256 + 32, 512)
    assert "b200" in found.devices


@pytest.mark.tilelang
def test_tilelangs_ascend_dialect_refuses_too_much_ub() -> None:
    """Two tiles of 40,000 floats in a loop with SIMT, which leaves 216 KiB of UB."""
    found = one(refusal("two_vectors", 40_000))
    assert (found.form, found.memory) == ("tilelang-ascend", Memory.UB)
    assert found.required_bytes == 2 * 40_000 * 4
    assert found.limit_bytes == 216 * 1024
    assert "ascend-950" in found.devices
    assert found.whose[0].kind == "condition"


@pytest.mark.tilelang
def test_tilelangs_ascend_dialect_refuses_too_much_l1() -> None:
    """Tiles of 128 x 2048 fp16 of A and of B are 1 MiB; L1 has half of that."""
    found = one(refusal("product", 128, 128, 2048))
    assert (found.form, found.memory) == ("tilelang-ascend", Memory.L1)
    assert found.required_bytes == 2 * 128 * 2048 * 2
    assert found.limit_bytes == 512 * 1024


@pytest.mark.tilelang
def test_the_rule_for_sub_tiles_is_the_compilers() -> None:
    """M of 1,024 is the last that two slots of M x 32 B leave room for in 64 KiB."""
    lower_for_ascend("product", 1024, MATRIX, 64)
    found = one(refusal("product", 1024 + MATRIX, MATRIX, 64))
    assert (found.form, found.memory) == ("tilelang-ascend-sub-k", Memory.L0A)
    assert found.limit_bytes == 64 * 1024
    assert found.sums[0].value == 2 * (1024 + MATRIX) * 32 > 64 * 1024 == 2 * 1024 * 32


@pytest.mark.tilelang
def test_tilelangs_ascend_dialect_refuses_an_odd_k() -> None:
    found = one(refusal("product", 128, 128, 72))
    assert found.form == "tilelang-ascend-tile-k"


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("name", "fill"),
    [
        ("jit/adapter/wrapper.py", lambda t: t.replace("%d", "262144").replace("%s", "invalid", 1)),
        ("3rdparty/tvm/src/runtime/cuda/cuda_module.cc", lambda t: f"{t} 262144"),
    ],
)
def test_the_words_that_tilelang_ships(name: str, fill: Callable[[str], str]) -> None:
    """A launch needs a GPU: the format is read from the installed package instead."""
    import tilelang

    text = (Path(tilelang.__file__).parent / name).read_text(encoding="utf-8")
    formats = re.findall(r'"(Failed to set the allowed dynamic shared memory size to [^"]*)"', text)
    assert formats
    for words in formats:
        found = one(fill(words))
        assert (found.form, found.required_bytes) == ("tilelang-cuda", 262144)
