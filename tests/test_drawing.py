"""The drawn map: address across, program order down, names inside, a legend below."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record_kernels import RECORDINGS, Recording, recorded
from tests.values import KIB, buffer
from tilefit._kernel.kernel import Buffer
from tilefit._kernel.memory import Memory
from tilefit._render.text.drawing import WIDTH, draw

STEP = re.compile(rf"^ *(\d+) (.{{{WIDTH}}})$")


def used(name: str, n_bytes: int, offset: int, live: tuple[int, int]) -> Buffer:
    return buffer(name, n_bytes, offset=offset, live=live)


def rows(lines: list[str]) -> list[tuple[int, str]]:
    """The step and the cells of each row of the picture."""
    found = [STEP.match(line) for line in lines[1:]]
    return [(int(m[1]), m[2]) for m in found if m]


def legend(lines: list[str]) -> dict[str, str]:
    """What each letter stands for."""
    last = max(n for n, line in enumerate(lines) if STEP.match(line))
    text = "   ".join(line.strip() for line in lines[last + 1 :])
    return dict(re.findall(r"(?:^|   )(\w) ([\w.#]+ [\d,]+ B)(?=   |$)", text))


# ---- by hand ------------------------------------------------------------------------------------


def test_three_buffers_by_hand() -> None:
    """60 cells of 1 KiB: `a` and `b` side by side, then `out` over `a`."""
    lines = draw(
        [
            used("a", 20 * KIB, 0, (3, 12)),
            used("b", 40 * KIB, 20 * KIB, (5, 12)),
            used("out", 12 * KIB, 0, (12, 15)),
        ],
        60 * KIB,
    )
    assert lines == [
        "   step 0                                                   61,440 B",
        "      3 AAAAAAAA a AAAAAAAAA........................................",
        "      5 AAAAAAAA a AAAAAAAAABBBBBBBBBBBBBBBBBB b BBBBBBBBBBBBBBBBBBB",
        "     12 CCC out CCCC................................................",
        "        A a 20,480 B   B b 40,960 B   C out 12,288 B",
    ]


def test_a_name_stands_inside_where_two_letters_remain_on_each_side() -> None:
    """` ab ` and four letters take 8 cells."""
    lines = draw([used("ab", 8, 0, (1, 2)), used("cd", 7, 8, (1, 2))], 60)
    assert rows(lines) == [(1, "AA ab AA" + "BBBBBBB" + "." * 45)]


def test_stretches_with_the_same_buffers_are_one_row() -> None:
    """Of the steps 1 to 9 those where a buffer is born or dies: 1, 3 and 6."""
    lines = draw(
        [
            used("a", 30, 0, (1, 9)),
            used("b", 10, 30, (3, 6)),
            used("c", 10, 40, (6, 9)),
        ],
        60,
    )
    assert [step for step, _ in rows(lines)] == [1, 3, 6]


def test_a_stretch_without_buffers_has_no_row() -> None:
    lines = draw([used("a", 60, 0, (1, 3)), used("b", 60, 0, (7, 9))], 60)
    assert [(step, cells[0]) for step, cells in rows(lines)] == [(1, "A"), (7, "B")]


def test_a_buffer_of_less_than_a_cell_is_seen_beside_large_ones() -> None:
    """8 bytes in a cell of 100, the rest of which is a tile's."""
    tiles = [used("left", 3000, 0, (1, 5)), used("right", 2992, 3008, (1, 5))]
    small = used("bars", 8, 3000, (1, 5))
    for order in ([small, *tiles], [*tiles, small]):
        lines = draw(order, 6000)
        letter = next(k for k, v in legend(lines).items() if v.startswith("bars"))
        ((_, cells),) = rows(lines)
        assert cells[30] == letter  # 3000 of 6000 bytes is cell 30 of 60
        assert cells.count(letter) == 1


def test_a_part_of_a_cell_is_drawn_as_a_whole_one() -> None:
    """2 bytes a cell: 3 bytes are two cells, 1 byte is one; 8 bytes on whole cells are four."""
    lines = draw([used("a", 3, 0, (1, 2)), used("b", 1, 6, (1, 2)), used("c", 8, 10, (1, 2))], 120)
    assert rows(lines) == [(1, "AA.B.CCCC" + "." * 51)]


def test_more_than_26_buffers_keep_different_letters() -> None:
    found = draw([used(f"b{n}", 1, n, (n, n + 1)) for n in range(40)], 40)
    assert sorted(legend(found).values()) == sorted(f"b{n} 1 B" for n in range(40))


def test_a_long_program_says_how_much_of_it_is_drawn() -> None:
    lines = draw([used(f"b{n}", 8, 8 * n, (n, n + 1)) for n in range(20)], 160)
    steps = [step for step, _ in rows(lines)]
    assert len(steps) == 14
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert "14 of 20 stretches of the program are drawn" in [line.strip() for line in lines]
    short = draw([used(f"b{n}", 8, 8 * n, (n, n + 1)) for n in range(14)], 160)
    assert len(rows(short)) == 14
    assert not [line for line in short if "stretches" in line]


@pytest.mark.parametrize(
    ("buffers", "total"),
    [
        ([], 60),
        ([buffer("a", 60, offset=None, live=(1, 2))], 60),
        ([buffer("a", 60, offset=0, live=None)], 60),
        ([buffer("a", None, offset=0, live=(1, 2))], 60),
        ([buffer("a", 0, offset=0, live=(1, 2))], 60),
        ([used("a", 60, 0, (4, 4))], 60),
        ([used("a", 60, 0, (1, 2))], 0),
    ],
)
def test_what_has_no_place_is_not_drawn(buffers: list[Buffer], total: int) -> None:
    assert draw(buffers, total) == []


