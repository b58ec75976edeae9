"""The shared-memory packer: its rules by hand, its laws, and what the real compiler chose.

The recorded layouts come from TileLang (tests/record_packing.py); nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.record_packing import FILES, FIXTURES, TARGETS, Case, path_of, recorded
from tilefit._errors import InputError
from tilefit._kernel.units import round_up
from tilefit._placement import tilelang_packer as _packing
from tilefit._placement.tilelang_packer import Hole, Interval, agrees, live_peak, pack

KIB = 1024


def interval(name: str, start: int, end: int, size: int | None, align_bytes: int = 16) -> Interval:
    return Interval(name=name, start=start, end=end, bytes=size, align_bytes=align_bytes)


# ---- the rules, by hand ------------------------------------------------------------------


def test_a_buffer_takes_the_bytes_of_one_that_died_at_its_first_step() -> None:
    packing = pack([interval("a", 0, 5, 4 * KIB), interval("b", 5, 9, 4 * KIB)])
    assert packing == _packing.Packing((0, 0), 4 * KIB)


def test_a_buffer_that_is_read_in_the_step_of_the_next_ones_birth_keeps_its_bytes() -> None:
    packing = pack([interval("a", 0, 6, 4 * KIB), interval("b", 5, 9, 4 * KIB)])
    assert packing == _packing.Packing((0, 4 * KIB), 4 * KIB + 4 * KIB)


def test_of_two_holes_the_one_with_less_to_spare_is_taken() -> None:
    # wide 0..8K dies, wall 8..9K lives, narrow 9..13K dies, roof 13..14K lives: 3 KiB go to 9 KiB
    buffers = [
        interval("wide", 0, 4, 8 * KIB),
        interval("wall", 1, 9, 1 * KIB),
        interval("narrow", 2, 4, 4 * KIB),
        interval("roof", 3, 9, 1 * KIB),
        interval("new", 4, 9, 3 * KIB),
    ]
    assert pack(buffers).offsets[-1] == (8 + 1) * KIB


def test_of_two_equal_holes_the_lower_is_taken() -> None:
    buffers = [
        interval("low", 0, 4, 4 * KIB),
        interval("wall", 1, 9, 1 * KIB),
        interval("high", 2, 4, 4 * KIB),
        interval("roof", 3, 9, 1 * KIB),
        interval("new", 4, 9, 3 * KIB),
    ]
    assert pack(buffers).offsets[-1] == 0


def test_what_the_alignment_eats_of_a_hole_counts_as_spare() -> None:
    # 512 B at a multiple of 512 fit into both holes, 16..1056 (at 512, 32 B behind it) and
    # 1072..2096 (at 1536, 48 B behind it); the second is the smaller one and is taken
    buffers = [
        interval("floor", 0, 9, 16),
        interval("below", 1, 5, 1040),
        interval("wall", 2, 9, 16),
        interval("above", 3, 5, 1024),
        interval("roof", 4, 9, 16),
        interval("new", 5, 9, 512, 512),
    ]
    packing = pack(buffers)
    assert packing.offsets[:5] == (0, 16, 16 + 1040, 1056 + 16, 1072 + 1024)
    assert packing.offsets[5] == 3 * 512


def test_neighbouring_holes_join() -> None:
    buffers = [
        interval("a", 0, 5, 1 * KIB),
        interval("b", 1, 4, 1 * KIB),
        interval("c", 2, 6, 1 * KIB),
        interval("roof", 3, 9, 16),
        interval("new", 6, 9, 3 * KIB),
    ]
    assert pack(buffers).offsets[-1] == 0


def test_a_larger_buffer_starts_in_the_hole_at_the_top_and_the_array_grows() -> None:
    packing = pack(
        [interval("base", 0, 9, KIB), interval("tail", 1, 3, KIB), interval("big", 3, 9, 4 * KIB)]
    )
    assert packing == _packing.Packing((0, KIB, KIB), KIB + 4 * KIB)


def test_the_gap_in_front_of_an_aligned_buffer_serves_a_small_one() -> None:
    packing = pack(
        [
            interval("head", 0, 9, 16),
            interval("aligned", 1, 9, 1024, 1024),
            interval("small", 2, 9, 256),
        ]
    )
    assert packing == _packing.Packing((0, 1024, 16), 1024 + 1024)


def test_born_together_the_larger_goes_first_and_then_the_name_decides() -> None:
    packing = pack(
        [interval("z", 0, 9, 1 * KIB), interval("a", 0, 9, 1 * KIB), interval("m", 0, 9, 2 * KIB)]
    )
    assert packing.offsets == ((2 + 1) * KIB, 2 * KIB, 0)


def test_one_buffer_keeps_its_odd_size_and_two_are_rounded_to_16() -> None:
    one = interval("only", 0, 2, 37)
    assert pack([one]) == _packing.Packing((0,), 37)
    assert pack([one, interval("other", 1, 2, 37)]).total_bytes == round_up(48 + 37, 16)
    assert pack([]) == _packing.Packing((), 0)


def test_a_buffer_that_nothing_touches_gets_no_place() -> None:
    used = [interval("a", 0, 9, 64), interval("b", 1, 9, 64)]
    packing = pack([*used, interval("unused", 0, 0, 4 * KIB)])
    assert packing == _packing.Packing((0, 64, None), 64 + 64)


def test_without_reuse_buffers_stand_in_order_of_their_names() -> None:
    buffers = [
        interval("c", 0, 1, 100),
        interval("a", 5, 6, 100),
        interval("b", 3, 4, 100, 1024),
        interval("d", 0, 0, 100),
    ]
    packing = pack(buffers, reuse=False)
    assert packing.offsets == (round_up(1024 + 100, 16), 0, 1024, round_up(1136 + 100, 16))
    assert packing.total_bytes == round_up(1248 + 100, 16)


def test_an_open_size_stands_behind_the_rest_and_leaves_the_total_open() -> None:
    buffers = [
        interval("open", 0, 9, None, 1024),
        interval("known", 1, 9, 48),
        interval("later", 2, 9, None),
    ]
    assert pack(buffers) == _packing.Packing((1024, 0, None), None)
    assert pack(buffers[:1]) == _packing.Packing((0,), None)
    by_name = pack(buffers, reuse=False)
    assert by_name == _packing.Packing((None, 0, 48), None)


def test_an_alignment_below_16_counts_as_16() -> None:
    packing = pack([interval("a", 0, 9, 1, 1), interval("b", 0, 9, 1, 8)])
    assert packing == _packing.Packing((0, 16), 16 + 16)


def test_the_peak_is_the_most_that_lives_at_one_step() -> None:
    # step 2: a and b live; step 3: b and c; a's last step is 2
    buffers = [interval("a", 0, 3, 100), interval("b", 1, 5, 10), interval("c", 3, 6, 70)]
    assert live_peak(buffers) == 100 + 10
    assert live_peak([]) == 0


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"bytes": -1}, "negative"),
        ({"align_bytes": 0}, "alignment"),
        ({"start": 3, "end": 2}, "before"),
    ],
)
def test_a_value_that_no_buffer_can_have_is_refused(bad: dict[str, int], word: str) -> None:
    good = interval("tile", 0, 1, 16)
    with pytest.raises(InputError, match=f"'tile'.*{word}"):
        replace(good, **bad)


# ---- laws --------------------------------------------------------------------------------

untimed = settings(deadline=None)
ALIGNMENTS = (16, 128, 256, 512, 1024)


@st.composite
def buffers(draw: st.DrawFn) -> list[Interval]:
    """Between two and twelve buffers with short lives, so that many start and end together."""
    found = []
    for number in range(draw(st.integers(2, 12))):
        start = draw(st.integers(0, 12))
        found.append(
            interval(
                draw(st.sampled_from(["workspace", f"b{number}", f"a{number}"])),
                start,
                start + draw(st.integers(1, 6)),
                draw(st.one_of(st.integers(1, 300), st.sampled_from([512, 1024, 2048, 4096]))),
                draw(st.sampled_from(ALIGNMENTS)),
            )
        )
    return found


@untimed
@given(buffers(), st.booleans())
def test_no_two_buffers_that_live_together_overlap(given: list[Interval], reuse: bool) -> None:
    packing = pack(given, reuse=reuse)
    placed = list(zip(given, packing.offsets, strict=True))
    for number, (a, a_start) in enumerate(placed):
        for b, b_start in placed[:number]:
            together = a.start < b.end and b.start < a.end
            if together or not reuse:
                apart = a_start + a.bytes <= b_start or b_start + b.bytes <= a_start
                assert apart, (a, a_start, b, b_start)


@untimed
@given(buffers(), st.booleans())
def test_every_offset_is_aligned_and_inside_the_array(given: list[Interval], reuse: bool) -> None:
    packing = pack(given, reuse=reuse)
    for one, offset in zip(given, packing.offsets, strict=True):
        assert offset % one.align_bytes == 0
        assert 0 <= offset <= offset + one.bytes <= packing.total_bytes
    assert packing.total_bytes % 16 == 0


@untimed
@given(buffers(), st.booleans())
def test_the_total_is_between_the_live_peak_and_the_aligned_sum(
    given: list[Interval], reuse: bool
) -> None:
    strictest = max(one.align_bytes for one in given)
    total = pack(given, reuse=reuse).total_bytes
    assert live_peak(given) <= total <= sum(round_up(one.bytes, strictest) for one in given)


@untimed
@given(buffers())
def test_with_one_alignment_sharing_never_costs_bytes(given: list[Interval]) -> None:
    alike = [replace(one, align_bytes=16) for one in given]
    assert pack(alike).total_bytes <= pack(alike, reuse=False).total_bytes


@untimed
@given(buffers())
@example([interval("b", 0, 1, 2 * KIB), interval("a", 1, 2, KIB), interval("c", 0, 2, KIB)])
def test_a_buffer_that_is_born_later_moves_none_that_is_there(given: list[Interval]) -> None:
    first = [one for one in given if one.start <= 6]
    if len(first) < 2:
        return
    later = [one for one in given if one.start > 6]
    packing, alone = pack([*first, *later]), pack(first)
    assert packing.offsets[: len(first)] == alone.offsets
    assert packing.total_bytes >= alone.total_bytes


@untimed
@given(buffers(), st.randoms(use_true_random=False), st.booleans())
def test_the_order_in_which_buffers_are_given_does_not_matter(
    given: list[Interval], random: Random, reuse: bool
) -> None:
    # names apart: without reuse the given order decides between namesakes
    named = [replace(one, name=f"{one.name}{n:02}") for n, one in enumerate(given)]
    shuffled = list(named)
    random.shuffle(shuffled)
    packing, again = pack(named, reuse=reuse), pack(shuffled, reuse=reuse)
    places = dict(zip(shuffled, again.offsets, strict=True))
    assert packing.offsets == tuple(places[one] for one in named)
    assert packing.total_bytes == again.total_bytes


@untimed
@given(buffers())
def test_names_matter_only_between_buffers_of_one_size_born_together(
    given: list[Interval],
) -> None:
    apart = {(one.start, one.bytes): one for one in given}
    kept = list(apart.values())
    renamed = [replace(one, name=f"n{len(kept) - n:02}") for n, one in enumerate(kept)]
    assert pack(renamed) == pack(kept)


@untimed
@given(buffers(), st.integers(1, 1000))
def test_only_the_order_of_steps_matters(given: list[Interval], shift: int) -> None:
    stretched = [replace(i, start=3 * i.start + shift, end=3 * i.end + shift) for i in given]
    assert pack(stretched) == pack(given)


@untimed
@given(buffers(), st.booleans())
def test_a_layout_agrees_with_itself_and_with_no_shifted_one(
    given: list[Interval], reuse: bool
) -> None:
    packing = pack(given, reuse=reuse)
    assert agrees(given, packing.offsets, packing.total_bytes, reuse=reuse)
    assert not agrees(given, packing.offsets, packing.total_bytes + 16, reuse=reuse)
    moved = (packing.offsets[0] + 1024, *packing.offsets[1:])
    assert not agrees(given, moved, packing.total_bytes, reuse=reuse)


def test_only_buffers_alike_in_everything_may_change_places() -> None:
    twins = [interval("workspace", 0, 3, 512), interval("workspace", 0, 3, 512)]
    assert agrees(twins, (512, 0), 1024)
    others = [interval("a", 0, 3, 512), interval("b", 0, 3, 512)]
    assert not agrees(others, (512, 0), 1024)


def test_without_reuse_namesakes_may_stand_in_either_order() -> None:
    namesakes = [interval("workspace", 0, 3, 512), interval("workspace", 4, 5, 64)]
    assert agrees(namesakes, (0, 512), 576, reuse=False)
    assert agrees(namesakes, (64, 0), 576, reuse=False)
    assert not agrees(namesakes, (512, 0), 576, reuse=False)


# ---- what the real compiler chose --------------------------------------------------------


def all_recorded() -> tuple[Case, ...]:
    return tuple(case for path in sorted(FIXTURES.glob("*.json")) for case in recorded(path))


RECORDED = all_recorded()


def unmatched(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if not case.matches()]


@pytest.mark.parametrize("case", RECORDED, ids=str)
def test_the_packer_finds_the_compilers_offsets_and_total(case: Case) -> None:
    assert case.matches(), pack(case.intervals, reuse=case.reuse)


@pytest.mark.parametrize("case", RECORDED, ids=str)
def test_the_compilers_layout_keeps_the_laws_for_our_live_intervals(case: Case) -> None:
    """A live interval that is too long would make the compiler's own layout overlap."""
    placed = [(i, o) for i, o in zip(case.intervals, case.offsets, strict=True) if o is not None]
    for number, (a, a_start) in enumerate(placed):
        assert a_start % a.align_bytes == 0
        for b, b_start in placed[:number]:
            if a.start < b.end and b.start < a.end and a.bytes and b.bytes:
                assert a_start + a.bytes <= b_start or b_start + b.bytes <= a_start


