"""The smallest changes that fit: the kernel's own parameters, each change really lowered.

The edit set and its order are documented in docs/suggestions.md:

========================================  ====
edit                                      cost
========================================  ====
a pass config that makes it smaller          1
one stage fewer                              2 each
threads down by one warp group (128)         3 each
halve a K tile                               3
halve another tile                           4
two edits                          their sum
========================================  ====

The pass configs, and whether every parameter that sets stages or versions counts, are the
toolchain's (see `tilefit._kernel.toolchain.Edits`). A tile of UB is
also cut to what the limit leaves, at a cost of 3.

Edits are tried in the order of their cost, then of the table, until three fit or twelve were
lowered. So nothing cheaper than the first that fits was left out, as long as one was found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.toolchain import Toolchain
from tilefit._planning.outcome import Judge, outcome_of
from tilefit._planning.report import Edit, Loss, Residency, Tried
from tilefit._planning.stages import stage_parameter, stage_parameters
from tilefit._verdict.judge import Status

MOST_LOWERINGS = 12
ENOUGH = 3
_THREADS_STEP = 128  # of the search, on every chip: what people write is a multiple of it
_SMALLEST_TILE = 16
_MOST_GRAIN = 256

Reader = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Kernel, ...]]


def edits(
    params: Mapping[str, Any],
    toolchain: Toolchain,
    vendor: str,
    *,
    cuts: Mapping[str, int] | None = None,
) -> list[Edit]:
    """Return every single edit and every pair of different kinds, cheapest first.

    Args:
        params: The kernel's own parameters with their current values.
        toolchain: What compiles the kernel.
        vendor: Whose chips it is for.
        cuts: Tiles to try at a size other than the half: see `cuts_of`.
    """
    groups = [group for group in _groups(params, toolchain, vendor, cuts or {}) if group]
    singles = [edit for group in groups for edit in group]
    pairs = [
        Edit(a.cost + b.cost, a.params + b.params, a.pass_configs + b.pass_configs)
        for first, second in combinations(groups, 2)
        for a in first
        for b in second
    ]
    return sorted([*singles, *pairs], key=lambda edit: edit.cost)


def _groups(
    params: Mapping[str, Any], toolchain: Toolchain, vendor: str, cuts: Mapping[str, int]
) -> Iterator[list[Edit]]:
    """Yield the edits of one kind at a time; a pair takes two kinds."""
    extra, known = toolchain.edits_for(vendor), toolchain.stage_parameters
    for config in extra.pass_configs:
        yield [Edit(1, pass_configs=(config,))]
    numbers = {n: v for n, v in params.items() if isinstance(v, int) and not isinstance(v, bool)}
    first = stage_parameter(list(numbers), known)
    one = [] if first is None else [first]
    for stages in stage_parameters(list(numbers), known) if extra.all_stages else one:
        now = numbers[stages]
        yield [Edit(2 * (now - s), ((stages, s),)) for s in range(now - 1, 0, -1)]
    for name, value in numbers.items():
        if name.casefold() in ("threads", "num_threads", "n_threads"):
            yield [
                Edit(3 * k, ((name, value - k * _THREADS_STEP),))
                for k in range(1, value // _THREADS_STEP)
            ]
    for name, value in numbers.items():
        if is_tile(name) and value % 2 == 0 and value // 2 >= _SMALLEST_TILE:
            half = Edit(3 if along_k(name) else 4, ((name, value // 2),))
            yield [*([Edit(3, ((name, cuts[name]),))] if name in cuts else []), half]


def cuts_of(kernels: Sequence[Kernel], judge: Judge, params: Mapping[str, Any]) -> dict[str, int]:
    """Return tiles of UB that do not fit, each cut to what the limit leaves.

    A tile keeps the powers of two that divide it, up to 256, so that what divided it before does
    so after. One that would lose half or more is left to halving.

    Args:
        kernels: The device functions as they are.
        judge: Judges one of them.
        params: The kernel's own parameters with their current values.
    """
    found: dict[str, int] = {}
    for kernel in kernels:
        margins = [c.margin for c in judge(kernel).memories if c.name == Memory.UB and c.margin]
        over = -min(margins, default=0)
        for name, value in params.items():
            if over <= 0 or not is_tile(name) or type(value) is not int or value < 1:
                continue
            each = sum(
                (b.bytes or 0) // value
                for b in kernel.buffers
                if b.memory is Memory.UB and value in b.shape
            )
            grain = min(value & -value, _MOST_GRAIN)
            if each:
                cut = (value - -(-over // each)) // grain * grain
                if max(value // 2, _SMALLEST_TILE) < cut < value:
                    found[name] = min(cut, found.get(name, cut))
    return found


def is_tile(name: str) -> bool:
    """Say whether a parameter is a tile extent, by the names that people give it.

    ``blocks`` and ``tiles`` count them, which makes them sizes of the problem.
    """
    folded = name.casefold()
    if "blocks" in folded or "tiles" in folded:
        return False
    return "block" in folded or "tile" in folded or folded in ("bm", "bn", "bk")


def along_k(name: str) -> bool:
    """Say whether a tile extent is along K: its name ends in K, and not with ``block`` itself."""
    folded = name.casefold()
    return folded.endswith("k") and not folded.endswith("block")


def tried_edits(
    own: Mapping[str, Any],
    toolchain: Toolchain,
    vendor: str,
    *,
    params: Mapping[str, Any],
    read: Reader,
    judge: Judge,
    progress: Callable[[str], None] | None = None,
    cuts: Mapping[str, int] | None = None,
) -> tuple[Tried, ...]:
    """Lower edits, cheapest first, until three fit or twelve were lowered; return all tried.

    An edit that contains one that already fits is passed over: it costs more for nothing.

    Args:
        own: The kernel's own parameters with their current values, defaults included.
        toolchain: As for `edits`.
        vendor: As for `edits`.
        params: Those of them that the user set.
        read: Lowers the kernel with other parameters and pass configs.
        judge: Judges one device function.
        progress: Called with a line before each lowering.
        cuts: As for `edits`.
    """
    outcomes: list[Tried] = []
    fitting: list[Edit] = []
    todo = deque(edits(own, toolchain, vendor, cuts=cuts))
    while todo:
        edit = todo.popleft()
        if len(outcomes) == MOST_LOWERINGS or len(fitting) == ENOUGH:
            break
        if any(contains(edit, smaller) for smaller in fitting):
            continue
        if progress:
            progress(f"trying {describe(edit)}")
        changed = {**params, **dict(edit.params)}
        outcome = outcome_of(partial(read, changed, dict(edit.pass_configs)), judge)
        outcomes.append(Tried(edit, outcome))
        if outcome.status is Status.FITS:
            fitting.append(edit)
        elif edit.params in [(cut,) for cut in (cuts or {}).items()]:
            # with more room the scheduler takes more versions: cut once more
            further = cuts_of(outcome.kernels, judge, dict(edit.params))
            todo.extendleft(Edit(edit.cost, (cut,)) for cut in further.items())
    return tuple(outcomes)


def loss_of(tried: Tried, kernel: Kernel, held: Residency | None) -> Loss:
    """Return what an edit loses against a kernel as it is: blocks, tensor cores, or to spills.

    Args:
        tried: The edit.
        kernel: The device function as it is.
        held: Blocks of it that one core holds.
    """
    after, spills, own = tried.residency, tried.outcome.spill_bytes or 0, kernel.assembled
    blocks = 0
    if held and after and held.blocks and after.blocks is not None:
        blocks = max(held.blocks - after.blocks, 0)
    made = [k.assembled for k in tried.outcome.kernels if k.assembled is not None]
    return Loss(
        blocks_per_core=blocks,
        spill_bytes=spills if spills > (own.spill_bytes if own else 0) else 0,
        tensor_cores=bool(own and own.matrix_instructions)
        and any(one.matrix_instructions == 0 for one in made),
    )


def contains(edit: Edit, smaller: Edit) -> bool:
    """Say whether an edit makes every change of a smaller one, and more."""
    changes = {*edit.params, *edit.pass_configs}
    return {*smaller.params, *smaller.pass_configs} < changes


def describe(edit: Edit) -> str:
    """Return an edit in a few words: ``num_stages=3 block_K=32``."""
    words = [f"{name}={value}" for name, value in edit.params]
    words += [f"{name.removeprefix('tl.')}={value}" for name, value in edit.pass_configs]
    return " ".join(words)