def test_those_without_a_place_leave_the_others() -> None:
    lines = draw([buffer("gone", 0, copies=0), used("a", 60, 0, (1, 2))], 60)
    assert legend(lines) == {"A": "a 60 B"}


# ---- any layout ---------------------------------------------------------------------------------

CELL = 16


@st.composite
def layouts(draw_: st.DrawFn) -> tuple[list[Buffer], int]:
    """Buffers on whole cells; those that live together do not overlap."""
    found: list[Buffer] = []
    for number in range(draw_(st.integers(1, 9))):
        first, length = draw_(st.integers(0, 55)), draw_(st.integers(1, 40))
        start, steps = draw_(st.integers(0, 8)), draw_(st.integers(1, 5))
        one = used(
            f"n{number}",
            min(length, WIDTH - first) * CELL,
            first * CELL,
            (start, start + steps),
        )
        if not any(_meet(one, other) for other in found):
            found.append(one)
    return found, WIDTH * CELL


def _meet(a: Buffer, b: Buffer) -> bool:
    assert a.live
    assert b.live
    together = a.live[0] < b.live[1] and b.live[0] < a.live[1]
    return together and bool(cells_of(a) & cells_of(b))


def cells_of(one: Buffer) -> set[int]:
    assert one.offset is not None
    assert one.bytes is not None
    return set(range(one.offset // CELL, (one.offset + one.bytes) // CELL))


@given(layouts())
def test_each_cell_shows_the_one_buffer_that_lives_there(
    layout: tuple[list[Buffer], int],
) -> None:
    buffers, total = layout
    lines = draw(buffers, total)
    letters = {v.split()[0]: k for k, v in legend(lines).items()}
    assert sorted(letters) == sorted(b.name for b in buffers)
    assert len(set(letters.values())) == len(buffers)
    for step, cells in rows(lines):
        alive = [b for b in buffers if b.live and b.live[0] <= step < b.live[1]]
        for number, cell in enumerate(cells):
            here = [b for b in alive if number in cells_of(b)]
            if not here:
                assert cell == "."
            elif cell != letters[here[0].name]:
                # inside a name, which stands in its own buffer's cells
                name = f" {here[0].name} "
                first = min(cells_of(here[0]))
                width = len(cells_of(here[0]))
                at = first + (width - len(name)) // 2
                assert cells[at : at + len(name)] == name
                assert at <= number < at + len(name)
                assert width >= len(name) + 4


@given(layouts())
def test_a_name_stands_in_every_row_where_there_is_room(
    layout: tuple[list[Buffer], int],
) -> None:
    buffers, total = layout
    for step, cells in rows(draw(buffers, total)):
        for one in buffers:
            assert one.live
            if one.live[0] <= step < one.live[1]:
                room = len(cells_of(one)) >= len(f" {one.name} ") + 4
                assert (f" {one.name} " in cells) == room


@given(layouts())
def test_steps_are_the_births_and_deaths_that_change_the_picture(
    layout: tuple[list[Buffer], int],
) -> None:
    buffers, total = layout

    def alive(step: int) -> set[str]:
        return {b.name for b in buffers if b.live and b.live[0] <= step < b.live[1]}

    last = max(b.live[1] for b in buffers if b.live)
    expected = [step for step in range(last) if alive(step) and alive(step) != alive(step - 1)]
    assert [step for step, _ in rows(draw(buffers, total))] == expected


anywhere = st.lists(
    st.builds(
        used,
        st.from_regex(r"[a-z_]{1,24}", fullmatch=True),
        st.integers(1, 200_000),
        st.integers(0, 200_000),
        st.tuples(st.integers(0, 10**5), st.integers(1, 10**4)).map(lambda t: (t[0], sum(t))),
    ),
    min_size=1,
    max_size=20,
)


@given(anywhere, st.integers(0, 10**5))
def test_a_line_has_at_most_74_columns(buffers: list[Buffer], behind: int) -> None:
    """Whatever the sizes; every row is complete and every buffer is in the legend."""
    total = max((b.offset or 0) + (b.bytes or 0) for b in buffers) + behind
    lines = draw(buffers, total)
    assert max(map(len, lines)) <= 74
    assert all(line == line.rstrip() for line in lines)
    assert lines[0].split() == ["step", "0", f"{total:,}", "B"]
    assert len(legend(lines)) == len(buffers)
    assert rows(lines)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.path.stem)
def test_every_byte_of_a_real_kernel_is_drawn_where_it_lies(recording: Recording) -> None:
    value = recorded(recording.path)
    shared = [b for b in value.buffers if b.memory is Memory.SHARED and not b.static and b.copies]
    lines = draw(shared, value.staged.dynamic_bytes or 0)
    if not shared:
        assert lines == []
        return
    letters = {v.split()[0]: k for k, v in legend(lines).items()}
    assert sorted(letters) == sorted(b.name for b in shared)
    for one in shared:
        assert one.live
        total = value.staged.dynamic_bytes or 0
        middle = ((one.offset or 0) + (one.bytes or 0) // 2) * WIDTH // total
        drawn = [
            cells[middle - 12 : middle + 12]
            for step, cells in rows(lines)
            if one.live[0] <= step < one.live[1]
        ]
        assert drawn
        assert all(f" {one.name} " in cells for cells in drawn)
