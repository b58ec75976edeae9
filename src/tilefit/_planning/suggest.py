"""The smallest changes that fit: the kernel's own parameters, each change really lowered.

The edit set and its order are documented in docs/suggestions.md:

========================================  ====
edit                                      cost
========================================  ====
a pass config that makes it smaller          1
one stage fewer                              2 each
the last stage but one: no pipeline is left  6 more
threads down by one warp group (128)         3 each
halve a K tile                               3
halve another tile                           4
two edits                          their sum
========================================  ====

The pass configs, and whether every parameter that sets stages or versions counts, are the
toolchain's (see `tilefit._kernel.toolchain.Edits`). A tile of UB is
also cut to what the limit leaves, at a cost of 3.

Edits are tried in the order of their cost, then of the table, until three fit or twelve were
lowered. What `foresee` puts over the limit is passed over, so nothing cheaper than the first that
fits was left out but by that rule. Where none fits, edits of three kinds and smaller tiles follow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Memory
from tilefit._kernel.toolchain import Toolchain
from tilefit._planning.foresee import Foresight
from tilefit._planning.outcome import Judge, outcome_of, same_code
from tilefit._planning.report import Edit, Loss, Residency, Tried
from tilefit._planning.stages import stage_parameter, stage_parameters
from tilefit._verdict.judge import Status

MOST_LOWERINGS = 12
MOST_FURTHER = 8
ENOUGH = 3
_THREADS_STEP = 128  # of the search, on every chip: what people write is a multiple of it
_SMALLEST_TILE = 16
_MOST_GRAIN = 256
_NO_PIPELINE = 6

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
        yield [
            Edit(2 * (now - s) + (_NO_PIPELINE if s == 1 else 0), ((stages, s),))
            for s in range(now - 1, 0, -1)
        ]
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
    kernels: Sequence[Kernel] = (),
    limit_bytes: int | None = None,
    allowed: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> tuple[Tried, ...]:
    """Lower edits, cheapest first, until three fit or twelve were lowered; return all tried.

    An edit that contains one that already fits is passed over: it costs more for nothing. So is
    one that contains an edit that changes nothing, and one whose bytes our own packer, going by
    the lowerings so far, puts over the limit. If none fits, larger edits are looked at: those that
    the packer puts below the limit are lowered, cheapest first, until one fits.

    Args:
        own: The kernel's own parameters with their current values, defaults included.
        toolchain: As for `edits`.
        vendor: As for `edits`.
        params: Those of them that the user set.
        read: Lowers the kernel with other parameters and pass configs.
        judge: Judges one device function.
        progress: Called with a line before each lowering.
        cuts: As for `edits`.
        kernels: The device functions as they are.
        limit_bytes: What a block may have of the memory that tiles are staged in, if that is known.
        allowed: Says whether parameters, all of them, are what the user would have.
    """
    search = _Search(own, toolchain, params=params, read=read, judge=judge, kernels=kernels)
    todo = deque(edits(own, toolchain, vendor, cuts=cuts))
    while todo and len(search.tried) < MOST_LOWERINGS and len(search.fitting) < ENOUGH:
        edit = todo.popleft()
        if not allowed({**own, **dict(edit.params)}) or search.is_useless(edit, limit_bytes):
            continue
        if progress:
            progress(f"trying {describe(edit)}")
        one = search.lower(edit)
        if one.outcome.status is not Status.FITS and edit.params in [
            (cut,) for cut in (cuts or {}).items()
        ]:
            # with more room the scheduler takes more versions: cut once more
            further = cuts_of(one.outcome.kernels, judge, dict(edit.params))
            todo.extendleft(Edit(edit.cost, (cut,)) for cut in further.items())
    if not search.fitting and limit_bytes is not None:
        known = {edit.params for edit in edits(own, toolchain, vendor, cuts=cuts)}
        most = len(search.tried) + MOST_FURTHER
        for edit in larger_edits(own, toolchain, vendor):
            if len(search.tried) == most or search.fitting:
                break
            total = search.foresight.total_bytes(dict(edit.params))
            if edit.params in known or total is None or total > limit_bytes:
                continue
            if allowed({**own, **dict(edit.params)}):
                if progress:
                    progress(f"trying {describe(edit)}")
                search.lower(edit)
    return tuple(search.tried)


class _Search:
    """What was tried so far, and what that says of the rest."""

    def __init__(
        self,
        own: Mapping[str, Any],
        toolchain: Toolchain,
        *,
        params: Mapping[str, Any],
        read: Reader,
        judge: Judge,
        kernels: Sequence[Kernel],
    ) -> None:
        self.tried: list[Tried] = []
        self.fitting: list[Edit] = []
        self.foresight = Foresight(
            kernels, own, stage_parameters(list(own), toolchain.stage_parameters)
        )
        self._idle: list[Edit] = []  # they change nothing
        self._params, self._read, self._judge = params, read, judge
        self._kernels = tuple(kernels)

    def lower(self, edit: Edit) -> Tried:
        """Lower an edit and learn from it."""
        changed = {**self._params, **dict(edit.params)}
        outcome = outcome_of(partial(self._read, changed, dict(edit.pass_configs)), self._judge)
        one = Tried(edit, outcome, idle=same_code(self._kernels, outcome.kernels))
        self.tried.append(one)
        if one.idle:
            self._idle.append(edit)
        elif outcome.status is Status.FITS:
            self.fitting.append(edit)
        if edit.params and not edit.pass_configs and outcome.kernels:
            self.foresight.learn(dict(edit.params), outcome.kernels)
        return one

    def is_useless(self, edit: Edit, limit_bytes: int | None) -> bool:
        """Say whether an edit need not be lowered."""
        if any(contains(edit, smaller) for smaller in (*self.fitting, *self._idle)):
            return True
        if limit_bytes is None or edit.pass_configs or len(edit.params) < 2:
            return False
        total = self.foresight.total_bytes(dict(edit.params))
        return total is not None and total > limit_bytes


def larger_edits(params: Mapping[str, Any], toolchain: Toolchain, vendor: str) -> list[Edit]:
    """Return edits of up to three kinds, tiles halved again and again, cheapest first.

    Args:
        params: The kernel's own parameters with their current values.
        toolchain: What compiles the kernel.
        vendor: Whose chips it is for.
    """
    groups = []
    for group in _groups(params, toolchain, vendor, {}):
        steps = [edit for edit in group if not edit.pass_configs]
        for edit in steps[-1:]:
            name, half = edit.params[0]
            if is_tile(name):
                halves = range(1, (half // _SMALLEST_TILE).bit_length())
                steps += [
                    Edit(edit.cost * (n + 1), ((name, half >> n),))
                    for n in halves
                    if half % (1 << n) == 0
                ]
        if steps:
            groups.append(steps)
    found = [
        Edit(sum(e.cost for e in some), tuple(p for e in some for p in e.params))
        for count in (1, 2, 3)
        for chosen in combinations(groups, count)
        for some in product(*chosen)
    ]
    return sorted(found, key=lambda edit: edit.cost)


def best_of(tried: Sequence[Tried]) -> Tried | None:
    """Return the edit to suggest: of those that fit, the one that loses least.

    A slower matrix path counts more than the cost of the table.
    """
    helping = [one for one in tried if one.helps]
    return min(helping, key=lambda one: (one.loss.slower, one.edit.cost), default=None)


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
        matrix_path=_slower_path([kernel], tried.outcome.kernels),
    )


def _slower_path(before: Sequence[Kernel], after: Sequence[Kernel]) -> str | None:
    """Say which matrix path an edit loses, and for which; None if it loses none."""
    was, now = _path(before), _path(after)
    if was is None or now is None or _RANKS[now] <= _RANKS[was]:
        return None
    return f"{was} to {now}"


def _path(kernels: Sequence[Kernel]) -> str | None:
    """Return the slowest matrix path of device functions that multiply; None if none is known."""
    paths = [
        max((use.path for use in k.matrix), key=_RANKS.__getitem__, default="none")
        for k in kernels
        if k.gemms and k.matrix is not None
    ]
    return max(paths, key=_RANKS.__getitem__, default=None)


_RANKS = {"tcgen05": 0, "wgmma": 0, "mfma": 0, "wmma": 0, "mma": 1, "none": 2}
"""Matrix paths of a chip, the fast ones first: mma is the second best where there is another."""


def contains(edit: Edit, smaller: Edit) -> bool:
    """Say whether an edit makes every change of a smaller one, and more."""
    changes = {*edit.params, *edit.pass_configs}
    return {*smaller.params, *smaller.pass_configs} < changes


def describe(edit: Edit) -> str:
    """Return an edit in a few words: ``num_stages=3 block_K=32``."""
    words = [f"{name}={value}" for name, value in edit.params]
    words += [f"{name.removeprefix('tl.')}={value}" for name, value in edit.pass_configs]
    return " ".join(words)
