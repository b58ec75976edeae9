"""Control flow. An undecided branch is followed under a doubt; a device branch is followed."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilefit._frontends.source.language import loop_of
from tilefit._frontends.source.ops import items_of, truth
from tilefit._frontends.source.statements import RaisedError, Return, Statements
from tilefit._frontends.source.unknown import join, known, text_of, unknown
from tilefit._frontends.source.values import (
    Device,
    LoopFrame,
    Path,
    Unknown,
    Value,
)

# how many names are copied and joined in the time of a step
_NAMES_OF_A_STEP = 8


class Break(Exception):  # noqa: N818
    """A ``break``."""


class Continue(Exception):  # noqa: N818
    """A ``continue``."""


class Control(Statements):
    """Follows branches and loops.

    Attributes:
        leaving: Where the current loop may be left, with the names as they are then.
    """

    leaving: list[tuple[Exception, dict[str, Value]]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.leaving = []

    def _do_break(self, _: ast.Break) -> None:
        raise Break

    def _do_continue(self, _: ast.Continue) -> None:
        raise Continue

    # ---- branches ----------------------------------------------------------------------------

    def _do_if(self, node: ast.If) -> None:
        decided = truth(self.operand(node.test))
        if isinstance(decided, bool):
            self.block(node.body if decided else node.orelse)
        elif isinstance(decided, Unknown):
            self.fork(decided, [node.body, node.orelse])
        else:
            self._on_device(node.body)
            self._on_device(node.orelse)

    def _on_device(self, body: Sequence[ast.stmt]) -> None:
        """Follow a branch or a loop body of the device: leaving it leaves nothing else."""
        outer, self.leaving = self.leaving, []
        try:
            with contextlib.suppress(Return, Break, Continue):
                self.block(body)
            states = [names for _, names in self.leaving]
        finally:
            self.leaving = outer
        if states:
            self.scope.vars = _joined([*states, self.scope.vars], self.doubt or Unknown())

    def fork(self, why: Unknown, branches: Sequence[Sequence[ast.stmt]]) -> None:
        """Follow branches of which one will be taken, we do not know which."""
        self.tick(len(self.scope.vars) // _NAMES_OF_A_STEP)
        before, doubts, partial = dict(self.scope.vars), len(self.doubts), self.partial
        falls: list[dict[str, Value]] = []
        exits: list[tuple[Return | Break | Continue, dict[str, Value]]] = []
        raised: RaisedError | None = None
        for body in branches:
            self.scope.vars = dict(before)
            self.doubts.append(why)
            try:
                self.block(body)
                falls.append(self.scope.vars)
            except RaisedError as error:
                raised = error  # what raises is not what the author means to run
            except (Return, Break, Continue) as end:
                exits.append((end, self.scope.vars))
            finally:
                del self.doubts[doubts:]
        if raised is not None and not falls and not exits:
            raise raised
        returned = [end.value for end, _ in exits if isinstance(end, Return)]
        if exits and not falls and len(returned) == len(exits):
            raise Return(join(returned, why))
        self.returns.extend(returned)
        leaving = [one for one in exits if not isinstance(one[0], Return)]
        if len({type(end) for end, _ in exits}) + bool(falls) > 1 or self.partial != partial:
            self.partial += 1
            self.doubts.append(why)  # what follows may not run
        if falls:
            self.scope.vars = _joined(falls, why)
            self.leaving.extend(leaving)
            return
        # nothing falls through: go on where the loop goes on, remember where it ends
        kind = Continue if any(isinstance(end, Continue) for end, _ in leaving) else Break
        self.leaving.extend(one for one in leaving if not isinstance(one[0], kind))
        same = [names for end, names in leaving if isinstance(end, kind)]
        self.scope.vars = _joined(same, why)
        raise kind

    def _do_match(self, node: ast.Match) -> None:
        subject = self.operand(node.subject)
        open_branches: list[Sequence[ast.stmt]] = []
        for case in node.cases:
            decided = self._matches(case.pattern, subject)
            if decided and case.guard is not None:
                answer = truth(self.operand(case.guard))
                decided = answer if isinstance(answer, bool) else None
            if decided is False:
                continue
            open_branches.append(case.body)
            if decided:
                break
        else:
            open_branches.append([])
        if len(open_branches) == 1:
            self.block(open_branches[0])
        else:
            self.fork(unknown(node.subject, subject), open_branches)

    def _matches(self, pattern: ast.pattern, subject: Value) -> bool | None:
        """Return whether a pattern matches, None if that is undecided."""
        if isinstance(pattern, ast.MatchAs):
            decided = True if pattern.pattern is None else self._matches(pattern.pattern, subject)
            if decided and pattern.name is not None:
                self.assign(ast.Name(pattern.name, ast.Store()), subject)
            return decided
        if isinstance(pattern, ast.MatchOr):
            results = [self._matches(one, subject) for one in pattern.patterns]
            return True if True in results else (None if None in results else False)
        if not known(subject):
            return None
        if isinstance(pattern, ast.MatchSingleton):
            return subject is pattern.value
        if isinstance(pattern, ast.MatchValue):
            value = self.evaluate(pattern.value)
            return bool(subject == value) if known(value) else None
        return None

    def _do_try(self, node: ast.Try) -> None:
        handlers = [handler.body for handler in node.handlers]
        try:
            self.block(node.body)
            self.block(node.orelse)
        except RaisedError:
            if not handlers:
                raise
            self.fork(Unknown((), "try"), handlers)
        else:
            self._doubt_names(handlers)
        finally:
            self.block(node.finalbody)

    def _doubt_names(self, handlers: Sequence[Sequence[ast.stmt]]) -> None:
        """What an ``except`` would bind is undecided, but for modules: those a kernel needs."""
        for node in (n for body in handlers for statement in body for n in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                value = self.scope.vars.get(node.id)
                if not isinstance(value, Path):
                    self.scope.vars[node.id] = self.missing(node.id)

    # ---- loops -------------------------------------------------------------------------------

    def _do_for(self, node: ast.For) -> None:
        over = self._iterable(node.iter)
        items = items_of(over)
        if isinstance(over, LoopFrame):
            self._device_loop(node, over)
        elif items is None:
            self._undecided_loop(node, unknown(node.iter, over))
        else:
            live = over if isinstance(over, list) else items  # a list may grow meanwhile
            self._python_loop(node, self._each(node.target, live))

    def _each(self, target: ast.expr, items: Sequence[Value]) -> Iterator[None]:
        for item in items:
            self.assign(target, item)
            yield

    def _python_loop(self, node: ast.For | ast.While, turns: Iterator[None]) -> None:
        """Follow the body once a turn; where it may be left, what follows is undecided."""
        outer, broken, ended = self.leaving, [], False
        try:
            for _ in turns:
                self.leaving = []
                try:
                    self.block(node.body)
                except Continue:
                    pass
                except Break:
                    ended = True
                broken += [names for end, names in self.leaving if isinstance(end, Break)]
                going = [names for end, names in self.leaving if isinstance(end, Continue)]
                if ended and not going:
                    break
                if ended:
                    broken.append(self.scope.vars)
                    ended = False
                else:
                    going.append(self.scope.vars)
                self.scope.vars = _joined(going, self.doubt or Unknown())
        finally:
            self.leaving = outer
        if broken:
            why = self.doubt or Unknown()
            if not ended:
                self.fork(why, [node.orelse, []])
            self.scope.vars = _joined([*broken, self.scope.vars], why)
        elif not ended:
            self.block(node.orelse)

    def _iterable(self, node: ast.expr) -> Value:
        """Return what a loop runs over; where TileLang traces, a range is a device loop."""
        if self.traced and isinstance(node, ast.Call):
            function = self.evaluate(node.func)
            if function == Path("builtins.range") and not node.keywords:
                return loop_of("serial", [self.evaluate(argument) for argument in node.args], {})
        over = self.evaluate(node)
        if self.traced and isinstance(over, range):
            return LoopFrame((1 if over else 0,))
        return over

    def _device_loop(self, node: ast.For, frame: LoopFrame) -> None:
        parts = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        names = [text_of(part) for part in parts]
        count = len(frame.extents)
        variables = names if len(names) == count else [names[0]] * count
        indices = [Device(name) for name in names]
        for part, index in zip(parts, indices, strict=True):
            if isinstance(part, ast.Name):  # a new variable, even where one of that name was
                self.scope.vars[part.id] = index
        if self.trace is None:
            self._on_device(node.body)
            return
        with self.trace.loops(frame, variables, self.doubt) as loops:
            for loop, index in zip(loops, indices, strict=False):
                loop.index = index
            self._on_device(node.body)

    def _undecided_loop(self, node: ast.For | ast.While, why: Unknown) -> None:
        """Follow the body of a loop once that may run any number of times."""
        before, doubts = dict(self.scope.vars), len(self.doubts)
        self.doubts.append(why)
        try:
            if isinstance(node, ast.For):
                self.assign(node.target, Unknown(why.names, text_of(node.target)))
            self._on_device(node.body)
        finally:
            del self.doubts[doubts:]
        self.scope.vars = _joined([before, self.scope.vars], why)

    def _do_while(self, node: ast.While) -> None:
        self._python_loop(node, self._while(node))

    def _while(self, node: ast.While) -> Iterator[None]:
        """Take a turn as long as the condition holds; once where it is not decided here."""
        while True:
            self.tick()
            decided = truth(self.operand(node.test))
            if isinstance(decided, Device):
                self._on_device(node.body)
                return
            if isinstance(decided, Unknown):
                self._undecided_loop(node, decided)
                return
            if not decided:
                return
            yield


def _joined(branches: Sequence[Mapping[str, Value]], why: Unknown) -> dict[str, Value]:
    """Join the names of branches; one that only some of them bind is theirs."""
    found: dict[str, list[Value]] = {}
    for names in branches:
        for name, value in names.items():
            found.setdefault(name, []).append(value)
    return {
        name: values[0]
        if all(value is values[0] for value in values)
        else join(values, replace(why, text=name))
        for name, values in found.items()
    }
