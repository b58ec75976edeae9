"""A size that stays open until run time makes a condition, and no unknown where it plays no part.

Expected values: a grid of ceil(M / tile) blocks is within a limit as long as M <= tile x limit;
2^31 - 1 blocks in x and 65,535 in y (CUDA C++ Programming Guide, technical specifications).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilefit
from tests.opened import Session, ask
from tests.values import kernel
from tilefit._devices.names import device
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.extent import Holds, OpenSize
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._placement.place import place
from tilefit._verdict.judge import Status, Verdict, judge
from tilefit.cli import main

FILE = Path(__file__).parent / "kernels" / "open_sizes.py"
H100 = device("h100")


def over(*grid: int | str, bits: int = 32, cluster: tuple[int, ...] | None = None) -> Verdict:
    sizes = tuple(OpenSize(name, bits) for name in ("n", "m"))
    blocks = (*grid, *[1] * (3 - len(grid)))
    one = kernel(dynamic_bytes=1024, grid=blocks, cluster=cluster, sizes=sizes)
    return judge(one, place(one), H100)


def holds(verdict: Verdict) -> list[Holds]:
    return [check.holds for check in verdict.limits if check.holds is not None]


# ---- the verdict -----------------------------------------------------------------------------


def test_a_grid_in_y_is_a_condition_on_its_size() -> None:
    found = over(1, "(n + 31) // 32")
    assert found.status is Status.FITS
    assert holds(found) == [Holds("n", 32 * 65535)]
    assert found.reason == "memory fits; grid.y holds while n <= 2,097,120"


def test_a_32_bit_size_cannot_pass_the_limit_in_x() -> None:
    found = over("(n + 63) // 64")
    assert (found.status, found.reason, holds(found)) == (Status.FITS, None, [])


def test_a_64_bit_size_can() -> None:
    assert holds(over("(n + 63) // 64", bits=64)) == [Holds("n", 64 * (2**31 - 1))]


def test_two_sizes_in_one_extent_are_a_condition_on_the_extent() -> None:
    assert holds(over(1, "(n + m) // 8")) == [Holds("(n + m) // 8", 65535)]


def test_several_axes_are_all_named() -> None:
    found = over(1, "n", "m * 2")
    assert found.reason == (
        "memory fits; grid.y holds while n <= 65,535; grid.z holds while m <= 32,767"
    )


def test_an_extent_that_is_too_large_for_every_size_does_not_fit() -> None:
    found = over(1, "n + 65535")
    assert found.status is Status.DOES_NOT_FIT
    assert found.reason == "grid.y is n + 65535, 65,536 at least, limit 65,535"


@pytest.mark.parametrize("extent", ["?", "k", "T.something(n)"])
def test_what_is_not_over_open_sizes_stays_unknown(extent: str) -> None:
    assert over(1, extent).status is Status.UNKNOWN


def test_a_cluster_divides_the_grid_on_a_condition() -> None:
    found = over("n", cluster=(2, 1, 1))
    assert found.status is Status.FITS
    assert holds(found) == [Holds("(n) % 2", 0)]
    assert "grid.x has to be a multiple of the cluster's 2" in (found.reason or "")


def test_memory_over_a_limit_is_said_first() -> None:
    one = kernel(dynamic_bytes=2**20, grid=(1, "n", 1), sizes=(OpenSize("n"),))
    found = judge(one, place(one), H100)
    assert found.status is Status.DOES_NOT_FIT
    assert (found.reason or "").startswith("shared")


def test_a_kernel_with_open_sizes_survives_json() -> None:
    one = kernel(grid=("n", 1, 1), sizes=(OpenSize("n", 64),))
    assert Kernel.from_dict(json.loads(json.dumps(one.to_dict()))) == one


# ---- from the source -------------------------------------------------------------------------

CONDITIONS = {
    "rows": ("(T + 63) // 64", []),
    "by_macro": (4, [Holds("n", 64 * 65535)]),
    "tiles": (16, [Holds("M", 128 * 65535)]),
}


def estimated(name: str, **params: Any) -> Kernel:
    (found,) = SourceFrontend().load(FILE).read(ask(name, params, "sm_90a"))
    return found


@pytest.mark.parametrize("name", CONDITIONS)
def test_an_estimate_says_the_same(name: str) -> None:
    one = estimated(name)
    in_x, expected = CONDITIONS[name]
    verdict = judge(one, place(one), H100)
    assert (one.launch.grid or ())[0] == in_x
    assert (verdict.status, holds(verdict)) == (Status.FITS, expected)
    assert not any("--set" in note for note in one.notes)


def test_an_estimate_binds_a_size_by_the_name_of_a_parameter() -> None:
    assert estimated("bound_twice", n=1000).launch.grid == (16, 1, 1)  # 1000 / 64, rounded up


def test_a_size_in_a_tile_stays_unknown_and_names_the_flag() -> None:
    one = estimated("open_tile")
    verdict = judge(one, place(one), H100)
    assert verdict.status is Status.UNKNOWN
    assert "--set n=VALUE" in (verdict.reason or "")


# ---- through the compiler --------------------------------------------------------------------


@pytest.fixture(scope="module")
def session() -> Any:
    with Session(FILE) as found:
        found.load()
        yield found


@pytest.mark.tilelang
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_lowered_grid_is_over_the_names_of_the_source(session: Session, name: str) -> None:
    (one,) = session.read(ask(name, {}, "sm_90a"))
    in_x, expected = CONDITIONS[name]
    verdict = judge(one, place(one), H100)
    assert (one.launch.grid or ())[0] == in_x
    assert (verdict.status, holds(verdict)) == (Status.FITS, expected)


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("name", "params", "grid"),
    [
        ("rows", {"T": 1000}, (16, 1, 1)),
        ("by_macro", {"n": 1000}, (4, 16, 1)),
        ("by_macro", {"n_seq": 1000}, (4, 16, 1)),  # what the compiler calls it
        ("bound_twice", {"n": 1000}, (16, 1, 1)),
    ],
)
def test_a_value_is_given_by_the_name_of_the_source(
    session: Session, name: str, params: dict[str, int], grid: tuple[int, ...]
) -> None:
    (one,) = session.read(ask(name, params, "sm_90a"))
    assert one.launch.grid == grid


@pytest.mark.tilelang
def test_a_name_that_no_size_has_is_refused_with_those_of_the_source(session: Session) -> None:
    with pytest.raises(tilefit.TilefitError, match="'N'; did you mean n"):
        session.read(ask("by_macro", {"N": 1000}, "sm_90a"))
    with pytest.raises(tilefit.TilefitError, match="whole number"):
        session.read(ask("by_macro", {"n": 0.5}, "sm_90a"))


@pytest.mark.tilelang
def test_a_value_reaches_the_bytes_of_a_tile(session: Session) -> None:
    (one,) = session.read(ask("open_tile", {"n": 96}, "sm_90a"))
    use = one.use(Memory.SHARED)
    assert use is not None
    assert use.total_bytes == 96 * 128 * 2 + 64 * 128 * 2
    assert {b.name: (b.shape, b.bytes) for b in one.buffers} == {
        "s": ((96, 128), 96 * 128 * 2),
        "r": ((64, 128), 64 * 128 * 2),
    }
    (one,) = session.read(ask("open_tile", {}, "sm_90a"))
    use = one.use(Memory.SHARED)
    assert use is not None
    assert use.total_bytes is None


@pytest.mark.tilelang
def test_stages_edits_and_next_are_judged_with_the_grid_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # 128 x 64 and 64 x 256 of 2 B are 49,152 B a stage; 227 KiB hold four
    code = main(["plan", f"{FILE}::tiles", "-d", "h100", "--set", "num_stages=6", "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert code == 1
    assert result["max_stages"] == 4
    assert {one["verdict"] for one in result["suggestions"]} == {"fits"}
    code = main(["plan", f"{FILE}::tiles", "-d", "h100", "--set", "num_stages=4", "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (code, result["verdict"]) == (0, "fits")
    assert result["reason"] == "memory fits; grid.y holds while M <= 8,388,480"
    (axis,) = [one for one in result["limits"] if one["name"] == "grid.y"]
    assert axis["holds_while"] == {"expression": "M", "most": 128 * 65535}
