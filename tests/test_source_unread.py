"""Why an estimate does not know something, in words that are true of the file; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.opened import ask
from tests.test_source_ascend import OURS, adapter, totals
from tests.test_source_frontend import HEAD, load, read
from tilefit._devices.names import device
from tilefit._errors import RefusedError
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Evidence, Memory
from tilefit._placement.place import place
from tilefit._planning.residency import rounds
from tilefit._verdict.judge import Status, Verdict, judge
from tilefit.cli import main

B1 = device("ascend-910b1")  # 24 AIC and 48 AIV
OLDER = "ascend-910b"


def judged(kernel: Kernel, chip: str = "h100") -> Verdict:
    return judge(kernel, place(kernel), device(chip))


# ---- the reason is the true one --------------------------------------------------------------


@pytest.mark.parametrize("chip", ["h100", "ascend-950", "ascend-910b1"])
def test_a_function_without_a_launch_says_so(tmp_path: Path, chip: str) -> None:
    source = load(tmp_path, "@tilelang.jit\ndef nothing(): pass\n")
    target = {"h100": "sm_90a", "ascend-950": "ascend"}.get(chip, OLDER)
    (kernel,) = source.read(ask("nothing", {}, target))
    found = judged(kernel, chip)
    assert found.status is Status.UNKNOWN
    assert found.reason is not None
    assert "no T.Kernel block in nothing" in found.reason
    reasons = [c.reason for c in (*found.memories, *found.limits) if c.reason]
    assert not [line for line in reasons if "--set" in line]
    counted = rounds(kernel, device(chip))
    assert counted is None or counted.reason == "the grid is not known"


def test_a_size_that_is_not_set_is_named(tmp_path: Path) -> None:
    text = """
    def kernel(rows, cols):
        @T.prim_func
        def main(A: T.Tensor((1024, 1024), "float16")):
            with T.Kernel(8, threads=128):
                x = T.alloc_shared((rows, cols), "float16")
                y = T.alloc_shared((8, rows), "float16")
        return main
    """
    source = load(tmp_path, text)
    (kernel,) = source.read(ask("kernel", {}, "sm_90a"))
    needed = "rows, cols are not set: add --set rows=VALUE --set cols=VALUE"
    assert judged(kernel).reason == f"shared bytes are not known: x: {needed}"
    (kernel,) = source.read(ask("kernel", {"cols": 8}, "sm_90a"))
    needed = "rows is not set: add --set rows=VALUE"
    assert judged(kernel).reason == f"shared bytes are not known: x: {needed}"
    (kernel,) = source.read(ask("kernel", {"cols": 8, "rows": 16}, "sm_90a"))
    assert judged(kernel).status is Status.FITS


def test_a_number_of_stages_that_is_not_set_is_named(tmp_path: Path) -> None:
    text = """
    def kernel(depth):
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16")):
            with T.Kernel(8):
                x = T.alloc_l1((64, 64), "float16")
                for k in T.Pipelined(4, num_stages=depth):
                    T.copy(A[k, 0], x)
        return main
    """
    (kernel,) = load(tmp_path, text, head=OURS).read(ask("kernel", {}, "ascend"))
    reason = "l1 bytes are not known: x: depth is not set: add --set depth=VALUE"
    assert judged(kernel, "ascend-950").reason == reason


def test_what_calls_elsewhere_is_the_reason(tmp_path: Path) -> None:
    text = """
    from other import tiles

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(8, threads=128):
            x = T.alloc_shared((8, 8), "float16")
            y = tiles(x)
    """
    found = judged(read(tmp_path, text))
    assert found.status is Status.UNKNOWN
    # three lines of HEAD, then the eighth of the text
    line = f"line {3 + 8}: what tiles() allocates is not known"
    assert found.reason == f"shared bytes are not known: {line}"


def test_tensor_memory_is_refused_where_a_chip_has_none(root: Path) -> None:
    source = SourceFrontend().load(root / "examples" / "alloc_scopes" / "tmem.py")
    for target in ("ascend", OLDER):
        with pytest.raises(RefusedError) as refused:
            source.read(ask("tmem_accumulator", {}, target))
        words = "line 53: T.alloc_tmem takes tensor memory, which ascend chips lack"
        assert str(refused.value) == words


def test_two_open_places_are_two(tmp_path: Path) -> None:
    body = """
