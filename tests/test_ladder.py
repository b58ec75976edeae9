"""The ladder: one parameter stepped up, each value lowered, until it no longer fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.made_gemm import MadeSession, judged, lowered, tile_bytes
from tests.stand_in import use
from tests.values import KIB, buffer, kernel
from tilefit._devices.names import device
from tilefit._errors import InputError, RefusedError
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._placement.place import place
from tilefit._planning.ladder import in_flight, ladder, parse_ladder, steps
from tilefit._planning.report import Rung
from tilefit._verdict.judge import Status, judge
from tilefit.cli import main

FITS, MISSES = Status.FITS, Status.DOES_NOT_FIT
REFUSED = Status.CANNOT_LOWER
STAGE_BYTES = (128 * 64 + 64 * 128) * 2


# ---- what --ladder takes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("num_stages", "num_stages", None),
        ("num_stages=1:4", "num_stages", (1, 2, 3, 4)),
        ("block_N=64:256:64", "block_N", (64, 128, 192, 256)),
        ("block_N=64:255:64", "block_N", (64, 128, 192)),
        ("block_N=64:64", "block_N", (64,)),
        ("block_N=128,64,128", "block_N", (128, 64, 128)),
        ("block_N=7", "block_N", (7,)),
        ("block_N=0x10:0x12", "block_N", (16, 17, 18)),
        ("block_N= 1 , 2", "block_N", (1, 2)),
        ("x=1:24", "x", tuple(range(1, 25))),
    ],
)
def test_a_ladder_is_a_name_a_range_or_a_list(
    text: str, name: str, values: tuple[int, ...] | None
) -> None:
    assert parse_ladder(text) == (name, values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not NAME or NAME=FIRST:LAST:STEP"),
        ("=1:2", "is not NAME"),
        ("3=1:2", "is not NAME"),
        ("block-M=1:2", "is not NAME"),
        ("n=", "with whole numbers"),
        ("n=a", "with whole numbers"),
        ("n=1:", "with whole numbers"),
        ("n=:2", "with whole numbers"),
        ("n=1,,2", "with whole numbers"),
        ("n=1.5", "with whole numbers"),
        ("n=1:2:0", "with whole numbers"),
        ("n=2:1:-1", "with whole numbers"),
        ("n=1:2:3:4", "with whole numbers"),
        ("n=" + "9" * 5000, "with whole numbers"),
        ("n=4:1", "not none"),
        ("n=1:25", "give 1 to 24 values, not more"),
        ("n=" + ",".join("1" * 25), "give 1 to 24 values, not more"),
        ("n=1:1000000000000000000000", "not more"),  # longer than a list can be
    ],
)
def test_anything_else_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_ladder(text)
    assert str(error.value).startswith("--ladder ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "current", "first"),
    [
        ("num_stages", 3, [1, 2, 3, 4, 5]),
        ("Stages", 7, [1, 2, 3, 4, 5]),
        ("block_K", 64, [16, 32, 64, 128, 256]),
        ("block_K", 2, [1, 2, 4, 8, 16]),
        ("block_K", 1, [1, 2, 4, 8, 16]),
        ("block_K", 96, [24, 48, 96, 192, 384]),
        ("block_K", 10, [5, 10, 20, 40, 80]),  # by the value that it has now
        ("block_K", 7, [7, 14, 28, 56, 112]),
    ],
)
def test_values_that_were_not_listed(name: str, current: int, first: list[int]) -> None:
    assert list(islice(steps(name, current, stages="stages" in name.casefold()), 5)) == first


def test_a_ladder_that_never_ends_is_cut() -> None:
    assert list(steps("num_stages", 2, stages=True)) == list(range(1, 33))
    assert list(steps("block_K", 1, stages=False)) == [2**n for n in range(24)]


@pytest.mark.parametrize("current", ["float16", None, True, 0, -4, 2.0])
@pytest.mark.parametrize("name", ["num_stages", "block_K"])
def test_what_is_no_whole_number_from_1_has_no_ladder(name: str, current: object) -> None:
    with pytest.raises(InputError, match=f"--ladder {name}: its value .* is no whole number"):
        next(iter(steps(name, current, stages=name == "num_stages")))


# ---- climbing -----------------------------------------------------------------------------------


class Compiler:
    """Lowers by a function and remembers for what it was asked."""

    def __init__(self, make: Callable[[Mapping[str, Any]], tuple[Kernel, ...]]) -> None:
        self.make = make
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        self.asked.append(dict(params))
        return self.make(params)


def climb(
    make: Callable[[Mapping[str, Any]], tuple[Kernel, ...]],
    values: list[int],
    *,
    shared_bytes: int = 99 * KIB,
    name: str = "num_stages",
    params: Mapping[str, Any] | None = None,
    to_the_end: bool = False,
) -> tuple[list[tuple[int, Status]], tuple[Rung, ...], Compiler]:
    compiler = Compiler(make)
    rungs = ladder(
        name,
        values,
        params=params or {},
        read=compiler,
        judge=judged(shared_bytes),
        to_the_end=to_the_end,
    )
    return [(r.value, r.outcome.status) for r in rungs], rungs, compiler


def test_the_first_value_that_does_not_fit_is_the_last() -> None:
    """99 KiB hold three stages of 32 KiB; a fifth is never lowered."""
    found, rungs, compiler = climb(lowered, [1, 2, 3, 4, 5, 6])
    assert found == [(1, FITS), (2, FITS), (3, FITS), (4, MISSES)]
    assert [p["num_stages"] for p in compiler.asked] == [1, 2, 3, 4]
    assert [r.outcome.total_bytes for r in rungs] == [n * STAGE_BYTES for n in (1, 2, 3, 4)]
    assert {r.outcome.limit_bytes for r in rungs} == {99 * KIB}
    # all of the bytes of this kernel are tiles on their way
    assert [r.in_flight_bytes for r in rungs] == [n * STAGE_BYTES for n in (1, 2, 3, 4)]


def test_the_other_parameters_stay_as_they_are() -> None:
    _, rungs, compiler = climb(
        lowered, [1, 2], params={"block_K": 32, "num_stages": 7, "dtype": "float16"}
    )
    assert compiler.asked == [{"block_K": 32, "num_stages": n, "dtype": "float16"} for n in (1, 2)]
    assert [r.outcome.total_bytes for r in rungs] == [n * STAGE_BYTES // 2 for n in (1, 2)]


def test_all_values_that_were_listed_are_lowered() -> None:
    found, *_ = climb(lowered, [4, 1, 5, 3], to_the_end=True)
    assert found == [(4, MISSES), (1, FITS), (5, MISSES), (3, FITS)]


def test_memory_that_the_first_value_overflows_ends_it() -> None:
    found, *_ = climb(lowered, [1, 2, 3], shared_bytes=STAGE_BYTES - 1)
    assert found == [(1, MISSES)]


def test_a_first_value_that_only_cannot_be_launched_does_not_end_it() -> None:
    """Rows of one: 100,000 blocks in y, at most 65,535 can be launched. Rows of two: 50,000."""

    def tall(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        rows = params["rows"]
        tile = buffer("tile", 1024 * rows, offset=0)
        return (kernel(tile, dynamic_bytes=1024 * rows, grid=(1, 100_000 // rows, 1)),)

    h100 = device("h100")
    rungs = ladder(
        *("rows", [1, 2, 4, 128, 256, 512]),
        params={},
        read=tall,
        judge=lambda k: judge(k, place(k), h100),
    )
    # 227 KiB
    assert [(r.value, r.outcome.status) for r in rungs] == [
        *((1, MISSES), (2, FITS), (4, FITS), (128, FITS), (256, MISSES))
    ]


def test_a_launch_that_fails_twice_ends_it() -> None:
    """More stages do not make 2,048 threads fewer."""
    found, *_ = climb(lowered, [1, 2, 3], params={"threads": 2048})
    assert found == [(1, MISSES), (2, MISSES)]


def refusing(*refused: int) -> Callable[[Mapping[str, Any]], tuple[Kernel, ...]]:
    def make(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        if params["num_stages"] in refused:
            raise RefusedError(f"no {params['num_stages']} stages")
        return lowered({**params, "block_K": 16})

    return make


def test_a_refusal_is_a_rung() -> None:
    found, rungs, _ = climb(refusing(1, 2, 4, 6), [1, 2, 3, 4, 5, 6, 7])
    assert [status for _, status in found] == [
        *(REFUSED, REFUSED, FITS, REFUSED, FITS, REFUSED, FITS)
    ]
    one = rungs[1].outcome
    assert (one.reason, one.total_bytes, one.kernels) == ("no 2 stages", None, ())
    assert rungs[1].in_flight_bytes == 0


def test_the_third_refusal_in_a_row_ends_it() -> None:
    found, *_ = climb(refusing(2, 3, 4, 5), [1, 2, 3, 4, 5, 6])
    assert [value for value, _ in found] == [1, 2, 3, 4]
    found, *_ = climb(refusing(2, 3, 4, 5), [1, 2, 3, 4, 5, 6], to_the_end=True)
    assert [value for value, _ in found] == [1, 2, 3, 4, 5, 6]


def test_a_parameter_without_effect_has_two_rungs() -> None:
    def same(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        made = kernel(buffer("tile", KIB, offset=0), dynamic_bytes=KIB)
        return (replace(made, params=tuple(params.items())),)

    found, *_ = climb(same, list(range(1, 33)))
    assert found == [(1, FITS), (2, FITS)]


def test_equal_bytes_do_not_end_it_while_something_changes() -> None:
    """Threads do not take shared memory."""
    found, *_ = climb(lowered, [64, 128, 256, 512, 1024, 2048, 4096], name="threads")
    assert found == [*((n, FITS) for n in (64, 128, 256, 512, 1024)), (2048, MISSES)]


def test_bytes_that_are_open_end_it() -> None:
    def open_size(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        tile = buffer("tile", None, copies=params["num_stages"])
        return (kernel(tile, dynamic_bytes=None),)

    found, *_ = climb(open_size, [1, 2, 3])
    assert found == [(1, Status.UNKNOWN)]


def test_of_several_device_functions_the_fullest_counts() -> None:
    def two(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        small = kernel(buffer("tile", KIB, offset=0, why="pipeline"), dynamic_bytes=KIB)
        return (small, *lowered(params), small)

    _, rungs, _ = climb(two, [2])
    assert rungs[0].outcome.total_bytes == 2 * STAGE_BYTES
    assert rungs[0].in_flight_bytes == 2 * STAGE_BYTES


# ---- bytes in flight ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        *((c, True) for c in ("ws-pipeline", "pipeline", "two-loops", "store-driven")),
        *((c, True) for c in ("guarded-load", "explicit-order", "one-stage")),
        *((c, False) for c in ("not-pipelined", "read-only", "same-stage", "barrier", "layout")),
        (None, False),
    ],
)
def test_copies_on_their_way_from_global_memory_count(code: str | None, counted: bool) -> None:
    tile = buffer("tile", 3 * KIB, copies=3, why=code)
    assert in_flight(kernel(tile)) == (3 * KIB if counted else 0)
    assert in_flight(kernel(replace(tile, memory=Memory.LDS))) == (3 * KIB if counted else 0)
    assert in_flight(kernel(replace(tile, memory=Memory.REGISTERS))) == 0


def test_attention_has_its_keys_and_values_in_flight() -> None:
    """Four stages of 128x64 fp16 keys and values; the queries wait, the output leaves."""
    tile = 128 * 64 * 2
    value = kernel(
        buffer("q", tile, live=(1, 40), why="read-only"),
        buffer("k", 4 * tile, live=(5, 40), why="ws-pipeline"),
        buffer("v", 4 * tile, live=(7, 40), why="ws-pipeline"),
        buffer("o", tile, live=(41, 44), why="not-pipelined"),
    )
    assert in_flight(value) == (4 + 4) * tile


def test_loops_that_follow_each_other_are_not_in_flight_together() -> None:
    """The first moves 2 + 3 KiB, the second 4; an unknown interval counts with all."""
    loops = (
        buffer("a", 2 * KIB, live=(1, 10), why="pipeline"),
        buffer("b", 3 * KIB, live=(3, 10), why="pipeline"),
        buffer("d", 4 * KIB, live=(10, 20), why="pipeline"),
    )
    assert in_flight(kernel(*loops)) == (2 + 3) * KIB
    unknown = buffer("e", 8 * KIB, live=None, why="pipeline")
    assert in_flight(kernel(*loops, unknown)) == (2 + 3 + 8) * KIB
    overlapping = replace(loops[2], live=(9, 20))
    assert in_flight(kernel(*loops[:2], overlapping)) == (2 + 3 + 4) * KIB


def test_without_pipelined_copies_nothing_is_in_flight() -> None:
    assert in_flight(kernel()) == 0


# ---- the command --------------------------------------------------------------------------------

Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Plan:
    """Run ``tilefit plan`` on the made GEMM; return exit code, output and errors."""
    (tmp_path / "gemm.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, MadeSession)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["plan", "gemm.py", "-d", "rtx-4090", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def rungs_of(plan: Plan, *arguments: str) -> list[dict[str, Any]]:
    code, out, _ = plan(*arguments, "--json")
    assert code == 0
    (result,) = json.loads(out)["results"]
    found: list[dict[str, Any]] = result["ladder"]
    return found


def test_ladder_of_stages(plan: Plan) -> None:
    rungs = rungs_of(plan, "--ladder", "num_stages")
    assert [(r["parameter"], r["value"], r["verdict"]) for r in rungs] == [
        *(("num_stages", n, "fits") for n in (1, 2, 3)),
        ("num_stages", 4, "does-not-fit"),
    ]
    assert [r["total_bytes"] for r in rungs] == [n * STAGE_BYTES for n in (1, 2, 3, 4)]
    assert [r["in_flight_bytes_per_block"] for r in rungs] == [
        n * STAGE_BYTES for n in (1, 2, 3, 4)
    ]
    # 100 KiB of an SM, 1 KiB of it reserved a block: 3 x 33, 1 x 65, 1 x 97, none
    assert [r["occupancy"]["by_shared"] for r in rungs] == [3, 1, 1, None]
    assert [r["occupancy"]["blocks_per_core"] for r in rungs] == [3, 1, 1, 0]


def test_ladder_of_a_range_goes_to_its_end(plan: Plan) -> None:
    rungs = rungs_of(plan, "--ladder", "block_N=64:256:64")
    # three stages of 128x64 and 64xN fp16; 99 KiB are 101,376
    assert [(r["value"], r["total_bytes"], r["verdict"]) for r in rungs] == [
        (64, 3 * (128 * 64 + 64 * 64) * 2, "fits"),
        (128, 3 * (128 * 64 + 64 * 128) * 2, "fits"),
        (192, 3 * (128 * 64 + 64 * 192) * 2, "does-not-fit"),
        (256, 3 * (128 * 64 + 64 * 256) * 2, "does-not-fit"),
    ]
    assert tile_bytes({"block_N": 192}) > 99 * KIB


def test_ladder_by_doubling_starts_below_and_meets_the_present_value(plan: Plan) -> None:
    rungs = rungs_of(plan, "--ladder", "block_N")
    assert [(r["value"], r["verdict"]) for r in rungs] == [
        *((32, "fits"), (64, "fits"), (128, "fits"), (256, "does-not-fit"))
    ]


def test_ladder_shows_a_refusal(plan: Plan) -> None:
    rungs = rungs_of(plan, "--ladder", "block_N=512,128")
    assert [(r["value"], r["verdict"], r["reason"]) for r in rungs] == [
        (512, "cannot-lower", "N of an instruction is at most 256, not 512"),
        (128, "fits", None),
    ]


def test_the_ladder_does_not_change_the_verdict(plan: Plan) -> None:
    """Its last rung does not fit; the kernel does."""
    code, out, _ = plan("--ladder", "num_stages")
    assert code == 0
    assert out.splitlines()[1].startswith("FITS")
    code, *_ = plan("--ladder", "num_stages", "--set", "num_stages=4")
    assert code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num_stage", "unknown parameter of gemm 'num_stage'; did you mean num_stages?"),
        ("blok_N=64:256:64", "did you mean block_N"),
        ("nope", "unknown parameter of gemm 'nope'; known: K, M, N, block_K"),
        ("dtype", "--ladder dtype: its value 'float16' is no whole number from 1"),
        ("num_stages=4:1", "--ladder 'num_stages=4:1'"),
        ("num_stages=1:99", "give 1 to 24 values"),
        ("1:4", "is not NAME"),
    ],
)
def test_a_ladder_that_is_none_is_one_line_and_exit_2(plan: Plan, text: str, said: str) -> None:
    code, out, err = plan("--ladder", text)
    assert (code, out) == (2, "")
    assert err.startswith("tilefit: ")
    assert err.count("\n") == 1
    assert said in err


def test_where_the_code_stays_the_same_the_ladder_ends_and_nothing_is_in_flight() -> None:
    """Of one stage the compiler says one-stage, of two same-stage; the code of both is one."""

    def amd(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        why = "one-stage" if params["num_stages"] == 1 else "same-stage"
        made = kernel(buffer("tile", KIB, offset=0, why=why), dynamic_bytes=KIB)
        return (replace(made, params=tuple(params.items()), code="one"),)

    found, rungs, _ = climb(amd, list(range(1, 33)))
    assert found == [(1, FITS), (2, FITS)]
    assert [(r.same_as, r.in_flight_bytes) for r in rungs] == [(None, None), (1, None)]
    _, rungs, _ = climb(amd, [3, 1, 2], to_the_end=True)
    assert [(r.same_as, r.in_flight_bytes) for r in rungs] == [(None, None), (3, None), (3, None)]


def test_what_a_ring_written_by_hand_has_in_flight_is_not_known() -> None:
    def ring(params: Mapping[str, Any]) -> tuple[Kernel, ...]:
        depth = params["num_stages"]
        tile = buffer("s", depth * KIB, offset=0, shape=(depth, 32, 32), why="not-pipelined")
        return (kernel(tile, dynamic_bytes=depth * KIB),)

    _, rungs, _ = climb(ring, [1, 2, 3])
    assert [r.in_flight_bytes for r in rungs] == [None, None, None]
