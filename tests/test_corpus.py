"""The corpus of kernels against what its author, not the compiler, says they keep on chip."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.lowering import KERNELS, lower, source
from tests.test_reasons import OF_ASCEND
from tests.values import packing_differs
from tilefit._errors import RefusedError
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.reasons import REASONS
from tilefit._placement.account import account
from tilefit._placement.place import place

CORPUS = KERNELS / "corpus"
TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")

with (CORPUS / "expected.toml").open("rb") as file:
    EXPECTED: dict[str, dict[str, Any]] = tomllib.load(file)

KERNEL_NAMES = [(module, kernel) for module, kernels in EXPECTED.items() for kernel in kernels]


def entries(module: str, kernel: str) -> dict[str, dict[str, Any]]:
    """What is expected of a kernel, by target."""
    return {
        target: entry
        for targets, entry in EXPECTED[module][kernel].items()
        for target in targets.split()
    }


FAST = "sm_90a"  # the target of the fast tier; what is lowered for it, others share
CASES = [
    pytest.param(
        *(module, kernel, target, entry),
        id=f"{module}.{kernel}-{target}",
        marks=() if target == FAST else pytest.mark.slow,
    )
    for module, kernel in KERNEL_NAMES
    for target, entry in entries(module, kernel).items()
]


def written(kernel: Kernel) -> list[Buffer]:
    """The shared buffers that the author wrote."""
    return [b for b in kernel.buffers if b.memory is Memory.SHARED and b.origin == "source"]


def found(kernel: Kernel) -> dict[str, list[Any]]:
    """Copies and code of each shared buffer that the author wrote, as expected.toml has them."""
    return {b.name: ["not whole" if b.copies is None else b.copies, b.why] for b in written(kernel)}


@pytest.mark.tilelang
@pytest.mark.parametrize(("module", "kernel", "target", "expected"), CASES)
def test_copies_and_codes_are_those_written_by_hand(
    module: str, kernel: str, target: str, expected: dict[str, Any]
) -> None:
    path = CORPUS / f"{module}.py"
    if "refused" in expected:
        with pytest.raises(RefusedError, match=expected["refused"]):
            lower(path, kernel, target)
        return
    kernels = lower(path, kernel, target)
    if len(kernels) == 1:
        assert found(kernels[0]) == expected
    else:
        assert {k.function: found(k) for k in kernels} == expected


def test_every_kernel_names_every_target_and_only_known_codes() -> None:
    for module, kernel in KERNEL_NAMES:
        named = [t for targets in EXPECTED[module][kernel] for t in targets.split()]
        assert sorted(named) == sorted(TARGETS), f"{module}.{kernel}"
    codes = {code for *_, entry in (case.values for case in CASES) for code in _codes(entry)}
    assert codes <= set(REASONS)
    # and every code of an author's buffer stands somewhere
    made_by_compiler = {
        *("barrier", "reduce-workspace", "tmem-address", "compiler-scratch"),
        *("static-rounding", "alignment-gap"),
        "device-memory",  # T.alloc_global: see the recorded scope_showcase
    }
    assert codes == set(REASONS) - made_by_compiler - OF_ASCEND


def _codes(entry: dict[str, Any]) -> list[str]:
    """The codes in an entry, one level down for several device functions."""
    found: list[str] = []
    for value in entry.values():
        if isinstance(value, dict):
            found += _codes(value)
        elif isinstance(value, list):
            found.append(value[1])
    return found


@pytest.mark.tilelang
def test_the_corpus_is_the_files_of_its_folder_and_every_parameter_has_a_default() -> None:
    offered = [
        (path.stem, listing.name)
        for path in sorted(CORPUS.glob("*.py"))
        for listing in source(path).kernels()
        if not listing.name.startswith("_")
    ]
    assert sorted(offered) == sorted(KERNEL_NAMES)
    for path in CORPUS.glob("*.py"):
        for listing in source(path).kernels():
            if not listing.name.startswith("_"):
                assert not [p.name for p in listing.parameters if p.required], listing.name


def test_there_are_at_least_30_kernels() -> None:
    assert len(KERNEL_NAMES) >= 30


@pytest.mark.tilelang
@pytest.mark.parametrize("target", [pytest.param("sm_80", marks=pytest.mark.slow), FAST])
def test_at_least_20_kernels_have_three_dynamic_buffers_and_real_reuse(target: str) -> None:
    """Reuse: the bytes of all dynamic buffers are more than the dynamic total."""
    reusing = set()
    for module, name in KERNEL_NAMES:
        if "refused" in entries(module, name)[target]:
            continue
        for kernel in lower(CORPUS / f"{module}.py", name, target):
            dynamic = [b for b in written(kernel) if not b.static and b.copies != 0]
            total = sum(b.bytes or 0 for b in dynamic)
            if len(dynamic) >= 3 and total > (kernel.staged.dynamic_bytes or 0):
                reusing.add((module, name))
    assert len(reusing) >= 20


LOWERED = [case for case in CASES if "refused" not in case.values[3]]


@pytest.mark.tilelang
@pytest.mark.parametrize(("module", "kernel", "target", "expected"), LOWERED)
def test_every_byte_is_accounted_for_and_our_packer_agrees(
    module: str, kernel: str, target: str, expected: dict[str, Any]
) -> None:
    for lowered in lower(CORPUS / f"{module}.py", kernel, target):
        assert packing_differs(lowered) is None
        rows = account(lowered)
        (shared,) = [use for use in place(lowered) if use.memory is Memory.SHARED]
        assert rows is not None
        assert sum(row.own_bytes for row in rows) == shared.total_bytes


@pytest.mark.tilelang
def test_each_device_function_of_a_primfunc_has_a_launch_and_bytes_of_its_own() -> None:
    product, weights = lower(CORPUS / "several.py", "scores_then_weights", "sm_90a")
    # 128 threads and a producer's 128; 256 threads without a pipelined loop
    assert (product.launch.threads_declared, product.launch.threads) == (128, 128 + 128)
    assert (weights.launch.threads_declared, weights.launch.threads) == (256, 256)
    # q, two copies of k, s (fp32); x (fp32), y
    assert product.staged.dynamic_bytes == 64 * 64 * 2 + 2 * 64 * 64 * 2 + 64 * 64 * 4
    assert weights.staged.dynamic_bytes == 64 * 128 * 4 + 64 * 128 * 2
    assert [len(loops) for loops in (product.loops, weights.loops)] == [1, 0]
    steps = lower(CORPUS / "several.py", "three_steps", "sm_80")
    assert [k.launch.grid[0] for k in steps] == [64 // 8, 64 // 4, 64 // 16]
    assert [k.staged.dynamic_bytes for k in steps] == [8 * 256 * 4, 2 * 4 * 256 * 4, 16 * 256 * 4]


@pytest.mark.tilelang
def test_an_open_size_is_in_the_grid_or_the_loop_until_it_is_given() -> None:
    path = CORPUS / "several.py"
    (rows,) = lower(path, "open_rows", "sm_90a")
    assert "m" in str(rows.launch.grid[1])
    (rows,) = lower(path, "open_rows", "sm_90a", m=4096)
    assert rows.launch.grid == (256 // 64, 4096 // 64, 1)
    (depth,) = lower(path, "open_depth", "sm_80")
    assert "k" in str(depth.loops[0].extent)
    (depth,) = lower(path, "open_depth", "sm_80", k=4096)
    assert depth.loops[0].extent == 4096 // 32


@pytest.mark.tilelang
@pytest.mark.parametrize("target", [pytest.param("sm_80", marks=pytest.mark.slow), FAST])
def test_the_pass_configs_of_the_author_hold(target: str) -> None:
    path = CORPUS / "own_configs.py"
    tile, operand = 64 * 64 * 2, 64 * 32 * 2
    # two copies of both operands; then r and c, which is written when r is dead
    (one_role,) = lower(path, "one_role", target)
    assert one_role.launch.threads == 128
    assert one_role.staged.dynamic_bytes == max(2 * operand + 2 * operand, tile)
    (no_reuse,) = lower(path, "no_reuse", target)
    assert no_reuse.staged.dynamic_bytes == 2 * operand + 2 * operand + tile + tile
    # q and k, score and v, o: never more than two tiles of 64 x 64 at a time
    (aggressive,) = lower(path, "aggressive", target)
    assert aggressive.staged.dynamic_bytes == 2 * tile
