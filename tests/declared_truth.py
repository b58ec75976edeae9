"""What a kernel declares according to TileLang itself: our own walk over the PrimFunc it builds.

The source frontend is held against this; neither reads anything of the other.

    python -m tests.declared_truth FILE ...

compares the kernels of files that ask for a device, each file in a child of its own, and prints a
JSON line a kernel.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lowering import source
from tests.opened import ask
from tilefit._devices.facts import facts_of
from tilefit._devices.names import device
from tilefit._errors import TilefitError
from tilefit._frontends.source.frontend import SourceFile, SourceFrontend
from tilefit._frontends.tilelang.factory import build
from tilefit._frontends.tilelang.frontend import TileLangFrontend, TileLangSource
from tilefit._frontends.tilelang.lower import tvm_target
from tilefit._kernel.kernel import Kernel

Extent = int | None
"""An extent, None while a size in it is open until run time."""

BufferKey = tuple[str, str, tuple[Extent, ...], str]
LoopKey = tuple[str, Extent, int, tuple[str, ...]]

# for parameters without a default
SIZE = 64
# and where an autotuner would choose
TUNED = {name: {"rows": 24, "threads": 96} for name in ("with_defaults", "without_defaults")}
# where a statement holds others, in program order
_PARTS = ("block", "seq", "init", "body", "then_case", "else_case")


@dataclass(frozen=True)
class Declared:
    """One T.Kernel block: what both sides must agree on.

    Attributes:
        buffers: Name, scope, shape and dtype of each buffer.
        grid: Blocks in x, y, z.
        threads: Threads of a block; None where the author leaves them to TileLang.
        loops: Variable, iterations and num_stages of each pipelined loop, with the names of the
            buffers that a T.copy from global memory fills in it.
        simt: There is a SIMT region (Ascend).
    """

    buffers: Counter[BufferKey]
    grid: tuple[Extent, ...]
    threads: int | None
    loops: Counter[LoopKey]
    simt: bool


# ---- TileLang's side -------------------------------------------------------------------------


def traced(
    found: TileLangSource, kernel: str, target: str, params: Mapping[str, Any]
) -> tuple[Declared, ...]:
    """Let TileLang build a kernel, and read what each of its T.Kernel blocks declares."""
    context = found._sandbox.aimed_at(target) if found._sandbox else nullcontext()
    with context, tvm_target(target):
        built = build(found._found[kernel], dict(params), kernel, found.path)
    return read_prim_func(built.prim_func)


def read_prim_func(prim_func: Any) -> tuple[Declared, ...]:
    """Read what each T.Kernel block of a PrimFunc declares, in program order.

    What is allocated ahead of the blocks is counted with the first of them.
    """
    found: list[Declared] = []
    ahead: Counter[BufferKey] = Counter()
    for node in _outside(prim_func.body):
        if _starts_launch(node):
            found.append(_launch(node))
        else:
            ahead.update(_allocated(node))
    if found:
        found[0].buffers.update(ahead)
    return tuple(found)


def _children(node: Any) -> Iterator[Any]:
    for part in _PARTS:
        inner = getattr(node, part, None)
        if inner is not None:
            yield from inner if part == "seq" else (inner,)


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for inner in _children(node):
        yield from _walk(inner)


def _bound_to(node: Any) -> str:
    """Return the launch axis that a loop stands for, empty for another statement."""
    binding = getattr(node, "thread_binding", None)
    return "" if binding is None else str(binding.thread_tag)


def _starts_launch(node: Any) -> bool:
    """Return whether a statement is the outermost loop of a grid."""
    return _bound_to(node).startswith("blockIdx")


def _outside(node: Any) -> Iterator[Any]:
    """Walk the statements outside of the launches, and the first statement of each."""
    yield node
    if not _starts_launch(node):
        for inner in _children(node):
            yield from _outside(inner)


def _launch(outermost: Any) -> Declared:
    buffers: Counter[BufferKey] = Counter()
    loops: Counter[LoopKey] = Counter()
    grid: dict[str, Extent] = {}
    threads: int | None = None
    simt = False
    # a view has a name of its own and the storage of what was allocated
    names = {
        buffer.data: str(buffer.name)
        for node in _walk(outermost)
        for buffer in getattr(node, "alloc_buffers", None) or ()
    }
    for node in _walk(outermost):
        notes = {str(k): v for k, v in dict(getattr(node, "annotations", None) or {}).items()}
        buffers.update(_allocated(node))
        if _bound_to(node):
            grid[_bound_to(node)] = _extent(node.extent)
        if "tl.launch_threads" in notes:
            x, y, z = (int(n) for n in notes["tl.launch_threads"])
            threads = x * y * z
        stages = notes.get("num_stages")
        manual = notes.get("tl_pipeline_stage")
        if stages is None and manual:
            stages = max(int(n) for n in manual) + 1
        if stages is not None:
            filled = _filled(node, names)
            loops[(str(node.loop_var.name), _extent(node.extent), int(stages), filled)] += 1
        simt = simt or str(getattr(node, "attr_key", "")) == "tl.simtvf_scope"
    axes = tuple(grid.get(f"blockIdx.{axis}", 1) for axis in "xyz")
    return Declared(buffers, axes, threads, loops, simt)


def _filled(loop: Any, names: Mapping[Any, str]) -> tuple[str, ...]:
    """Return what the copies in a loop bring from global memory, by the names of allocation."""
    found: set[str] = set()
    for node in _walk(loop):
        call = getattr(node, "value", None) if type(node).__name__ == "Evaluate" else None
        name = str(getattr(getattr(call, "op", None), "name", ""))
        if call is None or not any(word in name for word in ("copy", "im2col")):
            continue
        source, target = (getattr(arg, "args", [None])[0] for arg in call.args[:2])
        buffers = [getattr(one, "buffer", None) for one in (source, target)]
        scopes = ["" if b is None else str(b.scope()) for b in buffers]
        if scopes[0] == "global" and scopes[1] not in ("", "global"):
            found.add(names.get(buffers[1].data, str(buffers[1].name)))
    return tuple(sorted(found))


def _allocated(node: Any) -> Iterator[BufferKey]:
    for buffer in getattr(node, "alloc_buffers", None) or ():
        shape = tuple(_extent(e) for e in buffer.shape)
        yield str(buffer.name), str(buffer.scope()), shape, str(buffer.dtype)


def _extent(value: Any) -> Extent:
    try:
        return int(value)
    except TypeError:
        return None


# ---- the source frontend's side --------------------------------------------------------------


def said(kernel: Kernel) -> Declared:
    """Put a kernel of the source frontend in the same form."""

    def extent(value: int | str) -> Extent:
        return value if isinstance(value, int) else None

    return Declared(
        Counter(
            (b.name, b.scope, tuple(extent(e) for e in b.shape), b.dtype) for b in kernel.buffers
        ),
        tuple(extent(e) for e in kernel.launch.grid),
        kernel.launch.threads_declared,
        Counter(
            (loop.variable, extent(loop.extent), loop.num_stages, loop.copied)
            for loop in kernel.loops
            if loop.num_stages is not None
        ),
        "simt" in kernel.conditions,
    )


def missing_lines(kernel: Kernel) -> list[str]:
    """Return the notes in which a kernel says what it does not know."""
    words = ("--set ", "does not say", "is not known", "can follow", "does not show", "too deeply")
    return [note for note in kernel.notes if any(word in note for word in words)]


@dataclass(frozen=True)
class Outcome:
    """How the two sides compare for one kernel: equal, unknown, wrong, or not built."""

    kind: str
    detail: str = ""


def target_of(path: Path) -> str:
    """Return the target for which a file of kernels is read."""
    return "ascend" if "tilelang.ascend" in path.read_text(encoding="utf-8") else "sm_90a"


def required(path: Path) -> dict[str, dict[str, Any]]:
    """Return the kernels of a file, each with a value for the parameters that have no default."""
    return {
        one.name: {p.name: SIZE for p in one.parameters if p.required} | TUNED.get(one.name, {})
        for one in SourceFrontend().load(path).kernels()
    }


def compare(path: Path, kernel: str, params: Mapping[str, Any]) -> Outcome:
    """Read a kernel on both sides in this process and compare."""
    ours = SourceFrontend().load(path)
    return _compare(source(path), ours, kernel, params)


def _compare(
    theirs: TileLangSource, ours: SourceFile, kernel: str, params: Mapping[str, Any]
) -> Outcome:
    target = target_of(ours.path)
    try:
        truth = traced(theirs, kernel, target, params)
    except TilefitError as error:
        return Outcome("not built", str(error))
    try:
        kernels = ours.read(ask(kernel, dict(params), target))
    except TilefitError as error:
        return Outcome("wrong", f"refused, though TileLang builds it: {error}")
    return agreement(truth, kernels)


def agreement(truth: tuple[Declared, ...], kernels: tuple[Kernel, ...]) -> Outcome:
    """Compare what TileLang built with what the source frontend says."""
    ours = tuple(said(one) for one in kernels)
    if ours == truth:
        return Outcome("equal")
    lines = [line for one in kernels for line in missing_lines(one)]
    differs = " / ".join(_difference(t, o) for t, o in zip(truth, ours, strict=False))
    if len(truth) != len(ours):
        differs = f"{len(ours)} launches instead of {len(truth)}"
    if not lines:
        return Outcome("wrong", differs)
    firm = len(truth) != len(ours) or all(
        _not_contradicted(t, o, k) for t, o, k in zip(truth, ours, kernels, strict=True)
    )
    return Outcome("unknown", "; ".join(lines)) if firm else Outcome("wrong", differs)


def _difference(truth: Declared, ours: Declared) -> str:
    words = [
        f"{name}: {getattr(ours, name)} instead of {getattr(truth, name)}"
        for name in ("grid", "threads", "simt")
        if getattr(ours, name) != getattr(truth, name)
    ]
    for name in ("buffers", "loops"):
        more = dict(getattr(ours, name) - getattr(truth, name))
        less = dict(getattr(truth, name) - getattr(ours, name))
        if more or less:
            words.append(f"{name}: only said {list(more)}, only traced {list(less)}")
    return "; ".join(words)


def _not_contradicted(truth: Declared, ours: Declared, kernel: Kernel) -> bool:
    """What is said with its bytes must be there, whatever else is unknown."""
    open_ones = Counter(b.name for b in kernel.buffers if b.bytes is None)
    firm = Counter({key: n for key, n in ours.buffers.items() if key[0] not in open_ones})
    pairs = zip(ours.grid, truth.grid, strict=True)
    grid = all(mine is None or mine == theirs for mine, theirs in pairs)
    threads = ours.threads is None or ours.threads == truth.threads
    return firm <= truth.buffers and grid and threads


# ---- files that ask for a device -------------------------------------------------------------


def _compare_file(path: Path) -> None:
    """Compare the kernels of a file that is told of an H100."""
    facts = facts_of(device("h100"))
    theirs = TileLangFrontend().load(path, facts)
    ours = SourceFrontend().load(path, facts)
    mine, listed = required(path), [one.name for one in theirs.kernels()]
    if list(mine) != listed:
        raise AssertionError(f"kernels {list(mine)}, TileLang lists {listed}")
    for kernel, params in mine.items():
        outcome = _compare(theirs, ours, kernel, params)
        line = [str(path), kernel, outcome.kind, outcome.detail]
        print(json.dumps(line), file=sys.__stdout__, flush=True)


def main() -> None:
    TileLangFrontend().prepare_run()
    for name in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            try:
                _compare_file(Path(name))
            except Exception as error:
                print(json.dumps([name, "", "failed", str(error)]), flush=True)
            finally:
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