def test_the_recordings_are_rich_enough_to_show_something() -> None:
    assert {path_of(file) for file in FILES} == set(FIXTURES.glob("*.json"))
    assert {case.target for case in RECORDED} == set(TARGETS)
    assert len([case for case in RECORDED if len(case.intervals) >= 3]) >= 35
    assert len([case for case in RECORDED if case.shares]) >= 25
    assert len([case for case in RECORDED if not case.reuse]) >= 4


# ---- mutants: each wrong rule must be seen in a recorded layout ---------------------------


def altered(case: Case, change: Callable[[Interval], Interval]) -> Case:
    return replace(case, intervals=tuple(change(one) for one in case.intervals))


INPUT_MUTANTS: dict[str, Callable[[Interval], Interval]] = {
    "dies one step early": lambda i: replace(i, end=max(i.start + 1, i.end - 1)),
    "dies one step late": lambda i: replace(i, end=i.end + 1),
    "born one step early": lambda i: replace(i, start=max(0, i.start - 1)),
    "born one step late": lambda i: replace(i, start=min(i.end - 1, i.start + 1)),
    "alignment 16 for 128": lambda i: replace(
        i, align_bytes=16 if i.align_bytes == 128 else i.align_bytes
    ),
    "alignment 128 for 1024": lambda i: replace(i, align_bytes=min(128, i.align_bytes)),
    "alignment 1024 for all": lambda i: replace(i, align_bytes=1024),
    "lives for ever": lambda i: replace(i, start=0, end=1000),
}


