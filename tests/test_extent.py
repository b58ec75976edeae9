"""Extents over open sizes: bounds that hold, and the last value within a limit."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilefit._kernel.extent import Holds, OpenSize, bounds, called, holds_while, joined, names_in

INT32, INT64 = 2**31 - 1, 2**63 - 1
N, M = OpenSize("n"), OpenSize("m")
SIZES = {"n": N, "m": M}


def evaluated(text: str, **sizes: int) -> int:
    """What Python makes of an extent."""
    names = {"__builtins__": {}, "min": min, "max": max}
    return int(eval(text, names, sizes))  # noqa: S307


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("(n + 63) // 64", 1, (INT32 + 63) // 64),
        ("n * 2 + 5", 7, 2 * INT32 + 5),
        ("7 - n", 7 - INT32, 6),
        ("n % 12", 0, 11),
        ("min(n, 8)", 1, 8),
        ("max(n, 8)", 8, INT32),
        ("n * m", 1, INT32 * INT32),
        ("-(-n // 64)", 1, ceildiv(INT32, 64)),
        ("12", 12, 12),
    ],
)
def test_the_ends_of_an_extent(text: str, least: int, most: int) -> None:
    assert bounds(text, SIZES) == (least, most)


@pytest.mark.parametrize("text", ["k + 1", "n // m % 0", "n / 2", "f(n)", "n[0]", "?", "", "n +"])
def test_what_is_no_arithmetic_over_open_sizes_has_no_bounds(text: str) -> None:
    assert bounds(text, SIZES) is None


def test_a_64_bit_size_can_be_larger() -> None:
    assert bounds("n", {"n": OpenSize("n", 64)}) == (1, INT64)


@given(tile=st.integers(1, 4096), limit=st.integers(1, 65535), factor=st.integers(1, 8))
def test_the_last_size_within_a_limit(tile: int, limit: int, factor: int) -> None:
    text = f"(n + {tile - 1}) // {tile} * {factor}"
    if factor > limit:
        return
    found = holds_while(text, limit, SIZES)
    # factor x ceil(n / tile) <= limit  <=>  n <= tile x floor(limit / factor)
    assert found == Holds("n", tile * (limit // factor))


@pytest.mark.parametrize("text", ["n + m", "n % 7 * 100000", "100000 - n", "n * (9 - n)"])
def test_an_extent_that_cannot_be_solved_is_its_own_condition(text: str) -> None:
    assert holds_while(text, 65535, SIZES) == Holds(text, 65535)


_LEAVES = st.one_of(st.integers(0, 9).map(str), st.sampled_from(["n", "m"]))
_EXTENTS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 9)).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda p: f"{p[0]}({p[1]}, {p[2]})"
        ),
    ),
    max_leaves=8,
)


@given(text=_EXTENTS, n=st.integers(1, 10**6), m=st.integers(1, 10**6))
def test_no_value_lies_outside_the_bounds(text: str, n: int, m: int) -> None:
    found = bounds(text, SIZES)
    value = evaluated(text, n=n, m=m)
    assert found is not None
    assert found[0] <= value <= found[1]


@given(text=_EXTENTS, limit=st.integers(1, 10**5), n=st.integers(1, 10**7))
def test_a_solved_condition_holds_on_its_side_and_fails_beyond(
    text: str, limit: int, n: int
) -> None:
    # what the driver asks: an extent that can pass the limit and need not
    found = bounds(text, SIZES)
    if found is None or names_in(text) != ("n",) or not found[0] <= limit < found[1]:
        return
    holds = holds_while(text, limit, SIZES)
    value = evaluated(text, n=n)
    if holds.expression == "n":
        assert (value <= limit) == (n <= holds.most)
    else:
        assert holds == Holds(text, limit)


def test_what_the_frontends_write() -> None:
    assert joined(ast.Add(), "n", 1) == "n + 1"
    assert joined(ast.Mult(), "n + 1", 2) == "(n + 1) * 2"
    assert joined(ast.Div(), "n", 2) is None
    assert called("ceildiv", "n", 64) == "(n + 63) // 64"
    assert called("ceildiv", "n", "m") is None  # another size as the divisor
    assert called("min", "n", 64) == "min(n, 64)"
