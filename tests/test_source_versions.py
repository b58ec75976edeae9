"""What an estimate for Ascend 950 counts of versions: between one of each tile and num_stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.opened import ask
from tests.test_source_ascend import adapter, ours, totals
from tilefit._devices.names import device
from tilefit._kernel.kernel import Kernel, StageRule
from tilefit._kernel.memory import Memory
from tilefit._placement.place import place
from tilefit._verdict.ascend import as_scheduled
from tilefit._verdict.judge import Policy, Status, Verdict, judge

CHIP = device("ascend-950pr_957b")
UB = 248 * 1024  # usable of UB without SIMT parts
L1 = 512 * 1024


def judged(kernel: Kernel, headroom_bytes: int = 0) -> Verdict:
    return judge(kernel, place(kernel), CHIP, Policy(headroom_bytes=headroom_bytes))


def one_loop(rows: int, stages: int = 2, more: str = "") -> str:
    """A loop that loads two float16 tiles of 256 columns into UB and computes a third."""
    return "\n".join(
        [
            *(f"{name} = T.alloc_shared(({rows}, 256), 'float16')" for name in "abc"),
            *([more] if more else []),
            f"for k in T.Pipelined(4, num_stages={stages}):",
            "    T.copy(A[k, 0], a)",
            "    T.copy(B[k, 0], b)",
            "    with T.SimdVF():",
            "        c[0, 0] = a[0, 0] + b[0, 0]",
        ]
    )


def scheduled(folder: Path, body: str) -> Kernel:
    return as_scheduled(ours(folder, body), CHIP)


def test_all_versions_count_where_they_fit(tmp_path: Path) -> None:
    rows = 96
    tile = rows * 256 * 2
    assert (2 + 2 + 1) * tile <= UB
    kernel = scheduled(tmp_path, one_loop(rows))
    assert totals(kernel) == {Memory.UB: (2 + 2 + 1) * tile}
    assert [b.copies for b in kernel.buffers] == [2, 2, 1]
    assert kernel == ours(tmp_path, one_loop(rows))


def test_one_version_of_each_counts_where_all_do_not_fit(tmp_path: Path) -> None:
    rows = 128
    tile = rows * 256 * 2
    assert 3 * tile <= UB < (2 + 2 + 1) * tile
    kernel = scheduled(tmp_path, one_loop(rows))
    assert totals(kernel) == {Memory.UB: 3 * tile}
    assert [(b.copies, b.stages, b.why) for b in kernel.buffers] == [
        (1, 2, "fewest-versions"),
        (1, 2, "fewest-versions"),
        (1, None, "same-stage"),
    ]
    found = judged(kernel)
    assert (found.status, found.reason) == (Status.FITS, None)
    (note,) = [line for line in kernel.notes if "as many as fit" in line]
    assert f"{3 * tile:,} B" in note
    assert f"{5 * tile:,} B" in note
    assert f"limit {UB:,} B" in note


def test_what_does_not_fit_in_one_version_of_each_does_not_fit(tmp_path: Path) -> None:
    rows = 256
    tile = rows * 256 * 2
    assert 3 * tile > UB
    found = judged(scheduled(tmp_path, one_loop(rows)))
    assert found.status is Status.DOES_NOT_FIT
    assert found.reason == (
        f"ub {3 * tile:,} B with one version of each tile, limit {UB:,} B: over by "
        f"{3 * tile - UB:,} B; the largest: a, {tile:,} B"
    )


def test_a_memory_that_fits_keeps_its_versions(tmp_path: Path) -> None:
    body = f"{one_loop(128)}\n    T.copy(A[k, 0], l)"
    kernel = scheduled(tmp_path, f"l = T.alloc_l1((64, 64), 'float16')\n{body}")
    assert totals(kernel) == {Memory.UB: 3 * 128 * 256 * 2, Memory.L1: 2 * 64 * 64 * 2}


@pytest.mark.parametrize(
    "body",
    [
        # the outer loop keeps two of x and counts one of y, of which the inner one keeps two
        """
x = T.alloc_l1((512, 192), "float16")
y = T.alloc_l1((512, 192), "float16")
for t in T.Pipelined(4, num_stages=2):
    T.copy(A[t, 0], x)
    for k in T.Pipelined(4, num_stages=2):
        T.copy(B[k, 0], y)
""",
        # y is alive, and no loop has it
        """
y = T.alloc_l1((512, 192), "float16")
x = T.alloc_l1((512, 192), "float16")
T.copy(B, y)
for t in T.Pipelined(4, num_stages=4):
    T.copy(A[t, 0], x)
