"""Our liveness walk and packer against TileLang's own pass: real kernels, random programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.record_packing import (
    FILES,
    ROOT,
    TARGETS,
    Case,
    Refused,
    case_of,
    kernels_of,
    lowered,
    path_of,
    recorded,
)
from tilefit._frontends.tilelang import liveness as liveness

pytestmark = pytest.mark.tilelang

CORPUS = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests/kernels/corpus").glob("*.py"))
PROGRAMS = 400


# ---- real kernels ------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_the_compiler_still_says_what_was_recorded(file: str) -> None:
    def key(case: Case) -> tuple[str, str, str]:
        return case.kernel, case.target, case.function

    now = {key(case): case for kernel in kernels_of(file) for case in everywhere(file, kernel)}
    then = {key(case): case for case in recorded(path_of(file))}
    assert now.keys() == then.keys()
    for name, case in now.items():
        # twins may have changed places: the compiler orders them by chance
        assert case.intervals == then[name].intervals, name
        assert replace(then[name], offsets=case.offsets).matches(), name
        assert case.total_bytes == then[name].total_bytes, name


def everywhere(file: str, kernel: str) -> Iterator[Case]:
    for target in FILES[file]:
        try:
            yield from lowered(file, kernel, target)
        except Refused:
            continue


@pytest.mark.parametrize("file", CORPUS)
def test_the_packer_finds_every_offset_of_the_corpus(file: str) -> None:
    """Each kernel for one target, another one from kernel to kernel."""
    compared = 0
    for number, kernel in enumerate(kernels_of(file)):
        turned = TARGETS[number % 3 :] + TARGETS[: number % 3]
        for target in turned:
            try:
                cases = list(lowered(file, kernel, target))
            except Refused:
                continue
            for case in cases:
                assert case.matches(), str(case)
            compared += len(cases)
            break
    assert compared


# ---- random programs ---------------------------------------------------------------------


def programs(*, aggressive: bool, reuse: bool = True, open_sizes: bool = False) -> Iterator[Case]:
    """Run TileLang's pass on random programs; yield those in which it had to merge."""
    import tilelang
    from tilelang import tvm

    from tests.packing_programs import Program

    configs = {liveness.AGGRESSIVE_MERGE: aggressive, liveness.DISABLE_REUSE: not reuse}
    for seed in range(PROGRAMS):
        before = tvm.IRModule({"main": Program(seed, open_sizes=open_sizes).function()})
        merge = tilelang.transform.MergeSharedMemoryAllocations(aggressive, 16, not reuse)
        after = merge(before)
        case = case_of(f"seed {seed}", "", "main", before["main"], after["main"], configs)
        if len(case.intervals) > 1:
            yield case


def unmatched(cases: Iterator[Case]) -> list[str]:
    return [str(case) for case in cases if not case.matches()]


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_the_packer_finds_every_offset_of_random_programs(
    aggressive: bool, open_sizes: bool
) -> None:
    cases = list(programs(aggressive=aggressive, open_sizes=open_sizes))
    assert len(cases) > PROGRAMS // 2
    assert unmatched(iter(cases)) == []
    # the programs reach what kernels seldom do: buffers that nothing touches, odd sizes
    assert any(None in case.offsets for case in cases)
    assert len([case for case in cases if case.shares]) > PROGRAMS // 4


def test_the_packer_finds_every_offset_without_reuse() -> None:
    assert unmatched(programs(aggressive=True, reuse=False)) == []


# ---- mutants of the walk -----------------------------------------------------------------

Interval = tuple[int, int]
real_intervals = liveness._intervals


def with_intervals(change: Callable[[Interval], Interval]) -> Callable[..., dict[Any, Interval]]:
    def intervals(*arguments: Any) -> dict[Any, Interval]:
        found = real_intervals(*arguments)
        return {var: change(interval) for var, interval in found.items()}

    return intervals


def roles_as_a_branch(walk: Any, node: Any) -> None:
    walk.statement(node)


def charged_to_the_step(walk: Any, var: Any) -> None:
    if var in walk._home and walk._open:
        walk._open[-1].touched[var] = None


