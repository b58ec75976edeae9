"""The statements of a scheduled Ascend kernel as a line of steps, and when each buffer is live.

Read after the scheduler has put the statements in order and before vector and cube work part, so
that one line holds both. A vector region is one step. A buffer that a loop owns (it is written
before it is read in every iteration) is live within an iteration, the whole loop long where
iterations overlap; any other buffer that a loop touches is live for the whole outermost loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefit._frontends.tilelang.ascend.ir import ELIGIBLE, Key
from tilefit._frontends.tilelang.declared import dim, visit

VECTOR_REGIONS = ("SIMT_VF", "SIMD_VF")
_REGION_INDEX = "tl.vf_source_index"
_UNIT = "tl.schedule_unit"
_CONTAINERS = ("body", "seq", "block")

Condition = tuple[str, bool]
"""An expression, and whether it must be true."""


@dataclass(slots=True, eq=False)
class Span:
    """A loop on the line of steps.

    Attributes:
        variable: Its variable.
        stages: The ``num_stages`` it asks for, or what its T.Stage blocks amount to; None if it
            asks for none.
        owned: Buffers that are fresh in each of its iterations.
        start: Its first step.
        end: The step behind its last one.
        asked: True if the author gave it a ``num_stages``.
        once: True if it has one iteration: lowering leaves no loop of it.
    """

    variable: str
    stages: int | None
    owned: frozenset[Key]
    start: int
    end: int = 0
    asked: bool = False
    once: bool = False


@dataclass(slots=True)
class Step:
    """A statement.

    Attributes:
        touched: The buffers that it reads or writes.
        loops: The loops around it, outermost first.
        region: Number of the vector region that it is; None for other statements.
        multiplies: Names of the first two operands, if it is a matrix multiplication.
        conditions: What must hold for it to run, and what must not: condition and wanted value.
    """

    touched: frozenset[Key]
    loops: tuple[Span, ...]
    region: int | None = None
    multiplies: tuple[str, str] | None = None
    conditions: frozenset[Condition] = frozenset()


@dataclass(slots=True)
class Steps:
    """A kernel as a line of steps.

    Attributes:
        steps: Its statements.
        loops: Its loops, outermost first.
    """

    steps: list[Step] = field(default_factory=list)
    loops: list[Span] = field(default_factory=list)

    def live(self, key: Key, *, overlapping: bool) -> tuple[int, int] | None:
        """Return the first step of a buffer's life and the one behind its last.

        Args:
            key: The buffer.
            overlapping: Several versions of it are alive at a time.
        """
        spans = [
            self._extended(number, step, key, overlapping=overlapping)
            for number, step in enumerate(self.steps)
            if key in step.touched
        ]
        return _hull(spans)

    def _extended(self, number: int, step: Step, key: Key, *, overlapping: bool) -> tuple[int, int]:
        around = [loop for loop in step.loops if not loop.once]
        owner = next((n for n, loop in enumerate(around) if key in loop.owned), None)
        if owner is not None:
            over = overlapping or (around[owner].stages or 1) > 1
            around = around[owner if over else owner + 1 :]
        return (around[0].start, around[0].end) if around else (number, number + 1)

    def region(self, index: int) -> tuple[int, int] | None:
        """Return the span of a vector region by its number in the source."""
        return _hull([(n, n + 1) for n, step in enumerate(self.steps) if step.region == index])

    def multiplication(self, a: str, b: str, key: Key | None) -> tuple[int, int] | None:
        """Return the span of the matrix multiplications of two operands.

        Args:
            a: Name of the first one.
            b: Name of the second one.
            key: The buffer that the first one is, where the name is not enough.
        """
        numbers = [
            n for n in self.multiplications(a, b) if key is None or key in self.steps[n].touched
        ]
        return _hull([(n, n + 1) for n in numbers])

    def multiplications(self, a: str, b: str) -> list[int]:
        """Return the steps that are matrix multiplications of two operands."""
        return [n for n, s in enumerate(self.steps) if s.multiplies == (a, b)]

    def multiplied_while_live(self, key: Key, a: str, b: str, *, overlapping: bool) -> bool:
        """Return whether a multiplication of two operands runs within a buffer's life."""
        live = self.live(key, overlapping=overlapping)
        mine = self._always(key)
        return live is not None and any(
            live[0] <= n < live[1] and not _exclude(mine, self.steps[n].conditions)
            for n in self.multiplications(a, b)
        )

    def touches(self, key: Key) -> bool:
        """Return whether any statement reads or writes a buffer."""
        return any(key in step.touched for step in self.steps)

    def alternative(self, key: Key) -> bool:
        """Return whether a buffer is for one branch of a condition, and others for the other."""
        mine = self._always(key)
        return any(_exclude(mine, step.conditions) for step in self.steps if step.touched)

    def _always(self, key: Key) -> frozenset[Condition]:
        """Return the conditions under which alone a buffer is touched."""
        every = [step.conditions for step in self.steps if key in step.touched]
        return frozenset.intersection(*every) if every else frozenset()

    def around(self, key: Key) -> list[Span]:
        """Return the loops that touch a buffer, outermost first."""
        inside = {id(loop) for step in self.steps if key in step.touched for loop in step.loops}
        return [loop for loop in self.loops if id(loop) in inside]

    def within(self, loop: Span) -> frozenset[Key]:
        """Return the buffers that a loop touches."""
        return frozenset().union(*(s.touched for s in self.steps[loop.start : loop.end]))


