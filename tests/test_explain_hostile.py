"""Any text gets an answer, and in time that grows with its length, not faster."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefit._explain import Explanation, explain
from tilefit._explain import driver as _driver
from tilefit._explain import params as _params
from tilefit._explain import pasted as _pasted
from tilefit._explain import pattern as _pattern
from tilefit._explain.forms import forms
from tilefit._render.explain import explanation_dict, explanation_text

PASTED = Path(__file__).parent / "data" / "pasted"
TEXTS = [path.read_bytes().decode("utf-8") for path in sorted(PASTED.glob("*.txt"))]


def said(answer: Explanation) -> str:
    explanation_dict(answer)
    return explanation_text(answer)


# ------------------------------------------------------------------------------ any text at all
@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    assert said(explain(text))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_messages_cut_joined_and_sprinkled(data: st.DataObject) -> None:
    """Pieces of real messages with anything between them."""
    parts = []
    for _ in range(data.draw(st.integers(1, 4))):
        text = data.draw(st.sampled_from(TEXTS))
        start = data.draw(st.integers(0, len(text)))
        parts.append(text[start : data.draw(st.integers(start, len(text)))])
        parts.append(data.draw(st.text(max_size=8)))
    assert said(explain("".join(parts)))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([form.texts[0] for form in forms()]),
    st.text(alphabet="0123456789., '_x\n", max_size=30),
    st.dictionaries(
        st.sampled_from(["BLOCK_M", "block_n", "BK", "num_stages", "dtype", "S", "op", "regs"]),
        st.one_of(st.integers(), st.text(max_size=6), st.none(), st.floats(), st.booleans()),
    ),
)
def test_any_number_in_any_form_with_any_parameters(
    text: str, number: str, params: dict[str, object]
) -> None:
    filled = re.sub(r"\{[a-z]+(?:[:=][^}]*)?\}", lambda _: number, text)
    assert said(explain(filled, params))
    assert said(explain(filled, params, "h100"))


@pytest.mark.parametrize("number", ["0", "9" * 20, "9" * 400, "1.5", "1.2.3", "0x", "0xfffffffff"])
def test_numbers_that_are_no_sizes(number: str) -> None:
    text = f"out of resource: shared memory, Required: {number}, Hardware limit: {number}."
    for finding in explain(text, {"BLOCK_M": 1, "BLOCK_N": 1, "BLOCK_K": 1}).findings:
        assert finding.required is None or finding.required < 2**63


# --------------------------------------------------------------------------- the work is linear
HOSTILE: dict[str, Callable[[int], str]] = {
    "one letter": lambda n: "o" * n,
    "digits": lambda n: "9" * n,
    "dots between digits": lambda n: "1." * n,
    "spaces": lambda n: " " * n,
    "quotes of quotes": lambda n: "> " * n,
    "line breaks": lambda n: "\n" * n,
    "escapes": lambda n: "\x1b[" * n,
    "open links": lambda n: "\x1b]8;;" * n,
    "open tags": lambda n: "<code " * n,
    "first words": lambda n: "out of resource: " * n,
    "words before a number": lambda n: "out of resource: shared memory, Required: " * n,
    "names before Required": lambda n: "out of resource: a_b Required " * n,
    "a name that never ends": lambda n: "out of resource: " + "a_" * n,
    "scopes": lambda n: "scope " * n,
    "entry functions": lambda n: "Entry function '_Z" * n,
    "whole messages": lambda n: TEXTS[0] * (n // 20),
    "different messages": lambda n: "".join(
        f"requires {i} bits while ub overflow, requires {i} bits while " for i in range(n // 20)
    ),
    "settings": lambda n: "BLOCK_M=1, " * n + TEXTS[0],
}


def events(text: str) -> int:
    """Count the calls that explaining a text makes, of Python and of C functions."""
    count = 0

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    explain(text)  # what is read once and kept must not count
    sys.setprofile(seen)
    try:
        explain(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_text_is_at_most_four_times_the_work(name: str) -> None:
    """Counted in calls: the work inside a call of `re` is held by the test after this."""
    small, large = (events(HOSTILE[name](n)) for n in (500, 2000))
    assert large <= 4 * small + 400


def test_the_count_of_calls_sees_quadratic_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this the test above could not fail."""
    original = _driver.find

    def quadratic(pasted: _pasted.Pasted) -> Any:
        for start in range(len(pasted.clean)):
            for at in range(start):
                len(pasted.clean[at])
        return original(pasted)

    monkeypatch.setattr(_driver, "find", quadratic)
    small, large = (events("o" * n) for n in (50, 200))
    assert large > 4 * small + 400


def patterns() -> dict[str, re.Pattern[str]]:
    """Return every pattern that meets pasted text."""
    found = {text: _pattern.compiled(text).pattern for form in forms() for text in form.texts}
    for module in (_pasted, _params, _driver):
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found[f"{module.__name__}.{name}"] = value
    return found


@pytest.mark.parametrize("name", patterns())
def test_no_pattern_can_take_more_than_linear_time(name: str) -> None:
    """Repeats are bounded, or of one character; in a repeat there is none but a bounded one."""
    pattern = patterns()[name]
    assert problems(parser.parse(pattern.pattern, pattern.flags)) == []


@pytest.mark.parametrize(
    "bad",
    [
        r"(?:a+)+",
        r"(?:a*b)*c",
        r"a.*b",
        r"(?:ab|a.*)x",
        r"(a+)+$",
        r"(?:a{0,30}){0,30}b",
        r"a{0,2000}b",
    ],
)
def test_the_check_of_patterns_sees_bad_ones(bad: str) -> None:
    assert problems(parser.parse(bad))


REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_BOUND = 1000


def problems(parsed: Any, *, repeated: bool = False, last: bool = True) -> list[str]:
    """Return what could make a pattern slow.

    A repeat is bounded, or it is the end of the pattern, where nothing can fail behind it and
    send it back. Inside a repeat another one stands only behind a literal, so that there is one
    way to divide a text between the two.
    """
    found: list[str] = []
    items = list(parsed)
    for index, (code, argument) in enumerate(items):
        at_end = last and index == len(items) - 1
        if code in REPEATS:
            _, most, body = argument
            if repeated and most != 1 and (index == 0 or items[0][0] is not codes.LITERAL):
                found.append(f"a repeat at the start of a repeated part: {body}")
            if most is codes.MAXREPEAT or most > _BOUND:
                if not at_end:
                    found.append(f"an unbounded repeat: {body}")
                found += problems(body, repeated=True, last=False)
            else:
                found += problems(body, repeated=repeated or most != 1, last=False)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                found += problems(branch, repeated=repeated, last=at_end)
        elif code is codes.SUBPATTERN:
            found += problems(argument[-1], repeated=repeated, last=at_end)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            found += problems(argument[1], last=False)
    return found