def charged_to_the_function(walk: Any, var: Any) -> None:
    if var in walk._home and walk._open:
        walk._open[0].touched[var] = None


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "dies a step early": (
        liveness,
        "_intervals",
        with_intervals(lambda i: (i[0], max(i[0] + 1, i[1] - 1))),
    ),
    "dies a step late": (liveness, "_intervals", with_intervals(lambda i: (i[0], i[1] + 1))),
    "born a step early": (
        liveness,
        "_intervals",
        with_intervals(lambda i: (max(0, i[0] - 1), i[1])),
    ),
    "born a step late": (
        liveness,
        "_intervals",
        with_intervals(lambda i: (min(i[0] + 1, i[1] - 1), i[1])),
    ),
    "a last use stays in its loop": (liveness, "_pushed_out", lambda node, *_: node),
    "no loop holds a sequence": (liveness, "_is_sequence", lambda _: False),
    "every loop holds a sequence": (liveness, "_is_sequence", lambda _: True),
    "roles are a branch": (liveness._Walk, "_roles", roles_as_a_branch),
    "a touch counts where it stands": (liveness._Walk, "_touch", charged_to_the_step),
    "a touch counts for the function": (liveness._Walk, "_touch", charged_to_the_function),
    "no operand is swizzled": (liveness, "_SWIZZLING", frozenset()),
    "operands are aligned to 128": (liveness, "_SWIZZLED_ALIGN_BYTES", 128),
    "no alignment is recorded": (liveness, "_ALIGNMENTS", "nothing"),
    "virtual threads are no scope": (liveness, "_SCOPE_ATTRS", frozenset({"extern_scope"})),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_walk_is_seen(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home, name, replacement = MUTANTS[mutant]
    assert hasattr(home, name)
    monkeypatch.setattr(home, name, replacement)
    assert any(not case.matches() for case in programs(aggressive=False))


def test_the_wrong_merge_mode_is_seen() -> None:
    import tilelang
    from tilelang import tvm

    from tests.packing_programs import Program

    seen = False
    for seed in range(PROGRAMS):
        before = tvm.IRModule({"main": Program(seed).function()})
        after = tilelang.transform.MergeSharedMemoryAllocations(True, 16, False)(before)
        configs = {liveness.AGGRESSIVE_MERGE: False}
        case = case_of(f"seed {seed}", "", "main", before["main"], after["main"], configs)
        seen = seen or not case.matches()
    assert seen


# ---- the walk by hand --------------------------------------------------------------------


def live(body: Callable[[Any, Any, Any], Any], *, aggressive: bool = False) -> dict[str, Interval]:
    """Return the live interval of buffers a, b, c in a function; step 0 opens the function."""
    from tvm import tirx

    a, b, c = (tirx.decl_buffer((16,), "float16", name, scope="shared.dyn") for name in "abc")
    allocations = [tirx.AllocBuffer(buffer) for buffer in (a, b, c)]
    axis = tirx.IterVar(None, tirx.Var("bx", "int32"), 1, "blockIdx.x")
    inner = tirx.SeqStmt([*allocations, *body(a, b, c)])
    function = tirx.PrimFunc([], tirx.AttrStmt(axis, "thread_extent", 4, inner))
    found = liveness.live_buffers(function, aggressive=aggressive)
    return {one.name: (one.start, one.end) for one in found}


def store(target: Any, *sources: Any) -> Any:
    from tvm import tirx

    value = tirx.const(1, "float16")
    for source in sources:
        value = value + tirx.BufferLoad(source, [0])
    return tirx.BufferStore(target, value, [0])


def loop(*body: Any) -> Any:
    from tvm import tirx

    inner = body[0] if len(body) == 1 else tirx.SeqStmt(body)
    return tirx.For(tirx.Var("i", "int32"), 0, 4, 0, inner)


def branch(then: Any, otherwise: Any = None) -> Any:
    from tvm import tirx

    return tirx.IfThenElse(tirx.Var("flag", "int32") > 0, then, otherwise)


def test_a_statement_is_a_step() -> None:
    # 0 function, 1 a = 1, 2 b = a, 3 b = 1, 4 c = b
    found = live(lambda a, b, c: [store(a), store(b, a), store(b), store(c, b)])
    assert found == {"a": (1, 2 + 1), "b": (2, 4 + 1), "c": (4, 4 + 1)}


def test_what_a_loop_uses_lives_from_its_first_step_to_its_last() -> None:
    # 0 function, 1 a = 1, 2 loop, 3 end of loop, 4 c = b: what the loop holds counts as the loop
    found = live(lambda a, b, c: [store(a), loop(store(b, a), store(c)), store(c, b)])
    assert found == {"a": (1, 3 + 1), "b": (2, 4 + 1), "c": (2, 4 + 1)}


def test_aggressive_merging_looks_into_the_loop() -> None:
    # 0 function, 1 a = 1, 2 loop, 3 b = a, 4 c = 1, 5 end of loop, 6 c = c
    found = live(
        lambda a, b, c: [store(a), loop(store(b, a), store(c)), store(c, c)], aggressive=True
    )
    # a is born outside the loop and last used in it, at 3: so it is kept up to the last birth or
    # death before the next one outside (c's death at 6), which is c's birth at 4
    assert found == {"a": (1, 4 + 1), "b": (3, 3 + 1), "c": (4, 6 + 1)}


def test_a_branch_is_a_scope_with_both_its_sides_inside() -> None:
    # 0 function, 1 if, 2 end of if, 3 c = 1
    found = live(lambda a, b, c: [branch(store(a), store(b)), store(c)])
    assert found == {"a": (1, 2 + 1), "b": (1, 2 + 1), "c": (3, 3 + 1)}


def test_roles_stand_one_behind_the_other() -> None:
    # 0 function, 1 a = 1, 2 b = 1, 3 c = a
    from tvm import tirx

    def body(a: Any, b: Any, c: Any) -> list[Any]:
        split = branch(tirx.SeqStmt([store(a), store(b)]), store(c, a))
        return [tirx.AttrStmt([128, 128], "kWarpSpecializationScope", 0, split)]

    assert live(body) == {"a": (1, 3 + 1), "b": (2, 2 + 1), "c": (3, 3 + 1)}


def test_a_buffer_that_nothing_touches_has_an_empty_life() -> None:
    assert live(lambda a, b, c: [store(a)]) == {"a": (1, 2), "b": (0, 0), "c": (0, 0)}


def test_sizes_in_the_array() -> None:
    """4-bit elements share bytes, smaller than a byte else means a byte; symbolic is unknown."""
    from tvm import tirx

    n = tirx.Var("n", "int32")
    for dtype, extent, size in (
        ("float16", 7, 7 * 2),
        ("uint4", 63, (63 + 1) // 2),
        ("float4_e2m1fn", 8, 8 // 2),
        ("bool", 3, 3),
        ("float6_e3m2fn", 4, 4),
        ("float32x4", 2, 2 * 4 * 4),
        ("int8", n, None),
    ):
        buffer = tirx.decl_buffer((extent,), dtype, "tile", scope="shared.dyn")
        function = tirx.PrimFunc([n], tirx.AllocBuffer(buffer))
        (found,) = liveness.live_buffers(function, aggressive=False)
        assert found.bytes == size, dtype