def _exclude(some: frozenset[Condition], others: frozenset[Condition]) -> bool:
    return any((condition, not wanted) in others for condition, wanted in some)


def _hull(spans: list[tuple[int, int]]) -> tuple[int, int] | None:
    return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None


def steps_of(body: Any, keys: Mapping[Any, Key]) -> Steps:
    """Write the body of a kernel out as steps.

    Args:
        body: The statement.
        keys: The buffers by the variable of their memory.
    """
    found = Steps()
    _walk(body, (), frozenset(), found, keys)
    return found


def _walk(
    node: Any,
    loops: tuple[Span, ...],
    under: frozenset[Condition],
    found: Steps,
    keys: Mapping[Any, Key],
) -> None:
    kind = type(node).__name__
    if kind == "For":
        loop = _span(node, len(found.steps), keys)
        found.loops.append(loop)
        _walk(node.body, (*loops, loop), under, found, keys)
        loop.end = len(found.steps)
        return
    if kind == "IfThenElse":
        condition, wanted = _condition(node.condition)
        _walk(node.then_case, loops, under | {(condition, wanted)}, found, keys)
        if node.else_case is not None:
            _walk(node.else_case, loops, under | {(condition, not wanted)}, found, keys)
        return
    if kind == "SBlock" and str(node.name_hint) in VECTOR_REGIONS:
        region = dict(node.annotations or {}).get(_REGION_INDEX)
        index = None if region is None else int(region)
        _step(node, loops, under, found, keys, region=index)
        return
    if kind == "AttrStmt" and str(node.attr_key) == _UNIT and loops:
        stage = int(dict(node.node).get("stage", 0))
        if stage > 0 and not loops[-1].asked:
            loops[-1].stages = max(loops[-1].stages or 1, stage + 1)
    children = [getattr(node, name, None) for name in _CONTAINERS]
    if any(child is not None for child in children):
        for child in children:
            if child is None:
                continue
            for one in child if type(child).__name__ == "Array" else [child]:
                _walk(one, loops, under, found, keys)
        return
    _step(node, loops, under, found, keys, region=None)


def _span(node: Any, start: int, keys: Mapping[Any, Key]) -> Span:
    notes = dict(node.annotations or {})
    stages = notes.get("num_stages")
    return Span(
        variable=str(node.loop_var.name),
        stages=None if stages is None else int(stages),
        owned=frozenset(keys[s] for s in _storages(notes.get(ELIGIBLE, ())) if s in keys),
        start=start,
        asked=stages is not None,
        once=dim(node.extent) == 1,
    )


def _condition(expression: Any) -> Condition:
    """Return a condition without its negations, and whether it must hold."""
    wanted = True
    while type(expression).__name__ == "Not":
        expression, wanted = expression.a, not wanted
    return str(expression), wanted


def _storages(claimed: Any) -> list[Any]:
    return [getattr(item, "data", item) for item in claimed]


def _step(
    node: Any,
    loops: tuple[Span, ...],
    under: frozenset[Condition],
    found: Steps,
    keys: Mapping[Any, Key],
    *,
    region: int | None,
) -> None:
    touched: set[Key] = set()
    operands: list[tuple[str, str]] = []

    def look(inner: Any) -> None:
        kind = type(inner).__name__
        if kind in ("BufferLoad", "BufferStore"):
            touched.update(k for k in [keys.get(inner.buffer.data)] if k)
        elif kind == "Call":
            name = str(getattr(inner.op, "name", ""))
            if name.endswith("tvm_access_ptr"):
                touched.update(k for k in [keys.get(inner.args[1])] if k)
            elif name.startswith("tl.tileop.gemm"):
                a, b = (str(argument.args[0].buffer.name) for argument in inner.args[:2])
                operands.append((a, b))

    visit(node, look)
    if touched or region is not None:
        product = operands[0] if operands else None
        found.steps.append(Step(frozenset(touched), loops, region, product, under))
