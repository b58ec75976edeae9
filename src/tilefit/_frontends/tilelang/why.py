"""Why a shared buffer has its copies, as TileLang's own passes show it.

Two passes multiply buffers: warp specialisation (targets with TMA) and software pipelining. A
snapshot of the IR after each tells which of them did it; the loop body of the source tells what
made it do so. The codes are those of `tilefit._kernel.reasons`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilefit._frontends.tilelang.declared import dim, lowered_name, names_of, product, visit
from tilefit._frontends.tilelang.sizes import Sizes
from tilefit._kernel.kernel import Loop
from tilefit._kernel.reasons import Why

WS_PASS = "tl.ProducerConsumerWarpSpecialized"
PIPELINE_PASS = "tl.InjectSoftwarePipeline"
WS_APPLIED = "tl_tiled_ws_applied"
# access mask of tl.region: 1 reads, 2 writes
_WRITES = 2


@dataclass(frozen=True, slots=True)
class Use:
    """What one pipelined loop of the source does with one buffer.

    Attributes:
        loop: The loop.
        explicit: The loop carries order= and stage= lists.
        copied: A T.copy from global memory writes the buffer in it.
        stored: A plain store whose value reads global memory writes it.
        guarded: That store is under a condition.
        written: Anything in the loop writes it.
    """

    loop: Loop
    explicit: bool
    copied: bool
    stored: bool
    guarded: bool
    written: bool


class Causes:
    """The evidence behind the copies of one kernel's buffers."""

    def __init__(
        self,
        prim_func: Any,
        loops: list[tuple[Any, Loop]],
        snapshots: Mapping[str, Any],
        sizes: Sizes,
    ) -> None:
        self._uses = _uses(loops, names_of(prim_func.body))
        declared = _elements([prim_func], sizes)
        before = _elements(_functions(snapshots.get(f"before {PIPELINE_PASS}")), sizes)
        after = _elements(_functions(snapshots.get(f"after {PIPELINE_PASS}")), sizes)
        self._ws = _factors(declared, before)
        self._pipeline = _factors(before, after)
        specialised = _functions(snapshots.get(f"after {WS_PASS}"))
        self.specialised = any(WS_APPLIED in dict(f.attrs or {}) for f in specialised)
        asked = any("num_stages" in dict(node.annotations or {}) for node, _ in loops)
        kept = self.specialised or any(_asks_for_stages(f) for f in specialised)
        self.dropped = bool(specialised) and asked and not kept

    def why(self, written: Any, nth: int, copies: int | None) -> Why:
        """Return the code for a buffer, the ``nth`` of those that lowering calls the same."""
        uses = self._uses.get(str(written.name), [])
        if copies == 0:
            empty = any(isinstance(u.loop.extent, int) and u.loop.extent <= 0 for u in uses)
            return Why.EMPTY_LOOP if empty else Why.UNUSED
        ws = _at(self._ws, lowered_name(written), nth)
        pipeline = _at(self._pipeline, lowered_name(written), nth)
        if copies is None or copies != ws * pipeline:
            return Why.LAYOUT
        return self._multiplied(uses, ws, pipeline) if copies > 1 else self._single(uses)

    def detail(self, name: str, copies: int | None) -> str | None:
        """Return in words what the author asked for, where that multiplied the buffer."""
        asked = [u.loop.num_stages for u in self._uses.get(name, []) if u.loop.num_stages]
        if copies is None or copies < 2 or not asked:
            return None
        return "T.Pipelined stages=" + " and ".join(str(s) for s in asked)

    def _multiplied(self, uses: list[Use], ws: int, pipeline: int) -> Why:
        writers = [u for u in uses if u.written]
        if any(u.explicit for u in writers):
            return Why.EXPLICIT_ORDER
        most = max((u.loop.num_stages or 1 for u in writers), default=1)
        if (ws > 1 and pipeline > 1) or (len(writers) > 1 and pipeline > most):
            return Why.TWO_LOOPS
        if not any(u.copied for u in uses):
            if any(u.guarded for u in uses):
                return Why.GUARDED_LOAD
            if any(u.stored for u in uses):
                return Why.STORE_DRIVEN
        return Why.WS_PIPELINE if ws > 1 else Why.PIPELINE

    def _single(self, uses: list[Use]) -> Why:
        staged = [u for u in uses if (u.loop.num_stages or 0) > 0 or u.explicit]
        if not staged:
            return Why.NOT_PIPELINED
        if not any(u.written for u in staged):
            return Why.READ_ONLY
        if self.dropped and any(u.copied or u.stored for u in staged):
            return Why.STAGES_DROPPED
        if all(u.loop.num_stages == 1 for u in staged if u.written):
            return Why.ONE_STAGE
        return Why.SAME_STAGE


def _functions(module: Any) -> list[Any]:
    return [] if module is None else [f for f in module.functions.values() if hasattr(f, "body")]


