"""Control flow. An undecided branch is followed under a doubt; a device branch is followed."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilefit._frontends.source.language import loop_of
from tilefit._frontends.source.machine import Break, Continue, Machine, RaisedError, Return, Rule
from tilefit._frontends.source.names import assign
from tilefit._frontends.source.operators import items_of, truth
from tilefit._frontends.source.unknown import join, known, names_of, text_of, unknown
from tilefit._frontends.source.values import (
    Device,
    LoopFrame,
    Path,
    Unknown,
    Value,
)

# how many names are copied and joined in the time of a step
_NAMES_OF_A_STEP = 8


# ---- branches --------------------------------------------------------------------------------


def _if(machine: Machine, node: ast.If) -> None:
    decided = truth(machine.operand(node.test))
    if isinstance(decided, bool):
        machine.block(node.body if decided else node.orelse)
    elif isinstance(decided, Unknown):
        _fork(machine, decided, [node.body, node.orelse])
    else:
        _on_device(machine, node.body)
        _on_device(machine, node.orelse)


def _on_device(machine: Machine, body: Sequence[ast.stmt]) -> None:
    """Follow a branch or a loop body of the device: leaving it leaves nothing else."""
    outer, machine.leaving = machine.leaving, []
    try:
        with contextlib.suppress(Return, Break, Continue):
            machine.block(body)
        states = [names for _, names in machine.leaving]
    finally:
        machine.leaving = outer
    if states:
        machine.scope.vars = _joined([*states, machine.scope.vars], machine.doubt or Unknown())


def _fork(machine: Machine, why: Unknown, branches: Sequence[Sequence[ast.stmt]]) -> None:
    """Follow branches of which one will be taken, we do not know which."""
    machine.tick(len(machine.scope.vars) // _NAMES_OF_A_STEP)
    before, doubts, partial = dict(machine.scope.vars), len(machine.doubts), machine.partial
    falls: list[dict[str, Value]] = []
    exits: list[tuple[Return | Break | Continue, dict[str, Value]]] = []
    raised: RaisedError | None = None
    for body in branches:
        machine.scope.vars = dict(before)
        machine.doubts.append(why)
        try:
            machine.block(body)
            falls.append(machine.scope.vars)
        except RaisedError as error:
            raised = error  # what raises is not what the author means to run
        except (Return, Break, Continue) as end:
            exits.append((end, machine.scope.vars))
        finally:
            del machine.doubts[doubts:]
    if raised is not None and not falls and not exits:
        raise raised
    returned = [end.value for end, _ in exits if isinstance(end, Return)]
    if exits and not falls and len(returned) == len(exits):
        raise Return(join(returned, why))
    machine.returns.extend(returned)
    leaving = [one for one in exits if not isinstance(one[0], Return)]
    if len({type(end) for end, _ in exits}) + bool(falls) > 1 or machine.partial != partial:
        machine.partial += 1
        machine.doubts.append(why)  # what follows may not run
    if falls:
        machine.scope.vars = _joined(falls, why)
        machine.leaving.extend(leaving)
        return
    # nothing falls through: go on where the loop goes on, remember where it ends
    kind = Continue if any(isinstance(end, Continue) for end, _ in leaving) else Break
    machine.leaving.extend(one for one in leaving if not isinstance(one[0], kind))
    same = [names for end, names in leaving if isinstance(end, kind)]
    machine.scope.vars = _joined(same, why)
    raise kind


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


def _match(machine: Machine, node: ast.Match) -> None:
    subject = machine.operand(node.subject)
    open_branches: list[Sequence[ast.stmt]] = []
    for case in node.cases:
        decided = _matches(machine, case.pattern, subject)
        if decided is None:
            _doubt_captures(machine, case.pattern, subject)
        if decided and case.guard is not None:
            answer = truth(machine.operand(case.guard))
            decided = answer if isinstance(answer, bool) else None
        if decided is False:
            continue
        open_branches.append(case.body)
        if decided:
            break
    else:
        open_branches.append([])
    if len(open_branches) == 1:
        machine.block(open_branches[0])
    else:
        _fork(machine, unknown(node.subject, subject), open_branches)


def _matches(machine: Machine, pattern: ast.pattern, subject: Value) -> bool | None:
    """Return whether a pattern matches, None if that is undecided."""
    if isinstance(pattern, ast.MatchAs):
        decided = True if pattern.pattern is None else _matches(machine, pattern.pattern, subject)
        if decided and pattern.name is not None:
            assign(machine, ast.Name(pattern.name, ast.Store()), subject)
        return decided
    if isinstance(pattern, ast.MatchOr):
        results = [_matches(machine, one, subject) for one in pattern.patterns]
        return True if True in results else (None if None in results else False)
    if not known(subject):
        return None
    if isinstance(pattern, ast.MatchSingleton):
        return subject is pattern.value
    if isinstance(pattern, ast.MatchValue):
        value = machine.evaluate(pattern.value)
        return bool(subject == value) if known(value) else None
    return None


def _doubt_captures(machine: Machine, pattern: ast.pattern, subject: Value) -> None:
    """What a pattern would bind is undecided where it is undecided whether it matches."""
    for node in ast.walk(pattern):
        captured = isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
        name = node.rest if isinstance(node, ast.MatchMapping) else captured
        if name:
            assign(machine, ast.Name(name, ast.Store()), Unknown(names_of(subject), name))


def _try(machine: Machine, node: ast.Try) -> None:
    handlers = [handler.body for handler in node.handlers]
    try:
        machine.block(node.body)
        machine.block(node.orelse)
    except RaisedError:
        if not handlers:
            raise
        _fork(machine, Unknown((), "try"), handlers)
    else:
        _doubt_names(machine, handlers)
    finally:
        machine.block(node.finalbody)


def _doubt_names(machine: Machine, handlers: Sequence[Sequence[ast.stmt]]) -> None:
    """What an ``except`` would bind is undecided, but for modules: those a kernel needs."""
    for node in (n for body in handlers for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            value = machine.scope.vars.get(node.id)
            if not isinstance(value, Path):
                machine.scope.vars[node.id] = machine.missing(node.id)


# ---- loops -----------------------------------------------------------------------------------


def _for(machine: Machine, node: ast.For) -> None:
    over = _iterable(machine, node.iter)
    items = items_of(over)
    if isinstance(over, LoopFrame):
        _device_loop(machine, node, over)
    elif items is None:
        why = unknown(node.iter, over)
        _undecided_loop(machine, node, why)
        if node.orelse:
            _fork(machine, why, [node.orelse, []])
    else:
        live = over if isinstance(over, list) else items  # a list may grow meanwhile
        _python_loop(machine, node, _each(machine, node.target, live))


def _each(machine: Machine, target: ast.expr, items: Sequence[Value]) -> Iterator[None]:
    for item in items:
        assign(machine, target, item)
        yield


def _python_loop(machine: Machine, node: ast.For | ast.While, turns: Iterator[None]) -> None:
    """Follow the body once a turn; where it may be left, what follows is undecided."""
    outer, broken, ended = machine.leaving, [], False
    try:
        for _ in turns:
            machine.leaving = []
            try:
                machine.block(node.body)
            except Continue:
                pass
            except Break:
                ended = True
            broken += [names for end, names in machine.leaving if isinstance(end, Break)]
            going = [names for end, names in machine.leaving if isinstance(end, Continue)]
            if ended and not going:
                break
            if ended:
                broken.append(machine.scope.vars)
                ended = False
            else:
                going.append(machine.scope.vars)
            machine.scope.vars = _joined(going, machine.doubt or Unknown())
    finally:
        machine.leaving = outer
    if broken:
        why = machine.doubt or Unknown()
        if not ended:
            _fork(machine, why, [node.orelse, []])
        machine.scope.vars = _joined([*broken, machine.scope.vars], why)
    elif not ended:
        machine.block(node.orelse)


def _iterable(machine: Machine, node: ast.expr) -> Value:
    """Return what a loop runs over; where TileLang traces, a range is a device loop."""
    if machine.traced and isinstance(node, ast.Call):
        function = machine.evaluate(node.func)
        if function == Path("builtins.range") and not node.keywords:
            return loop_of("serial", [machine.evaluate(argument) for argument in node.args], {})
    over = machine.evaluate(node)
    if machine.traced and isinstance(over, range):
        return LoopFrame((1 if over else 0,))
    return over


def _device_loop(machine: Machine, node: ast.For, frame: LoopFrame) -> None:
    parts = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    names = [text_of(part) for part in parts]
    count = len(frame.extents)
    variables = names if len(names) == count else [names[0]] * count
    indices = [Device(name) for name in names]
    for part, index in zip(parts, indices, strict=True):
        if isinstance(part, ast.Name):  # a new variable, even where one of that name was
            machine.scope.vars[part.id] = index
    if machine.trace is None:
        _on_device(machine, node.body)
        return
    with machine.trace.loops(frame, variables, machine.doubt) as loops:
        for loop, index in zip(loops, indices, strict=False):
            loop.index = index
        _on_device(machine, node.body)


def _undecided_loop(machine: Machine, node: ast.For | ast.While, why: Unknown) -> None:
    """Follow the body of a loop once that may run any number of times."""
    before, doubts = dict(machine.scope.vars), len(machine.doubts)
    machine.doubts.append(why)
    try:
        if isinstance(node, ast.For):
            assign(machine, node.target, Unknown(why.names, text_of(node.target)))
        _on_device(machine, node.body)
    finally:
        del machine.doubts[doubts:]
    machine.scope.vars = _joined([before, machine.scope.vars], why)


def _while(machine: Machine, node: ast.While) -> None:
    _python_loop(machine, node, _turns(machine, node))


def _turns(machine: Machine, node: ast.While) -> Iterator[None]:
    """Take a turn as long as the condition holds; once where it is not decided here."""
    while True:
        machine.tick()
        decided = truth(machine.operand(node.test))
        if isinstance(decided, Device):
            _on_device(machine, node.body)
            return
        if isinstance(decided, Unknown):
            _undecided_loop(machine, node, decided)
            return
        if not decided:
            return
        yield


def _break(_machine: Machine, _node: ast.Break) -> None:
    raise Break


def _continue(_machine: Machine, _node: ast.Continue) -> None:
    raise Continue


CONTROL: Mapping[type[ast.AST], Rule] = {
    ast.If: _if,
    ast.Match: _match,
    ast.Try: _try,
    ast.For: _for,
    ast.While: _while,
    ast.Break: _break,
    ast.Continue: _continue,
}
