"""Kernels as libraries write them, named as FILE::KERNEL and compiled by the file's own main."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.opened import Session, ask
from tilefit._devices.facts import facts_of
from tilefit._devices.names import device
from tilefit._errors import KernelError, RefusedError
from tilefit._frontends.protocol import Ran
from tilefit._reading.child import Limits

pytestmark = pytest.mark.tilelang

LIBRARY = Path(__file__).parent / "kernels" / "library.py"
HALF = 2  # bytes of float16


@pytest.fixture(scope="module")
def opened() -> Iterator[Session]:
    with Session(LIBRARY, limits=Limits(seconds=60)) as session:
        session.load(facts_of(device("h100")))
        yield session


@pytest.fixture(scope="module")
def ran() -> Iterator[tuple[Session, Ran]]:
    with Session(LIBRARY, limits=Limits(seconds=60)) as session:
        yield session, session.run(facts_of(device("h100")))


def test_every_kernel_is_listed_with_the_parameters_of_all_its_steps(opened: Session) -> None:
    found = {k.name: {p.name: p.required for p in k.parameters} for k in opened.listings}
    assert found == {
        "copy_of": {"rows": True, "columns": True, "dtype": False, "threads": False},
        "cached_steps": {
            **{"rows": True, "columns": True, "dtype": False},
            **{"copies": False, "threads": False},
        },
        "hidden": {"rows": False, "columns": False},
        "hidden_by_position": {"rows": False, "columns": False, "copies": False},
        "registered": {"rows": True, "columns": False},
        "hidden_jit": {"rows": True, "columns": False},
        "of_shape": {"shape": False, "threads": False, "dtype": False},
        # what partial gives is a default that --set may still change
        "half": {"rows": True, "columns": False, "dtype": False, "threads": False},
        # not Shape.build: Shape is abstract
        "Small.build": {"columns": False, "copies": False},
        "Scaled.build": {"factor": True, "copies": False},
        "Scaled.whole": {"factor": True},
        "two_launches": {"rows": False, "columns": False, "wide": False},
        "for_blackwell": {"size": False, "copies": False},
    }


@pytest.mark.parametrize(
    ("kernel", "params", "expected"),
    [
        ("cached_steps", {"rows": 16, "columns": 64, "copies": 3}, 3 * 16 * 64 * HALF),
        ("cached_steps", {"rows": 16, "columns": 64, "dtype": "float32"}, 16 * 64 * 4),
        ("hidden", {"rows": 48}, 48 * 64 * HALF),
        ("hidden", {"columns": 128}, 32 * 128 * HALF),
        # a value in the middle is left open, and the wrapper takes no names
        ("hidden_by_position", {"rows": 16, "copies": 5}, 5 * 16 * 64 * HALF),
        ("registered", {"rows": 80}, 80 * 64 * HALF),
        ("hidden_jit", {"rows": 112}, 112 * 64 * HALF),
        ("of_shape", {"shape": (16, 128), "dtype": "float32"}, 16 * 128 * 4),
        ("half", {"rows": 32}, 32 * 96 * HALF),
        ("half", {"rows": 32, "columns": 64, "dtype": "float32"}, 32 * 64 * 4),
        # an H100 has 132 SMs, so its tiles are twice as tall
        ("Small.build", {"columns": 32, "copies": 3}, 3 * 2 * 16 * 32 * HALF),
        ("Scaled.build", {"factor": 3}, 2 * 3 * 16 * 64 * HALF),
        ("Scaled.whole", {"factor": 3}, 3 * 16 * 64 * HALF),
    ],
)
def test_set_feeds_every_step(
    opened: Session, kernel: str, params: dict[str, Any], expected: int
) -> None:
    (found,) = opened.read(ask(kernel, params, "sm_90a"))
    assert found.staged.dynamic_bytes == expected


def test_threads_of_the_second_step_are_those_of_the_launch(opened: Session) -> None:
    (found,) = opened.read(
        ask("cached_steps", {"rows": 16, "columns": 64, "threads": 64}, "sm_90a")
    )
    assert found.launch.threads == 64


def test_a_shape_that_does_not_suit_the_factory_is_its_own_complaint(opened: Session) -> None:
    with pytest.raises(KernelError, match=r"library\.py:\d+ raised ValueError: not enough values"):
        opened.read(ask("of_shape", {}, "sm_90a"))


def test_one_prim_func_with_two_launches_is_two_kernels(opened: Session) -> None:
    narrow, wide = opened.read(ask("two_launches", {}, "sm_90a"))
    assert (narrow.staged.dynamic_bytes, wide.staged.dynamic_bytes) == (
        64 * 64 * HALF,
        64 * 256 * HALF,
    )
    assert (narrow.launch.grid, wide.launch.grid) == ((256 // 64, 1, 1), (1, 1, 1))
    assert (narrow.launch.threads, wide.launch.threads) == (128, 256)
    assert narrow.function != wide.function


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
def test_a_kernel_for_another_chip_is_refused_however_large(opened: Session, target: str) -> None:
    # 6 copies of two 32 KiB tiles are 384 KiB, more than a block may have anywhere
    for copies in (1, 6):
        with pytest.raises(RefusedError, match=r"tensor memory|requires Blackwell"):
            opened.read(ask("for_blackwell", {"copies": copies}, target))


def test_cannot_lower_is_not_does_not_fit(root: Path) -> None:
    command = [sys.executable, "-m", "tilefit", "plan", f"{LIBRARY}::for_blackwell"]
    done = subprocess.run(
        [*command, "-d", "a100,h100", "--set", "copies=6", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    results = json.loads(done.stdout)["results"]
    assert [result["verdict"] for result in results] == ["cannot-lower", "cannot-lower"]
    for result, target in zip(results, ("sm_80", "sm_90a"), strict=True):
        assert "requires Blackwell" in result["reason"]
        assert f"target={target}," in result["reason"]  # without TVM's ten attributes of it


# ---- the same kernels, compiled by the file's main ------------------------------------------


def test_main_finds_the_makers_below_their_decorators(ran: tuple[Session, Ran]) -> None:
    session, found = ran
    assert (found.ended, found.unbuilt) == (None, ())
    assert [kernel.name for kernel in found.kernels] == [
        *("of_tile", "hidden", "hidden_by_position", "registered", "hidden_jit"),
        *("of_config", "build", "whole", "two_launches", "for_blackwell"),
    ]
    expected = {
        "of_tile": 2 * 16 * 64 * HALF,
        "hidden": 48 * 64 * HALF,
        "hidden_by_position": 48 * 64 * HALF,
        "registered": 48 * 64 * HALF,
        "hidden_jit": 80 * 64 * HALF,
        "of_config": 16 * 64 * 4,
        "build": 2 * 16 * 64 * HALF,
        "whole": 3 * 16 * 32 * HALF,
    }
    sizes = {
        name: session.read(ask(name, {}, "sm_90a"))[0].staged.dynamic_bytes for name in expected
    }
    assert sizes == expected


def test_seen_is_planned_and_refused_and_failed(ran: tuple[Session, Ran]) -> None:
    session, found = ran
    planned, refused = [], []
    for kernel in found.kernels:
        try:
            session.read(ask(kernel.name, {}, "sm_90a"))
            planned.append(kernel.name)
        except RefusedError:
            refused.append(kernel.name)
    assert refused == ["for_blackwell"]
    assert found.seen == len(planned) + len(refused) + len(found.unbuilt) == 10


def test_what_main_compiled_is_built_again_with_other_arguments(
    ran: tuple[Session, Ran],
) -> None:
    session, _ = ran
    sizes = [
        session.read(ask(name, params, "sm_90a"))[0].staged.dynamic_bytes
        for name, params in (
            ("of_tile", {"copies": 5}),
            ("hidden", {"columns": 128}),
            ("build", {"copies": 2}),
            ("of_config", {"dtype": "float16"}),
        )
    ]
    assert sizes == [5 * 16 * 64 * HALF, 48 * 128 * HALF, 2 * 2 * 16 * 64 * HALF, 16 * 64 * HALF]