def _elements(functions: Iterable[Any], sizes: Sizes) -> dict[str, list[int | None]]:
    """Return the elements of every allocated buffer, by lowering's name in order."""
    found: dict[str, list[int | None]] = {}

    def look(node: Any) -> None:
        for buffer in getattr(node, "alloc_buffers", ()):
            elements = found.setdefault(lowered_name(buffer), [])
            elements.append(product([dim(d, sizes) for d in buffer.shape]))

    for function in functions:
        visit(function.body, look)
    return found


def _factors(
    before: Mapping[str, list[int | None]], after: Mapping[str, list[int | None]]
) -> dict[str, list[int]]:
    """Return by how much each buffer grew; 1 where it did not, or cannot be said."""
    found: dict[str, list[int]] = {}
    for name, sizes in after.items():
        old = before.get(name, [])
        pairs = zip(sizes, [*old, *[None] * len(sizes)], strict=False)
        found[name] = [new // was if new and was and new % was == 0 else 1 for new, was in pairs]
    return found


def _at(factors: Mapping[str, list[int]], name: str, nth: int) -> int:
    values = factors.get(name, [])
    return values[nth] if nth < len(values) else 1


def _asks_for_stages(function: Any) -> bool:
    found: list[int] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "For" and "num_stages" in dict(node.annotations or {}):
            found.append(1)

    visit(function.body, look)
    return bool(found)


# ---- what a loop of the source does with a buffer ------------------------------------------


def _uses(loops: list[tuple[Any, Loop]], known: Mapping[Any, str]) -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = {}
    for node, loop in loops:
        explicit = "tl_pipeline_stage" in dict(node.annotations or {})
        body = _Body(node.body, known)
        for name in loop.buffers:
            use = Use(
                loop=loop,
                explicit=explicit,
                copied=name in body.copied,
                stored=name in body.stored,
                guarded=name in body.guarded,
                written=name in body.written,
            )
            found.setdefault(name, []).append(use)
    return found


def with_copied(loops: list[tuple[Any, Loop]], known: Mapping[Any, str]) -> list[tuple[Any, Loop]]:
    """Return the loops with the names of the buffers that a T.copy from global memory fills.

    Args:
        loops: The loops.
        known: The names of the buffers by their data variables.
    """
    return [
        (node, replace(loop, copied=tuple(sorted(_Body(node.body, known).copied))))
        for node, loop in loops
    ]


class _Body:
    """Who writes which buffer in a loop body, and how."""

    def __init__(self, body: Any, known: Mapping[Any, str]) -> None:
        self._known = known
        self.copied: set[str] = set()
        self.stored: set[str] = set()
        self.guarded: set[str] = set()
        self.written: set[str] = set()
        self._under_if: set[Any] = set()
        visit(body, self._note_guards)
        visit(body, self._note_writes)

    def _note_guards(self, node: Any) -> None:
        if type(node).__name__ == "IfThenElse":

            def inside(inner: Any) -> None:
                if type(inner).__name__ == "BufferStore":
                    self._under_if.add(inner)

            visit(node.then_case, inside)
            if node.else_case is not None:
                visit(node.else_case, inside)

    def _note_writes(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "BufferStore" and str(node.buffer.scope()) != "global":
            name = self._name(node.buffer)
            self.written.add(name)
            if _reads_global(node.value):
                self.stored.add(name)
                if node in self._under_if or _has_condition(node.value):
                    self.guarded.add(name)
        elif kind == "Call":
            self._note_call(node)

    def _name(self, buffer: Any) -> str:
        return self._known.get(buffer.data, str(buffer.name))

    def _note_call(self, node: Any) -> None:
        op = str(getattr(node.op, "name", ""))
        if op == "tl.region" and int(node.args[1]) & _WRITES:
            self.written.add(self._name(node.args[0].buffer))
        if op.startswith("tl.tileop.") and "copy" in op and len(node.args) >= 2:
            source, target = _region(node.args[0]), _region(node.args[1])
            from_global = source is not None and str(source.scope()) == "global"
            if from_global and target is not None and str(target.scope()) != "global":
                self.copied.add(self._name(target))


def _region(argument: Any) -> Any:
    """Return the buffer of a tl.region call, None for anything else."""
    if str(getattr(getattr(argument, "op", None), "name", "")) == "tl.region":
        return argument.args[0].buffer
    return None


def _reads_global(value: Any) -> bool:
    found: list[int] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "BufferLoad" and str(node.buffer.scope()) == "global":
            found.append(1)

    visit(value, look)
    return bool(found)


def _has_condition(value: Any) -> bool:
    found: list[int] = []

    def look(node: Any) -> None:
        op = str(getattr(getattr(node, "op", None), "name", ""))
        if type(node).__name__ == "Select" or op.endswith("if_then_else"):
            found.append(1)

    visit(value, look)
    return bool(found)
