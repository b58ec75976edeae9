"""The text of `plan` below the table: ladder, tried edits, blocks, roles, notes, the drawn map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.edit_set import MERGE
from tests.made_gemm import MadeSession
from tests.stand_in import use
from tests.test_plan_text import result
from tests.values import KIB, buffer, kernel, made
from tilefit._kernel.kernel import Kernel, Role
from tilefit._kernel.memory import Memory
from tilefit._placement.account import account
from tilefit._planning.report import Edit, NextStep, Outcome, Report, Residency, Result, Rung, Tried
from tilefit._planning.suggest import loss_of
from tilefit._render import json as _json
from tilefit._render import table as _table
from tilefit._render.text import map as _text
from tilefit._verdict.judge import Status
from tilefit.cli import main

WIDTH = 80
LIMIT = 227 * KIB


def page(found: Result, **changes: Any) -> list[str]:
    return _text.render(Report((replace(found, **changes),))).plain.splitlines()


def after(lines: list[str], label: str) -> list[str]:
    """The line with a label, without it, and the lines that go on below it."""
    (first,) = [n for n, line in enumerate(lines) if line.startswith(label)]
    found = [lines[first].removeprefix(label).strip()]
    for line in lines[first + 1 :]:
        if not line.startswith(" " * 8):
            break
        found.append(line.strip())
    return found


def held(blocks: int | None, **changes: Any) -> Residency:
    values = {"exact": True, "limiters": ("registers",), "by_shared": 2, "by_registers": 1}
    return Residency(**{"blocks": blocks, **values, **changes})


def came_to(total: int, **changes: Any) -> Outcome:
    status = Status.FITS if total <= LIMIT else Status.DOES_NOT_FIT
    values = {"status": status, "reason": None, "total_bytes": total, "limit_bytes": LIMIT}
    return Outcome(**{**values, **changes})


# ---- blocks, roles, notes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("residency", "line"),
    [
        (held(1), ["1 per SM, held by registers"]),
        (
            held(2, exact=False, limiters=("shared", "warps")),
            ["at most 2 per SM by shared and warps (registers unknown)"],
        ),
        (held(3, core="CU"), ["3 per CU, held by registers"]),
    ],
)
def test_blocks_of_one_core(residency: Residency, line: list[str]) -> None:
    assert after(page(result(kernel()), residency=residency), "blocks ") == line


@pytest.mark.parametrize("residency", [None, held(None), held(0)])
def test_no_line_about_blocks_where_there_are_none(residency: Residency | None) -> None:
    lines = page(result(kernel()), residency=residency)
    assert not [line for line in lines if line.startswith("blocks")]


@pytest.mark.parametrize(
    ("registers", "text"),
    [
        (
            (24, 240),
            "producer 128 threads x 24, consumer 1,024 threads x 240 (registers by setmaxnreg)",
        ),
        ((None, None), "producer 128 threads, consumer 1,024 threads"),
        (
            (24, None),
            "producer 128 threads x 24, consumer 1,024 threads (registers by setmaxnreg)",
        ),
    ],
)
def test_roles_name_their_threads_and_the_registers_that_are_set(
    registers: tuple[int | None, int | None], text: str
) -> None:
    roles = tuple(
        Role(name=name, threads=threads, registers=count)
        for name, threads, count in zip(
            ("producer", "consumer"), (128, 1024), registers, strict=True
        )
    )
    assert " ".join(after(page(result(replace(kernel(), roles=roles))), "roles ")) == text


def test_without_roles_there_is_no_line_about_them() -> None:
    assert not [line for line in page(result(kernel())) if line.startswith("roles")]


def test_a_long_note_goes_on_below_itself() -> None:
    note = " ".join(f"word{n}" for n in range(40))  # 269 columns
    lines = page(result(replace(kernel(), notes=(note, "short"))))
    first = next(n for n, line in enumerate(lines) if line.startswith("note    word0 "))
    end = lines.index("note    short")
    assert end - first == 4  # 269 columns in lines of 71
    assert all(line.startswith("        word") for line in lines[first + 1 : end])
    assert " ".join(line[8:] for line in lines[first:end]) == note
    assert max(map(len, lines)) <= WIDTH


def test_where_our_packer_differs_is_a_note() -> None:
    lines = page(result(kernel()), packing_note="our packer puts a at 0: please report")
    assert lines[-1] == "note    our packer puts a at 0: please report"


# ---- shared memory ------------------------------------------------------------------------------


def shared(*buffers: Any, dynamic_bytes: int, **more: Any) -> Result:
    value = kernel(*buffers, dynamic_bytes=dynamic_bytes, **more)
    return replace(result(value), rows=account(value))


def test_a_row_says_whose_bytes_it_uses_again() -> None:
    lines = page(
        shared(
            buffer("a", 16 * KIB, offset=0, why="pipeline", line=7),
            buffer("b", 16 * KIB, offset=16 * KIB, why="pipeline"),
            buffer("c", 8 * KIB, offset=0, why="not-pipelined", line=9),
            dynamic_bytes=32 * KIB,
        )
    )
    rows = {line.split()[1]: line.split()[5:] for line in lines if "int8" in line}
    assert rows["a"] == ["0", "pipeline", ":7"]
    assert rows["b"] == ["16,384", "pipeline"]
    assert rows["c"] == ["0", "not-pipelined", ":9", "reuses", "a"]


def test_a_buffer_that_shares_some_of_its_bytes_says_so() -> None:
    """24 KiB lie over all of `a` and half of `b`; of two `w` only the one below `c` shares."""
    lines = page(
        shared(
            buffer("a", 16 * KIB, offset=0, why="pipeline"),
            buffer("b", 16 * KIB, offset=16 * KIB, why="pipeline"),
            buffer("c", 24 * KIB, offset=0, why="not-pipelined"),
            buffer("w", 512, offset=33 * KIB, why="reduce-workspace"),
            buffer("w", 512, offset=0, why="reduce-workspace"),
            dynamic_bytes=34 * KIB,
        )
    )
    rows = [line.split("  ")[-1] for line in lines if "int8" in line]
    assert rows == [
        *("reuses c, w", "reuses c", "not-pipelined", "reduce-workspace", "reuses a, c"),
    ]


def test_more_than_two_buffers_under_one_are_shortened() -> None:
    parts = [buffer(f"p{n}", KIB, offset=n * KIB, live=(1, 2), why="pipeline") for n in range(4)]
    over = buffer("over", 3 * KIB, offset=0, live=(3, 4), why="not-pipelined")
    # the larger one comes first in address order: it counts, the small ones use its bytes
    lines = page(shared(*parts, over, dynamic_bytes=4 * KIB))
    rows = {line.split()[1]: line for line in lines if "int8" in line}
    assert rows["p0"].endswith("pipeline  reuses over")
    assert rows["p3"].endswith("pipeline")
    under = buffer("under", KIB, offset=KIB // 2, why="not-pipelined")
    lines = page(shared(*parts, over, under, dynamic_bytes=4 * KIB))
    (at,) = [n for n, line in enumerate(lines) if " under " in line and "int8" in line]
    assert lines[at + 1].strip() == "reuses p0, p1, ..."


def test_a_row_that_is_too_long_goes_on_below_its_last_cell() -> None:
    under = buffer("keys_tile", 128 * KIB, offset=0, live=(1, 2), shape=(4, 128, 128))
    over = buffer(
        *("out_tile", 64 * KIB),
        offset=0,
        live=(3, 4),
        shape=(128, 128),
        why="not-pipelined",
        line=116,
    )
    lines = page(shared(under, over, dynamic_bytes=128 * KIB))
    assert max(map(len, lines)) <= WIDTH
    (at,) = [n for n, line in enumerate(lines) if "out_tile" in line]
    column = lines[at].index("not-pipelined")
    assert lines[at][column:] == "not-pipelined  :116"
    assert lines[at + 1] == " " * column + "reuses keys_tile"


def test_gaps_are_rows_with_their_place() -> None:
    lines = page(
        shared(
            buffer("scale", 128, offset=0),
            buffer("tile", 2 * KIB, offset=KIB, align_bytes=KIB),
            dynamic_bytes=3 * KIB,
        )
    )
    assert "        896  gap at 128: alignment-gap" in lines  # 1,024 - 128


def test_static_items_are_named_below_their_rounded_sum() -> None:
    names = [f"b{n}" for n in range(9)]
    items = [
        buffer(name, 8, offset=16 * n, static=True, why="barrier") for n, name in enumerate(names)
    ]
    # eight times 16 and 8 more bytes; what is free between them is no row of its own
    lines = page(shared(*items, dynamic_bytes=0, static_bytes=8 * 16 + 8, align=1024))
    total = "      1,024  static: 136 B rounded up to 1,024, the dynamic array's alignment"
    below = lines[lines.index(total) + 1 :]
    listed = " ".join(
        line.strip()
        for line in below[: below.index(next(line for line in below if "launch total" in line))]
    )
    assert listed == ", ".join(f"{name} 8 B (barrier)" for name in names)
    assert not [line for line in lines if "gap at" in line]
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(("count", "drawn"), [(2, False), (3, True)])
def test_the_map_is_drawn_from_three_buffers_on(count: int, drawn: bool) -> None:
    tiles = [buffer(f"t{n}", KIB, offset=n * KIB, live=(n, n + 2)) for n in range(count)]
    lines = page(shared(*tiles, buffer("gone", 0, copies=0), dynamic_bytes=count * KIB))
    assert bool([line for line in lines if line.startswith("   step 0 ")]) == drawn
    if drawn:
        assert "        A t0 1,024 B   B t1 1,024 B   C t2 1,024 B" in lines


def test_buffers_whose_layout_changed_are_drawn_too() -> None:
    """Their bytes are no multiple of those declared, and are there all the same."""
    tiles = [
        buffer(f"t{n}", KIB, offset=n * KIB, live=(1, 2), copies=None, why="layout")
        for n in range(3)
    ]
    lines = page(shared(*tiles, dynamic_bytes=3 * KIB))
    assert [line for line in lines if line.startswith("   step 0 ")]


# ---- the ladder ---------------------------------------------------------------------------------


def ladder_of(*rungs: Rung, **changes: Any) -> list[str]:
    lines = page(result(kernel()), ladder=rungs, ladder_parameter="num_stages", **changes)
    first = next(n for n, line in enumerate(lines) if line.startswith("  num_stages"))
    return lines[first:]


def test_a_ladder_by_hand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Stages of 32 KiB; an SM of the 4090 has 100 KiB, of which each block costs 1 more."""
    (tmp_path / "gemm.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, MadeSession)
    assert main(["plan", "gemm.py", "-d", "rtx-4090", "--ladder", "num_stages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-6:] == [
        "  num_stages   launch    %  by shared  by regs  blocks/SM  in flight/SM",
        "           1   32,768   32          3        ?       <= 3     <= 96 KiB",
        "           2   65,536   65          1        ?       <= 1     <= 64 KiB",
        "           3   98,304   97          1        ?       <= 1     <= 96 KiB  <- here",
        "           4  131,072  129  over by 29,696 B",
        "  blocks/SM: by shared memory alone, by registers alone, and by both",
    ]


def test_with_known_registers_the_numbers_are_no_bounds() -> None:
    lines = ladder_of(Rung(3, came_to(99_328), 96 * KIB, held(1)))
    assert lines[1].split() == ["3", "99,328", "43", "2", "1", "1", "96", "KiB"]


def test_in_flight_counts_every_block_of_the_core() -> None:
    lines = ladder_of(Rung(1, came_to(33 * KIB), 32 * KIB, held(6, by_registers=9)))
    assert lines[1].split()[-2:] == ["192", "KiB"]  # 6 x 32


def test_a_ladder_on_another_maker_s_device_speaks_of_its_cores() -> None:
    lines = ladder_of(Rung(1, came_to(33 * KIB), 32 * KIB, held(6, core="CU")))
    assert lines[0].split()[-3:] == ["blocks/CU", "in", "flight/CU"]
    assert lines[2].startswith("  blocks/CU: ")


def test_where_nothing_is_known_there_are_question_marks() -> None:
    lines = ladder_of(Rung(3, came_to(99_328), 96 * KIB, None))
    assert lines[1].split() == ["3", "99,328", "43", "?", "?", "?", "?"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (came_to(LIMIT + 1), "over by 1 B  <- here"),
        (
            came_to(KIB, status=Status.DOES_NOT_FIT, reason="threads 1,152, limit 1,024: over"),
            "threads 1,152, limit 1,024: over  <- here",
        ),
        (
            came_to(LIMIT, status=Status.DOES_NOT_FIT, reason="grid.y 70,000"),
            "grid.y 70,000  <- here",
        ),
        (
            came_to(KIB, status=Status.UNKNOWN, reason="the grid is open"),
            "the grid is open  <- here",
        ),
        (
            Outcome(status=Status.CANNOT_LOWER, reason="no such instruction"),
            "<- here  refused: no such instruction",
        ),
    ],
)
def test_a_value_that_does_not_fit_says_why(outcome: Outcome, words: str) -> None:
    rungs = (Rung(2, came_to(64 * KIB), 0, held(1)), Rung(3, outcome, 0, held(0)))
    lines = ladder_of(*rungs, params=(("num_stages", 3),))
    assert lines[2].endswith(words)
    assert lines[2].split()[0] == "3"
    assert "<- here" not in lines[1]


def test_a_long_refusal_is_cut_at_the_page() -> None:
    long = Outcome(status=Status.CANNOT_LOWER, reason="no such instruction " * 20)
    over = came_to(LIMIT + 10**9)
    lines = ladder_of(
        Rung(2, came_to(64 * KIB), 0, held(1, exact=False)), Rung(3, long, 0), Rung(4, over, 0)
    )
    assert lines[2].startswith("           3  ")
    assert lines[2].endswith(" ...")
    assert max(map(len, lines)) <= WIDTH


# ---- tried edits --------------------------------------------------------------------------------


def tried_of(*tried: Tried, value: Kernel | None = None, **changes: Any) -> list[str]:
    params = {"num_stages": 4, "block_K": 64, "block_size_of_the_keys": 128}
    value = value or kernel(dynamic_bytes=LIMIT + 1)
    now = changes.get("residency")
    tried = tuple(replace(one, loss=loss_of(one, value, now)) for one in tried)
    lines = page(result(value), tried=tried, params=tuple(params.items()), **changes)
    first = next(n for n, line in enumerate(lines) if line.startswith("Tried, "))
    return lines[first:]


STAGE = Edit(2, (("num_stages", 3),))
K_TILE = Edit(3, (("block_K", 32),))
MISS = Tried(Edit(1, (), ((MERGE, True),)), came_to(LIMIT + 1))


def test_edits_that_fit_show_what_changes_and_what_is_spare() -> None:
    lines = tried_of(
        MISS,
        Tried(STAGE, came_to(97 * KIB), held(2)),
        Tried(K_TILE, came_to(65 * KIB), held(1, exact=False)),
        MISS,
    )
    assert lines == [
        "Tried, each lowered again for sm_90a (4 lowerings):",
        # 227 KiB less 97 and less 65
        "  num_stages 4 -> 3  99,328 B  fits   133,120 B spare   2 blocks/SM",
        "  block_K 64 -> 32   66,560 B  fits   165,888 B spare   <= 1 block/SM",
        "  2 other edits did not fit or did not lower",
    ]


def test_one_other_edit_is_singular_and_none_is_not_told() -> None:
    fits = Tried(STAGE, came_to(KIB))
    assert tried_of(MISS, fits)[-1] == "  1 other edit did not fit or did not lower"
    assert tried_of(fits)[-1] == "  num_stages 4 -> 3  1,024 B  fits   231,424 B spare"


def test_a_merge_is_named_without_its_prefix() -> None:
    lines = tried_of(Tried(Edit(1, (), ((MERGE, True),)), came_to(KIB)))
    assert [line.strip() for line in lines[1:]] == [
        "enable_aggressive_shared_memory_merge -> True",
        "1,024 B  fits   231,424 B spare",
    ]


def test_a_pair_with_long_names_stays_on_the_page() -> None:
    pair = Edit(5, (("block_size_of_the_keys", 64),), ((MERGE, True),))
    lines = tried_of(
        Tried(STAGE, came_to(97 * KIB), held(2)),
        Tried(pair, came_to(97 * KIB), held(1, exact=False)),
        residency=held(4),
    )
    assert max(map(len, lines)) <= WIDTH
    text = " ".join(" ".join(lines).split())
    assert "block_size_of_the_keys 128 -> 64, enable_aggressive_shared_memory_merge -> True" in text
    # its numbers stand below it, under those of the others
    column = lines[1].index("99,328 B")
    assert [line[column:].startswith("99,328 B  fits ") for line in lines[1:]].count(True) == 2
    assert text.count("loses 3 blocks/SM") == 1
    assert text.count("loses 2 blocks/SM") == 1


@pytest.mark.parametrize(
    ("now", "then", "told"),
    [
        ({}, {"spill_bytes": 0}, None),
        ({"spill_bytes": 0}, {"spill_bytes": 132}, "1 fits and would spill more than now"),
        ({"spill_bytes": 132}, {"spill_bytes": 132}, None),
        ({"spill_bytes": 132}, {"spill_bytes": 4}, None),
        ({"matrix_instructions": 64}, {"matrix_instructions": 0}, "loses the tensor cores"),
        ({"matrix_instructions": 64}, {"matrix_instructions": 8}, None),
        ({"matrix_instructions": 0}, {"matrix_instructions": 0}, None),
        ({}, {"matrix_instructions": None}, None),
    ],
)
def test_an_edit_that_fits_at_a_price_says_so(
    now: dict[str, Any], then: dict[str, Any], told: str | None
) -> None:
    before = replace(kernel(dynamic_bytes=LIMIT + 1), assembly=made(**now) if now else None)
    one = Tried(STAGE, came_to(KIB, kernels=(replace(kernel(), assembly=made(**then)),)))
    line = tried_of(one, value=before)[1]
    assert line.endswith(told or "B spare")


@pytest.mark.parametrize(
    ("now", "then", "told"),
    [
        (held(2), held(1), "loses 1 block/SM"),
        (held(4), held(1), "loses 3 blocks/SM"),
        (held(2, core="CU"), held(1, core="CU"), "loses 1 block/CU"),
        (held(1), held(1), None),
        (held(1), held(2), None),
        (held(0), held(1), None),  # what does not fit has none to lose
        (held(None), held(1), None),
        (None, held(1), None),
    ],
)
def test_an_edit_that_costs_a_resident_block_says_so(
    now: Residency | None, then: Residency, told: str | None
) -> None:
    line = "   ".join(tried_of(Tried(STAGE, came_to(KIB), then), residency=now)[1:])
    assert ("loses" in line) == (told is not None)
    assert line.endswith(told or f"block{'' if then.blocks == 1 else 's'}/SM")


def test_the_ladder_comes_before_the_edits_and_the_command_last() -> None:
    lines = page(
        result(kernel(dynamic_bytes=LIMIT + 1)),
        ladder=(Rung(3, came_to(KIB), 0),),
        ladder_parameter="num_stages",
        tried=(Tried(STAGE, came_to(KIB)),),
        try_next="tilefit plan made.py::made -d h100 --set num_stages=3",
        next_step=NextStep.FITS,
    )
    places = [
        next(n for n, line in enumerate(lines) if line.startswith(start))
        for start in ("  num_stages  launch", "Tried, each", "Next (compiled here, fits):")
    ]
    assert places == sorted(places)
    assert lines[places[1] - 1] == ""
    assert lines[-1] == "  tilefit plan made.py::made -d h100 --set num_stages=3"


def test_registers_and_tensor_memory_take_no_part_in_the_drawn_map() -> None:
    lines = page(
        shared(
            *(buffer(f"t{n}", KIB, offset=n * KIB, live=(1, 2)) for n in range(3)),
            buffer("acc", 64, memory=Memory.REGISTERS, live=(1, 2), offset=0),
            dynamic_bytes=3 * KIB,
        )
    )
    assert not [line for line in lines if line.startswith("        ") and " acc 64 B" in line]


@pytest.mark.parametrize("by_core", [False, True])
def test_a_check_that_is_missing_crashes_no_renderer(by_core: bool) -> None:
    """A launch that nobody asked about, or a check that a toolchain does not know."""
    whole = result(kernel(buffer("A", 64, offset=0)))
    bare = replace(whole, limits=(), by_core=by_core)
    unread = replace(bare, lowered=None, uses=(), memories=(), residency=None)
    for one in (bare, unread, replace(bare, memories=(), uses=())):
        for report in (Report((one,)), Report((one, replace(one, device="another")))):
            assert _text.render(report).plain
            assert _json.render(report)
            assert _table.render_csv(report)
            assert _table.render_md(report)
