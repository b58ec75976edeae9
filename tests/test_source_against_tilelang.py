"""What the source frontend says a kernel declares is what TileLang's PrimFunc has, or unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.declared_truth import (
    Outcome,
    agreement,
    compare,
    required,
    target_of,
    traced,
)
from tests.lowering import lower, source
from tests.opened import ask
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.kernel import Kernel

pytestmark = pytest.mark.tilelang

ROOT = Path(__file__).parent.parent
GEMM = ROOT / "examples" / "gemm.py"
# these ask for a device when they are imported or built: each in a process of its own
MAINS = sorted((ROOT / "tests" / "kernels" / "mains").rglob("*.py"))
ASKING = [ROOT / "tests" / "kernels" / "library.py", *(p for p in MAINS if required(p))]
FILES = [
    path
    for folder in ("tests/kernels", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path not in (*ASKING, *MAINS)
]
# its argument binds an open size of the same name, which no PrimFunc shows (test_open_sizes.py)
BOUND_BY_NAME = {"bound_twice"}
KERNELS = [
    pytest.param(path, kernel, params, id=f"{path.parent.name}/{path.stem}-{kernel}")
    for path in FILES
    for kernel, params in required(path).items()
    if kernel not in BOUND_BY_NAME
]
# what TileLang does not build: two take a dtype, one its sizes as *args, one is for Blackwell
NOT_BUILT = {"_mirror", "of_shape", "row_bytes_unsaid", "says_so"}


@cache
def outcome(path: Path, kernel: str, params: tuple[tuple[str, Any], ...]) -> Outcome:
    return compare(path, kernel, dict(params))


def check(kernel: str, found: Outcome) -> None:
    """Equal, or unknown with a name; nothing else."""
    assert (found.kind == "not built") == (kernel in NOT_BUILT), found.detail
    assert found.kind in ("equal", "unknown", "not built"), found.detail


@pytest.mark.parametrize(("path", "kernel", "params"), KERNELS)
def test_what_is_declared_is_what_tilelang_traces_or_unknown(
    path: Path, kernel: str, params: dict[str, Any]
) -> None:
    check(kernel, outcome(path, kernel, tuple(params.items())))


def test_less_than_a_tenth_of_the_kernels_is_unknown() -> None:
    found = [
        outcome(path, kernel, tuple(params.items()))
        for path, kernel, params in (case.values for case in KERNELS)
    ]
    kinds = [one.kind for one in found]
    assert len(kinds) - kinds.count("not built") > 100
    assert kinds.count("unknown") < 0.1 * len(kinds)


def test_files_that_ask_for_a_device_are_read_alike() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.declared_truth", *map(str, ASKING)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(found) > 20, done.stderr
    for path, kernel, kind, detail in found:
        assert kind != "failed", f"{path}: {detail}"
        check(kernel, Outcome(kind, f"{path}: {detail}"))
    assert sum(kind == "unknown" for _, _, kind, _ in found) < 0.1 * len(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_both_list_the_same_kernels_with_the_same_parameters(path: Path) -> None:
    ours = SourceFrontend().load(path).kernels()
    theirs = source(path).kernels()
    assert {k.name: [(p.name, p.required) for p in k.parameters] for k in ours} == {
        k.name: [(p.name, p.required) for p in k.parameters] for k in theirs
    }
    assert {k.name: (k.style, k.line) for k in ours} == {k.name: (k.style, k.line) for k in theirs}


def test_threads_that_the_author_leaves_out_are_what_tilelang_takes(tmp_path: Path) -> None:
    path = tmp_path / "no_threads.py"
    text = GEMM.read_text(encoding="utf-8")
    assert "threads=threads" in text
    path.write_text(text.replace(", threads=threads", ""), encoding="utf-8")
    (lowered,) = lower(path, "matmul", "sm_80")
    (declared,) = SourceFrontend().load(path).read(ask("matmul", {}, "sm_80"))
    assert declared.launch.threads == lowered.launch.threads


# ---- the comparison can fail -----------------------------------------------------------------


def declared_gemm() -> Kernel:
    (kernel,) = SourceFrontend().load(GEMM).read(ask("matmul", {}, "sm_90a"))
    return kernel


def first_buffer(**changes: Any) -> Callable[[Kernel], Kernel]:
    def change(kernel: Kernel) -> Kernel:
        first, *others = kernel.buffers
        return replace(kernel, buffers=(replace(first, **changes), *others))

    return change


def launch(**changes: Any) -> Callable[[Kernel], Kernel]:
    return lambda kernel: replace(kernel, launch=replace(kernel.launch, **changes))


def loop(**changes: Any) -> Callable[[Kernel], Kernel]:
    return lambda kernel: replace(kernel, loops=(replace(kernel.loops[0], **changes),))


@pytest.mark.parametrize(
    "change",
    {
        "shape": first_buffer(shape=(128, 65)),
        "dtype": first_buffer(dtype="float32"),
        "scope": first_buffer(scope="shared"),
        "name": first_buffer(name="A_t"),
        "one buffer less": lambda kernel: replace(kernel, buffers=kernel.buffers[1:]),
        "one buffer twice": lambda kernel: replace(
            kernel, buffers=(kernel.buffers[0], *kernel.buffers)
        ),
        "threads": launch(threads_declared=256),
        "grid": launch(grid=(32, 33, 1)),
        "stages": loop(num_stages=2),
        "iterations": loop(extent=63),
        "what is copied": loop(copied=("A_s",)),
        "a SIMT region": lambda kernel: replace(kernel, conditions=("simt",)),
    }.values(),
    ids=lambda change: getattr(change, "__name__", ""),
)
def test_a_difference_is_wrong(change: Callable[[Kernel], Kernel]) -> None:
    truth = traced(source(GEMM), "matmul", "sm_90a", {})
    assert agreement(truth, (declared_gemm(),)).kind == "equal"
    assert agreement(truth, (change(declared_gemm()),)).kind == "wrong"
    assert agreement(truth, (declared_gemm(), declared_gemm())).kind == "wrong"


def test_another_shape_in_the_file_is_wrong(tmp_path: Path) -> None:
    text = GEMM.read_text(encoding="utf-8")
    mutant = tmp_path / "gemm.py"
    changed = text.replace("(block_M, block_K)", "(block_M, block_K + 1)")
    assert changed != text
    mutant.write_text(changed, encoding="utf-8")
    truth = traced(source(GEMM), "matmul", "sm_90a", {})
    read = SourceFrontend().load(mutant).read(ask("matmul", {}, "sm_90a"))
    assert agreement(truth, read).kind == "wrong"


def test_unknown_has_to_name_what_is_missing_and_may_not_contradict() -> None:
    truth = traced(source(GEMM), "matmul", "sm_90a", {})
    open_shape = first_buffer(shape=("m", 64), bytes=None)(declared_gemm())
    assert agreement(truth, (open_shape,)).kind == "wrong"  # no word about it
    named = replace(open_shape, notes=("A_s: not known without m: add --set m=VALUE",))
    assert agreement(truth, (named,)).kind == "unknown"
    grid = replace(named, launch=replace(named.launch, grid=(31, 32, 1)))
    assert agreement(truth, (grid,)).kind == "wrong"


def test_the_target_of_a_file_is_that_of_its_dialect() -> None:
    assert target_of(GEMM) == "sm_90a"
    assert target_of(ROOT / "examples" / "alloc_scopes" / "ascend.py") == "ascend"