@pytest.mark.parametrize("mutant", INPUT_MUTANTS)
def test_a_wrong_interval_is_seen(mutant: str) -> None:
    assert not unmatched(RECORDED)
    assert unmatched([altered(case, INPUT_MUTANTS[mutant]) for case in RECORDED])


def first_fit(holes: Sequence[Hole], need: int, align: int) -> int | None:
    return next((n for n, hole in enumerate(holes) if fits(hole, need, align)), None)


def last_fit(holes: Sequence[Hole], need: int, align: int) -> int | None:
    return next((n for n, h in reversed(list(enumerate(holes))) if fits(h, need, align)), None)


def worst_fit(holes: Sequence[Hole], need: int, align: int) -> int | None:
    sizes = [(-hole[1], n) for n, hole in enumerate(holes) if fits(hole, need, align)]
    return min(sizes)[1] if sizes else None


def fits(hole: Hole, need: int, align: int) -> bool:
    return round_up(hole[0], align) + need <= sum(hole)


@pytest.mark.parametrize("strategy", [first_fit, last_fit, worst_fit, lambda *_: None])
def test_another_choice_of_the_hole_is_seen(
    strategy: Callable[[Sequence[Hole], int, int], int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_packing, "choose_hole", strategy)
    assert unmatched(RECORDED)


TURNS: dict[str, Callable[[Interval], tuple[object, ...]]] = {
    "smaller first": lambda i: (i.start, i.bytes or 0, i.name),
    "by name only": lambda i: (i.start, i.name),
    "later name first": lambda i: (i.start, -(i.bytes or 0), [-ord(c) for c in i.name]),
    "largest first of all": lambda i: (-(i.bytes or 0), i.start, i.name),
}


@pytest.mark.parametrize("turn", TURNS)
def test_another_order_is_seen(turn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_packing, "_turn", TURNS[turn])
    assert unmatched(RECORDED)


def test_a_packer_that_never_grows_from_the_last_hole_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = _packing._Arena.place

    def place(arena: _packing._Arena, need: int, align: int) -> int:
        if _packing.choose_hole(arena.holes, need, align) is not None:
            return real(arena, need, align)
        arena.top, top = round_up(arena.top, align) + need, arena.top
        arena.free(top, round_up(top, align) - top)
        return arena.top - need

    monkeypatch.setattr(_packing._Arena, "place", place)
    assert unmatched(RECORDED)


def test_a_packer_that_loses_alignment_gaps_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _packing._Arena.free

    def free(arena: _packing._Arena, start: int, size: int) -> None:
        if start < arena.top:  # a gap in front of an appended buffer starts at the top
            real(arena, start, size)

    monkeypatch.setattr(_packing._Arena, "free", free)
    assert unmatched(RECORDED)


def test_ignoring_that_reuse_is_off_is_seen() -> None:
    apart = [case for case in RECORDED if not case.reuse]
    assert unmatched([replace(case, reuse=True) for case in apart])