""",
    ],
    ids=["nested", "outside"],
)
def test_between_the_ends_it_is_unknown_unless_one_loop_has_all(tmp_path: Path, body: str) -> None:
    tile = 512 * 192 * 2
    kernel = scheduled(tmp_path, body.strip())
    assert 2 * tile <= L1 < 3 * tile
    assert totals(kernel) == {Memory.L1: 2 * tile}
    found = judged(kernel)
    assert found.status is Status.UNKNOWN
    assert found.reason is not None
    assert f"l1 {2 * tile:,} B with one version of each tile fits {L1:,} B" in found.reason


def test_the_scheduler_knows_of_no_headroom(tmp_path: Path) -> None:
    """One version of each leaves 1 KiB, but two of one of them would not."""
    tile = 128 * 256 * 2
    kernel = scheduled(tmp_path, one_loop(128))
    assert UB - 3 * tile > 1024
    assert judged(kernel, 1024).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("more", "copies"),
    [
        ("T.annotate_buffer_versions({a: 3, c: 2})", [3, 1, 2]),
        ('T.annotate_unlimit_memory("shared")', [2, 2, 1]),
    ],
)
def test_annotations_take_the_choice_from_the_scheduler(
    tmp_path: Path, more: str, copies: list[int]
) -> None:
    kernel = scheduled(tmp_path, one_loop(128, more=more))
    assert [b.copies for b in kernel.buffers] == copies
    assert totals(kernel) == {Memory.UB: sum(copies) * 128 * 256 * 2}
    assert judged(kernel).status is Status.DOES_NOT_FIT


def test_fixed_versions_are_named_if_they_hang_on_a_parameter(tmp_path: Path) -> None:
    from tests.test_source_ascend import OURS
    from tests.test_source_frontend import load

    text = """
    def kernel(versions):
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16")):
            with T.Kernel(8):
                x = T.alloc_shared((8, 8), "float16")
                T.annotate_buffer_versions({x: versions})
        return main
    """
    source = load(tmp_path, text, head=OURS)
    (kernel,) = source.read(ask("kernel", {}, "ascend"))
    reason = "ub bytes are not known: x: versions is not set: add --set versions=VALUE"
    assert judged(kernel).reason == reason
    (kernel,) = source.read(ask("kernel", {"versions": 5}, "ascend"))
    assert totals(kernel) == {Memory.UB: 5 * 8 * 8 * 2}
    assert kernel.buffers[0].why == "fixed-versions"


def test_the_versions_of_the_adapter_are_not_known_to_shrink(tmp_path: Path) -> None:
    body = """
a = T.alloc_ub((128, 256), "float16")
b = T.alloc_ub((128, 256), "float16")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[k, 0], a)
    T.copy(B[k, 0], b)
""".strip()
    for target in ("ascend", "ascend-910b"):
        kernel = adapter(tmp_path, body, target)
        assert as_scheduled(kernel, CHIP) == kernel
        assert totals(kernel) == {Memory.UB: 2 * 2 * 128 * 256 * 2}
        assert judged(kernel).status is Status.DOES_NOT_FIT


@pytest.mark.tilelang
def test_the_compiler_fits_what_an_estimate_says_it_fits(tmp_path: Path) -> None:
    """Two versions of two tiles of 64 KiB and one more need 320 KiB; it keeps one of each."""
    from tests.lowering import lower

    path = tmp_path / "vector.py"
    path.write_text(
        """
import tilelang.ascend.language as T

def add():
    @T.prim_func
    def main(
        A: T.Tensor((4096, 4096), "float32"),
        B: T.Tensor((4096, 4096), "float32"),
        C: T.Tensor((4096, 4096), "float32"),
    ):
        with T.Kernel(56) as core:
            a = T.alloc_shared((64, 256), "float32")
            b = T.alloc_shared((64, 256), "float32")
            c = T.alloc_shared((64, 256), "float32")
            for t in T.Pipelined(16, num_stages=2):
                T.copy(A[t * 64, core * 64], a)
                T.copy(B[t * 64, core * 64], b)
                with T.SimtVF(threads=256):
                    for i, j in T.Parallel(64, 256):
                        c[i, j] = a[i, j] + b[i, j]
                T.copy(c, C[t * 64, core * 64])
    return main
"""
    )
    from tilefit._frontends.source.frontend import SourceFrontend

    (declared,) = SourceFrontend().load(path).read(ask("add", {}, "ascend"))
    assert totals(declared) == {Memory.UB: (2 + 2 + 1) * 64 * 256 * 4}
    estimate = as_scheduled(declared, CHIP)
    (compiled,) = lower(path, "add", "ascend")
    tiles = 3 * 64 * 256 * 4
    assert totals(estimate) == totals(compiled) == {Memory.UB: tiles}
    assert judged(estimate).status is judged(compiled).status is Status.FITS


def test_a_compiled_kernel_is_left_alone(tmp_path: Path) -> None:
    compiled = replace(ours(tmp_path, one_loop(128)), stage_rule=StageRule.CHOSEN)
    assert as_scheduled(compiled, CHIP) == compiled