a = T.alloc_fragment((16, 16), "float16")
b = T.alloc_fragment((16, 16), "float16")
c = T.alloc_fragment((16, 16), "float32")
T.gemm(a, b, c)
T.gemm(b, a, c)
""".strip()
    found = judged(adapter(tmp_path, body), "ascend-910b1")
    assert found.status is Status.UNKNOWN
    assert str(found.reason).startswith("l0a bytes depend on where a, b are: ")


# ---- a kernel of the common dialect, where only the adapter could run it ----------------------


def test_the_same_tiles_have_the_same_verdict(root: Path) -> None:
    gemm = SourceFrontend().load(root / "examples" / "gemm.py")
    (plain,) = gemm.read(ask("matmul", {"block_K": 32, "num_stages": 2}, OLDER))
    scopes = SourceFrontend().load(root / "examples" / "alloc_scopes" / "scopes.py")
    (all_scopes,) = scopes.read(ask("scope_showcase", {}, OLDER))
    for kernel in (plain, all_scopes):
        assert judged(kernel, "ascend-910b1").status is Status.FITS
        assert totals(kernel)[Memory.L0C] == 128 * 128 * 4
        assert kernel.toolchain_version == "tilelang"
        assert [line for line in kernel.notes if line.startswith("written in TileLang's common")]
    # device memory: no memory of the chip
    (product,) = [b for b in all_scopes.buffers if b.name == "product"]
    assert product.memory is Memory.GLOBAL


def test_a_kernel_of_the_adapter_is_no_guest(tmp_path: Path) -> None:
    kernel = adapter(tmp_path, 'x = T.alloc_fragment((16, 16), "float32")')
    assert kernel.toolchain_version == "tilelang-ascend@0.1.2"
    assert not [line for line in kernel.notes if "common dialect" in line]
    assert totals(kernel) == {Memory.L0C: 16 * 16 * 4}


SOFTMAX = """
@T.prim_func
def kernel(X: T.Tensor((4096, 1024), "float16"), Y: T.Tensor((4096, 1024), "float16")):
    with T.Kernel(4096, threads=128) as row:
        x = T.alloc_shared((1024,), "float16")
        f = T.alloc_fragment((1, 1024), "float32")
        most = T.alloc_fragment((1,), "float32")
        T.copy(X[row, 0], x)
        T.copy(x, f)
        T.reduce_max(f, most, dim=1)
        for j in T.Parallel(1024):
            f[0, j] = T.exp(f[0, j] - most[0])
        T.copy(f, Y[row, 0])
"""


def test_what_multiplies_nothing_runs_on_vector_cores(tmp_path: Path) -> None:
    kernel = read(tmp_path, SOFTMAX, target=OLDER)
    assert kernel.cores == "vector"
    counted = rounds(kernel, B1)
    assert counted is not None
    assert (counted.rounds, counted.cores, counted.core) == (-(-4096 // 48), 48, "AIV")


def test_a_fragment_outside_of_a_product_has_no_place(tmp_path: Path) -> None:
    kernel = read(tmp_path, SOFTMAX, target=OLDER)
    assert {b.name: b.memory for b in kernel.buffers} == {
        "x": Memory.UNDECIDED,
        "f": Memory.UNDECIDED,
        "most": Memory.UNDECIDED,
    }
    found = judged(kernel, "ascend-910b1")
    assert found.status is Status.UNKNOWN
    assert "does not say which memory holds f, most" in str(found.reason)
    assert Memory.L0C not in totals(kernel)
    assert "f, most: registers on a GPU" in "\n".join(kernel.notes)


def test_a_product_and_fragments_beside_it_take_both_cores(tmp_path: Path) -> None:
    text = """
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(8, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64,), "float32")
            T.gemm(a, a, c)
            T.reduce_max(c, d, dim=1)
    """
    kernel = read(tmp_path, text, target=OLDER)
    assert kernel.cores == "mixed"
    assert totals(kernel)[Memory.L0C] == 64 * 64 * 4
    assert judged(kernel, "ascend-910b1").status is Status.UNKNOWN


# ---- evidence --------------------------------------------------------------------------------


def test_an_estimate_without_buffers_is_declared(tmp_path: Path) -> None:
    source = load(tmp_path, "@tilelang.jit\ndef nothing(): pass\n")
    (kernel,) = source.read(ask("nothing", {}, "sm_90a"))
    assert [use.evidence for use in place(kernel)] == [Evidence.DECLARED]


def test_every_result_of_an_estimate_is_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a kernel that is refused, of one that has no launch, and of one that fits."""
    (tmp_path / "refused.py").write_text(
        f"{OURS}\n@T.prim_func\ndef ours(A: T.Tensor((8,), 'float16')):\n"
        "    with T.Kernel(8):\n        x = T.alloc_l1((8, 8), 'float16')\n"
    )
    (tmp_path / "empty.py").write_text(f"{HEAD}\n@tilelang.jit\ndef nothing(): pass\n")
    (tmp_path / "fits.py").write_text(
        f"{HEAD}\n@T.prim_func\ndef small(A: T.Tensor((8,), 'float16')):\n"
        "    with T.Kernel(8, threads=32):\n        x = T.alloc_shared((8, 8), 'float16')\n"
    )
    main(["plan", str(tmp_path), "-d", "h100", "--estimate", "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    found = {r["kernel"]: (r["verdict"], r["evidence"]) for r in answer["results"]}
    assert found == {
        "ours": (Status.CANNOT_LOWER, Evidence.DECLARED),
        "nothing": (Status.UNKNOWN, Evidence.DECLARED),
        "small": (Status.FITS, Evidence.DECLARED),
    }
