"""The rules held against a message: which give its number, and which small changes then fit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from tilefit._devices.alike import warp
from tilefit._explain.params import Tile
from tilefit._explain.rules import RULES, Rule
from tilefit._explain.values import Change, Sum

_GUESSED_BITS = (16, 32, 8)
_MOST_STAGES = 32
_MOST_CHANGES = 4


@dataclass(frozen=True, slots=True)
class Fit:
    """A rule that gives the number.

    Attributes:
        rule: Which.
        bits: Bits of an element.
        solved: What the parameters left open.
        total: The sum to show.
    """

    rule: Rule
    bits: int
    solved: int
    total: Sum


def fits(toolchain: str, unit: str, required: int | None, tile: Tile) -> tuple[Fit, ...]:
    """Return the rules that give exactly ``required``.

    Without a number in the message, only a rule that needs no check is used: registers.
    """
    found: list[Fit] = []
    for rule in RULES:
        if toolchain not in rule.toolchains or rule.unit != unit:
            continue
        if not tile.has(*rule.needs) or any(name in tile.numbers for name in rule.without):
            continue
        for bits, assumed in _bits(tile, rule):
            fit = _fit(rule, bits, assumed, required, tile)
            if fit is not None and all(fit.total.written != f.total.written for f in found):
                found.append(fit)
    return tuple(found)


def changes(fit: Fit, limit: int, tile: Tile) -> tuple[Change, ...]:
    """Return the smallest change of each parameter that fits by a rule, closest fit first.

    Where none fits alone, the smallest change of each two is tried.
    """
    knobs = [knob for knob in fit.rule.knobs if tile.has(knob)]
    found = [_smallest(fit, limit, tile, (knob,)) for knob in knobs]
    if not any(found):
        found = [_smallest(fit, limit, tile, pair) for pair in combinations(knobs, 2)]
    fitting = [change for change in found if change is not None]
    return tuple(sorted(fitting, key=lambda change: change.margin)[:_MOST_CHANGES])


def _smallest(fit: Fit, limit: int, tile: Tile, knobs: tuple[str, ...]) -> Change | None:
    """Return the change of exactly these parameters that keeps the most, within the limit."""
    best: Change | None = None
    for values in product(*(_smaller(fit.rule, knob, tile[knob]) for knob in knobs)):
        smaller = tile
        for knob, value in zip(knobs, values, strict=True):
            smaller = smaller.replaced(knob, value)
        reckoned = fit.rule.reckon(smaller, fit.bits, fit.solved)
        if reckoned is None or reckoned[0] > limit or (best and reckoned[0] <= best.value):
            continue
        steps = tuple((tile.spelled.get(knob, knob), tile[knob], smaller[knob]) for knob in knobs)
        best = Change(steps, reckoned[0], limit - reckoned[0])
    return best


def _bits(tile: Tile, rule: Rule) -> list[tuple[int, str]]:
    """Return the element sizes to try, each with what it assumes."""
    dtype = tile.types.get("dtype") or tile.types.get("a_dtype")
    if dtype is not None:
        return [(dtype.bits, "")]
    if rule.unit == "registers" or rule.name.startswith("mxfp4"):
        return [(8, "")]
    return [(bits, f"elements of {bits // 8} B: no dtype is given") for bits in _GUESSED_BITS]


def _fit(rule: Rule, bits: int, assumed: str, required: int | None, tile: Tile) -> Fit | None:
    if required is None and rule.unit != "registers":
        return None
    solved = rule.solve(tile, bits, required or 0)
    reckoned = None if solved is None else rule.reckon(tile, bits, solved)
    if solved is None or reckoned is None or required not in (None, reckoned[0]):
        return None
    words = rule.open_words.format(solved) if rule.open_words and solved else ""
    both = "; ".join(word for word in (assumed, words) if word)
    total = Sum(rule.name, rule.formula, reckoned[1], reckoned[0], rule.unit, rule.why, both)
    return Fit(rule, bits, solved, total)


def _smaller(rule: Rule, knob: str, value: int) -> list[int]:
    """Return smaller values of a parameter, the largest first."""
    if knob == "num_stages":
        return list(range(min(value - 1, _MOST_STAGES), 0, -1))
    if knob == "registers":
        return list(range((value - 1) // 8 * 8, 0, -8))
    least = {"threads": warp()[0], "num_warps": 1}.get(knob, rule.least)
    found = []
    while value % 2 == 0 and value // 2 >= least:
        value //= 2
        found.append(value)
    return found
