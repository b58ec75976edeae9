"""The largest stage count is a pair of lowerings: one that fits, and the next that does not.

A fake compiler stands for the real one here. Its bytes are a table, so what is right is known
without it, and it can do what a real one seldom does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record_kernels import RECORDINGS, recorded
from tests.values import KIB, buffer, card, kernel, tmem
from tilefit._devices.names import device
from tilefit._errors import KernelError, RefusedError, TilefitError
from tilefit._kernel.kernel import Kernel, Loop
from tilefit._placement.place import place
from tilefit._planning.report import Stages
from tilefit._planning.stages import largest_stages, ring_parameter, stage_parameter
from tilefit._verdict.judge import Verdict, judge

LIMIT = 227 * KIB
Answer = Kernel | TilefitError


def staged(stages: int, total: int | None, *, pipelined: int = 0, **changes: Any) -> Kernel:
    """A kernel of ``total`` bytes, of which ``pipelined`` are ``stages`` copies of a buffer."""
    tile = buffer("A_s", pipelined, copies=stages, why="T.Pipelined")
    loop = Loop(variable="k", extent=64, num_stages=stages, buffers=("A_s",))
    return kernel(tile, dynamic_bytes=total, **{"loops": (loop,), **changes})


def linear(each: int, base: int = 0) -> Callable[[int], Kernel]:
    """A compiler that does what everybody expects: S copies of a stage, and a base."""
    return lambda stages: staged(stages, base + stages * each, pipelined=stages * each)


class Search:
    """One search through a fake compiler that remembers what it was asked to lower."""

    def __init__(
        self,
        compiler: Callable[[int], Answer | tuple[Kernel, ...]],
        *,
        current: Any = 2,
        limit: int = LIMIT,
        parameter: str | None = "num_stages",
    ) -> None:
        self.compiler = compiler
        self.card = card(limit, max_threads_per_block=1024)
        self.lowered: list[int] = []
        first = current if isinstance(current, int) else 1
        self.found: Stages = largest_stages(
            self.lower(first),
            parameter=parameter,
            current=current,
            params={"block": 128, "num_stages": current},
            read=self.read,
            judge=self.judge,
        )

    def lower(self, stages: int) -> tuple[Kernel, ...]:
        self.lowered.append(stages)
        answer = self.compiler(stages)
        if isinstance(answer, TilefitError):
            raise answer
        return answer if isinstance(answer, tuple) else (answer,)

    def read(self, params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        assert params["block"] == 128
        return self.lower(params["num_stages"])

    def judge(self, value: Kernel) -> Verdict:
        return judge(value, place(value), self.card)

    def refused_because(self) -> str:
        """Return why there is no largest count, having checked that none is claimed."""
        found = self.found
        assert (found.largest, found.largest_bytes, found.next_bytes) == (None, None, None)
        assert found.reason
        return found.reason


# ---- boundary pairs ---------------------------------------------------------------------------


@pytest.mark.parametrize("current", [1, 2, 3, 6, 7, 8, 12])
@pytest.mark.parametrize(
    ("each", "base", "largest"),
    [
        (32 * KIB, 0, 7),  # 7 x 32 = 224 of 227 KiB
        (32 * KIB, 1024, 7),  # 225 KiB; 8 stages are 257
        (32 * KIB, 3 * KIB, 7),  # exactly 227 KiB
        (32 * KIB, 3 * KIB + 1, 6),  # one byte too many
        (227 * KIB, 0, 1),
        (10 * KIB, 0, 22),
    ],
)
def test_the_count_before_the_first_that_does_not_fit(
    current: int, each: int, base: int, largest: int
) -> None:
    found = Search(linear(each, base), current=current).found
    assert (found.largest, found.reason) == (largest, None)
    assert found.largest_bytes == base + largest * each
    assert found.next_bytes == base + (largest + 1) * each
    assert (found.parameter, found.current) == ("num_stages", current)


@given(
    each=st.integers(8 * KIB, 240 * KIB),
    base=st.integers(0, 100 * KIB),
    current=st.integers(1, 12),
)
def test_where_stages_cost_the_same_only_the_pair_itself_is_lowered(
    each: int, base: int, current: int
) -> None:
    search = Search(linear(each, base), current=current)
    largest = (LIMIT - base) // each
    if largest == 0:
        assert "even with num_stages=1" in search.refused_because()
        return
    assert search.found.largest == largest
    assert set(search.lowered) == {current, largest, largest + 1}


def test_a_jump_behind_the_guess_is_found() -> None:
    """The fourth stage costs more than the bytes of one promised."""

    def compiler(stages: int) -> Kernel:
        extra = 100 * KIB if stages >= 4 else 0
        return staged(stages, stages * 32 * KIB + extra, pipelined=stages * 32 * KIB)

    search = Search(compiler)
    assert search.found.largest == 3  # 4 x 32 + 100 = 228 of 227 KiB
    assert search.found.next_bytes == (4 * 32 + 100) * KIB


def test_two_loops_that_multiply_each_other_are_found() -> None:
    """S x S copies: the guess is wrong and only says where to look first."""
    search = Search(lambda s: staged(s, s * s * 8 * KIB, pipelined=s * s * 8 * KIB))
    assert search.found.largest == 5  # 25 x 8 = 200 KiB; 36 x 8 = 288
    assert search.found.next_bytes == 36 * 8 * KIB


def test_bytes_that_fall_again_give_a_pair_all_the_same() -> None:
    sizes = {1: 100, 2: 300, 3: 100, 4: 90, 5: 300, 6: 300}
    search = Search(lambda s: staged(s, sizes.get(s, 300) * KIB), current=3)
    assert search.found.largest == 4
    assert {4, 5} <= set(search.lowered)


def test_every_function_of_the_kernel_has_to_fit() -> None:
    def compiler(stages: int) -> tuple[Kernel, ...]:
        return linear(16 * KIB)(stages), linear(64 * KIB)(stages)

    found = Search(compiler).found
    assert found.largest == 3  # 3 x 64 = 192 of 227 KiB
    assert (found.largest_bytes, found.next_bytes) == (3 * 64 * KIB, 4 * 64 * KIB)


def test_a_launch_limit_that_a_stage_breaks_ends_the_count() -> None:
    """More stages may mean more producer threads."""
    search = Search(lambda s: staged(s, s * KIB, pipelined=s * KIB, threads=s * 256))
    assert search.found.largest == 4  # 4 x 256 = 1,024 threads


def test_an_open_grid_does_not_hide_the_largest_count() -> None:
    """How many blocks there are has nothing to do with the stages of one."""

    def compiler(stages: int) -> Kernel:
        total = stages * 32 * KIB
        return staged(stages, total, pipelined=total, grid=("m", 1, 1))

    assert Search(compiler).found.largest == 7


@pytest.mark.parametrize("current", [2, 3, 4])
def test_the_recorded_gemm_on_an_rtx_5090(current: int) -> None:
    """99 KiB: 3 stages of 32 KiB with 1 KiB for barriers are all of it; 4 are 129."""
    lowered = {
        dict(r.params)["num_stages"]: recorded(r.path)
        for r in RECORDINGS
        if (r.kernel, r.target) == ("matmul", "sm_120a")
    }
    on = device("rtx-5090")
    found = largest_stages(
        (lowered[current],),
        parameter="num_stages",
        current=current,
        params={"num_stages": current},
        read=lambda params: (lowered[params["num_stages"]],),
        judge=lambda value: judge(value, place(value), on),
    )
    assert found.largest == 3
    assert found.largest_bytes == 3 * 32 * KIB + KIB
    assert found.next_bytes == 4 * 32 * KIB + KIB


# ---- nothing to claim -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RefusedError("too deep"), KernelError("g.py:3 raised")])
def test_a_next_count_that_is_refused_leaves_no_claim(error: TilefitError) -> None:
    """That 7 fits is not enough: nothing shows that 8 does not."""
    search = Search(lambda s: error if s == 8 else linear(32 * KIB)(s))
    reason = search.refused_because()
    assert "num_stages=8" in reason
    assert str(error) in reason
    assert 7 in search.lowered


def test_a_guess_that_is_refused_leaves_no_claim() -> None:
    search = Search(lambda s: RefusedError("too deep") if s > 4 else linear(32 * KIB)(s))
    assert "num_stages=7 was refused: too deep" in search.refused_because()


def test_an_unknown_next_count_leaves_no_claim() -> None:
    search = Search(lambda s: staged(s, None) if s == 8 else linear(32 * KIB)(s))
    assert "unknown at num_stages=8" in search.refused_because()


def test_unknown_bytes_are_not_a_misfit() -> None:
    search = Search(lambda s: staged(s, None))
    assert "unknown at num_stages=2" in search.refused_because()
    assert search.lowered == [2]


def test_it_does_not_fit_even_with_one() -> None:
    search = Search(linear(228 * KIB), current=3)
    assert "does not fit even with num_stages=1" in search.refused_because()
    assert 1 in search.lowered


def test_no_stages_help_where_another_memory_is_missing() -> None:
    def compiler(stages: int) -> Kernel:
        made = linear(KIB)(stages)
        return kernel(*made.buffers, tmem("C_t", 32), loops=made.loops, dynamic_bytes=KIB)

    search = Search(compiler)
    assert "even with num_stages=1" in search.refused_because()
    assert search.lowered == [2, 1]  # the bytes of a stage say nothing here


@pytest.mark.parametrize("pipelined", [0, 32 * KIB])
def test_a_parameter_without_effect(pipelined: int) -> None:
    search = Search(lambda s: staged(s, 64 * KIB, pipelined=pipelined * s))
    reason = search.refused_because()
    assert "num_stages does not change the bytes" in reason
    assert "65,536 B" in reason


@pytest.mark.parametrize(("current", "last"), [(2, 33), (32, 33), (33, 34), (40, 41)])
def test_more_stages_than_anybody_pipelines(current: int, last: int) -> None:
    """33 of them fit, or one more than the author wrote: nobody asks where that ends."""
    search = Search(linear(KIB), current=current)
    assert search.refused_because() == f"{last} stages fit; larger counts were not compiled"
    assert max(search.lowered) == last


def test_counts_far_above_33_are_never_lowered() -> None:
    search = Search(lambda s: staged(s, s * KIB), current=31)
    assert search.refused_because() == "33 stages fit; larger counts were not compiled"
    assert search.lowered == [31, 32, 33]


def test_the_most_stages_that_are_looked_at() -> None:
    """32 fit and 33 do not: that is a pair like any other."""
    assert Search(linear(227 * KIB // 32)).found.largest == 32


def test_a_wrong_guess_costs_a_few_lowerings_more() -> None:
    """The bytes of one stage promise 28 stages; two fit."""
    search = Search(lambda s: staged(s, (s if s < 3 else 400) * KIB, pipelined=s * 8 * KIB))
    assert search.found.largest == 2
    assert len(search.lowered) <= 8


def test_a_search_gives_up_after_twelve_lowerings() -> None:
    search = Search(lambda s: staged(s, (s if s < 3 else 400) * KIB), current=10**6)
    assert "12 lowerings" in search.refused_because()
    assert len(search.lowered) == 12


# ---- nothing to search for --------------------------------------------------------------------


def nothing_lowered(search: Search) -> str:
    """Return the reason, having checked that no second kernel was lowered for it."""
    assert len(search.lowered) == 1
    return search.refused_because()


def test_a_kernel_without_a_stage_parameter() -> None:
    search = Search(linear(KIB), parameter=None)
    assert "no parameter" in nothing_lowered(search)
    assert search.found.parameter is None


@pytest.mark.parametrize("current", [0, -1, None, True, "3", 2.0])
def test_a_value_that_pipelines_nothing(current: Any) -> None:
    assert f"num_stages={current!r}" in nothing_lowered(Search(linear(KIB), current=current))


def test_a_kernel_without_a_pipelined_loop() -> None:
    search = Search(lambda s: staged(s, KIB, loops=()))
    assert nothing_lowered(search) == "no pipelined loop uses num_stages"


def test_a_pipelined_loop_without_iterations() -> None:
    empty = Loop(variable="ko", extent=0, num_stages=2, buffers=("A_s",))
    search = Search(lambda s: staged(s, 0, loops=(empty,)))
    assert "the loop over ko has no iterations" in nothing_lowered(search)


def test_an_empty_loop_beside_a_full_one_does_not_matter() -> None:
    """As when a loop over the rest of K follows and K divides evenly."""
    main = Loop(variable="k", extent=64, num_stages=2, buffers=("A_s",))
    rest = Loop(variable="kr", extent=0, num_stages=2, buffers=("A_s",))
    each = 32 * KIB
    search = Search(lambda s: staged(s, s * each, pipelined=s * each, loops=(main, rest)))
    assert search.found.largest == 7


def test_a_launch_that_fails_anyway() -> None:
    search = Search(lambda s: staged(s, s * KIB, threads=1152))
    assert "threads" in nothing_lowered(search)


# ---- whatever the compiler does ---------------------------------------------------------------

answers = st.one_of(
    st.integers(0, 600 * KIB),
    st.sampled_from([LIMIT, LIMIT + 1]),
    st.just(None),
    st.just("refused"),
)


@given(
    table=st.dictionaries(st.integers(1, 40), answers, max_size=20),
    each=st.integers(1, 64 * KIB),
    current=st.integers(1, 40),
)
def test_a_claim_is_always_a_pair_that_was_lowered(
    table: dict[int, int | str | None], each: int, current: int
) -> None:
    """Whatever the bytes do: what is claimed fits, the next does not, and both were lowered."""

    def size(stages: int) -> int | str | None:
        return table.get(stages, stages * each)

    def compiler(stages: int) -> Answer:
        total = size(stages)
        if isinstance(total, str) and stages != current:
            return RefusedError(total)
        # the first lowering is there already, or there would be no search
        return staged(stages, 0 if isinstance(total, str) else total, pipelined=stages * each)

    search = Search(compiler, current=current)
    found = search.found
    assert len(search.lowered) == len(set(search.lowered)) <= 12
    if found.largest is None:
        search.refused_because()
        return
    assert {found.largest, found.largest + 1} <= set(search.lowered)
    fitting, over = found.largest_bytes, found.next_bytes
    assert fitting is not None
    assert over is not None
    assert fitting <= LIMIT < over
    assert over == size(found.largest + 1)
    if not (found.largest == current and isinstance(size(current), str)):
        assert fitting == size(found.largest)


# ---- which parameter it is --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["block_M", "num_stages", "threads"], "num_stages"),
        (["NUM_STAGES"], "NUM_STAGES"),
        (["stages", "num_stages"], "num_stages"),
        (["block_M", "stages"], "stages"),
        (["stage_count_of_something"], None),
        ([], None),
    ],
)
def test_the_stage_parameter_by_its_usual_names(names: list[str], found: str | None) -> None:
    assert stage_parameter(names) == found


# ---- rings written by hand, and stages that do nothing ------------------------------------------


def ring(
    depth: int, *, columns: int = 128, rows: int = 128, arguments: str = "float16 1024x1024"
) -> Kernel:
    """A kernel whose author keeps ``depth`` slots of rows x columns fp16 himself."""
    size = depth * rows * columns * 2
    tile = buffer("s", size, shape=(depth, rows, columns), why="not-pipelined")
    return replace(kernel(tile, dynamic_bytes=size), arguments=(arguments,))


@pytest.mark.parametrize("current", [1, 2, 3, 4, 9])
def test_a_ring_written_by_hand_has_a_largest_depth(current: int) -> None:
    """Slots of 128 x 128 fp16, 32 KiB: 7 are 224 of 227 KiB."""
    search = Search(ring, current=current)
    assert (search.found.largest, search.found.largest_bytes) == (7, 7 * 32 * KIB)
    assert search.found.next_bytes == 8 * 32 * KIB
    assert set(search.lowered) <= {current, 7, 8} | ({1, 2} if current == 1 else set())


def depth_of(make: Callable[[Mapping[str, Any]], Kernel], **own: Any) -> str | None:
    """The parameter that is taken for the depth of a ring."""
    return ring_parameter((make(own),), own, own, lambda params: (make(params),))


def test_the_depth_of_a_ring_is_known_by_what_it_does_not_by_its_name() -> None:
    assert depth_of(lambda p: ring(p["deep"], columns=p["block"]), block=128, deep=3) == "deep"


def test_a_size_of_the_problem_is_no_depth() -> None:
    """Heads come first in the shape of a tile, and in that of a tensor."""

    def make(p: Mapping[str, Any]) -> Kernel:
        return ring(p["heads"], arguments=f"float16 {p['heads']}x128")

    assert depth_of(make, heads=4) is None


def test_a_tile_that_is_cut_from_the_grid_is_no_depth() -> None:
    def make(p: Mapping[str, Any]) -> Kernel:
        one = ring(p["rows"])
        return replace(one, launch=replace(one.launch, grid=(64 // p["rows"], 1, 1)))

    assert depth_of(make, rows=4) is None


def test_a_value_that_equals_an_extent_by_chance_is_no_depth() -> None:
    assert depth_of(lambda _: ring(3), groups=3) is None


def test_stages_that_change_no_code_cost_one_lowering_and_are_said() -> None:
    """As for AMD, where TileLang makes the same source of 1 and of 3."""

    def compiler(stages: int) -> Kernel:
        loop = Loop(variable="k", extent=64, num_stages=stages, buffers=("A_s",))
        why = "one-stage" if stages == 1 else "same-stage"
        tile = buffer("A_s", 32 * KIB, why=why)
        return replace(kernel(tile, dynamic_bytes=32 * KIB, loops=(loop,)), code="the same")

    search = Search(compiler, current=3)
    assert search.refused_because() == (
        "num_stages does nothing here: the compiler makes the same code at 3 and at 4"
    )
    assert search.lowered == [3, 4]
    small = Search(compiler, current=3, limit=16 * KIB)
    assert "the same code at 2 and at 3" in small.refused_because()
    assert small.lowered == [3, 2]
