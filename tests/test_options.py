"""Options and limits from Python: a wrong value is told at once, by its name."""

from __future__ import annotations

import pytest

from tilefit import InputError, Limits, Options


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "no") for name in ("assemble", "suggest", "stages", "estimate", "cache")),
        ("cache", None),
        ("stages", 1),
        ("ladder", 3),
        ("frontend", []),
        ("progress", 3),
    ],
)
def test_a_wrong_option_is_named(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{name}="):
        Options(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["seconds", "memory_bytes", "processes"])
@pytest.mark.parametrize("value", [-1, 0, "x", True, None, float("nan"), float("inf")])
def test_a_wrong_limit_is_named(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{name}="):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_what_is_meant_is_taken() -> None:
    given = Options(suggest=None, ladder="block_M=64,128", frontend="source", progress=print)
    assert (given.suggest, given.ladder, given.frontend) == (None, "block_M=64,128", "source")
    assert Limits(seconds=0.5, memory_bytes=1, processes=1).seconds == 0.5
