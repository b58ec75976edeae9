"""On real kernels nothing cheaper than the first suggestion fits: every cheaper edit is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.edit_set import MERGE, Change, change, documented
from tests.lowering import source
from tests.opened import ask
from tilefit._devices.names import device
from tilefit._errors import RefusedError
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import Kernel
from tilefit._placement.place import place
from tilefit._planning.suggest import tried_edits
from tilefit._verdict.judge import Status, judge

# TileLang warns about some of these kernels
pytestmark = [pytest.mark.tilelang, pytest.mark.filterwarnings("ignore")]

KIB = 1024
# shared memory that a block may use, by NVIDIA's table of compute capabilities
LIMITS = {"t4": 64 * KIB, "rtx-4090": 99 * KIB, "h100": 227 * KIB}
MOST_THREADS = 1024


@dataclass(frozen=True)
class Case:
    """A kernel with parameters that do not fit, and the edit that should come first.

    Attributes:
        file: Below the checkout.
        kernel: In it.
        device: On which it does not fit.
        params: That make it too large.
        first: The change suggested first; None where the first twelve edits do not help.
        whole: Lower the whole set, not only what is cheaper than the suggestion.
    """

    file: str
    kernel: str
    device: str
    params: dict[str, Any]
    first: Change | None
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.kernel}-{self.device}"


def sets(**params: int) -> Change:
    return frozenset(params.items())


CORPUS = "tests/kernels/corpus"
CASES = [
    # a stage of the GEMM is 128x64 and 64x128 fp16, 32 KiB
    Case("examples/gemm.py", "matmul", "rtx-4090", {"num_stages": 4}, sets(num_stages=3)),
    Case("examples/gemm.py", "matmul", "t4", {"num_stages": 3}, sets(num_stages=2)),
    # 1,024 threads and 128 of the producer; the first twelve edits do not reach 512
    Case("tests/kernels/launch_limits.py", "many_threads", "h100", {}, None),
    # q 32 KiB, four stages of k and v 256, weights 32; half a key tile leaves 32 + 128 + 16
    Case(
        f"{CORPUS}/attention.py",
        "forward_shared_weights",
        "h100",
        {"tile_q": 128, "tile_k": 128, "width": 128, "num_stages": 4},
        sets(tile_k=64),
        whole=True,
    ),
    # the second loop's tiles are multiplied 3 x 3: 288 KiB; 2 x 2 are 128
    Case(
        f"{CORPUS}/loops.py",
        "apart",
        "h100",
        {"rows": 128, "columns": 128, "depth": 64, "num_stages": 3},
        sets(num_stages=2),
    ),
    # the epilogue's tile lies over the pipeline's: five stages of 48 KiB
    Case(
        f"{CORPUS}/gemm.py",
        "epilogue",
        "h100",
        {"rows": 128, "columns": 256, "depth": 64, "num_stages": 5},
        sets(num_stages=4),
    ),
    # eight stages of 128x128 and 128x128 fp8, 32 KiB each
    Case(
        f"{CORPUS}/quantised.py",
        "fp8",
        "h100",
        {"K": 2048, "rows": 128, "columns": 128, "depth": 128, "num_stages": 8},
        sets(num_stages=7),
    ),
    # nine stages of 24 KiB and 16 KiB: 232; the compiler finds 8 KiB when it may merge
    Case(
        f"{CORPUS}/linear_attention.py",
        "chunked",
        "h100",
        {"length": 1024, "num_stages": 9},
        frozenset({(MERGE, True)}),
    ),
    # three stages of 64 KiB and the result's 64; two of half of that and 32 are 96
    Case(
        f"{CORPUS}/rows.py",
        "softmax",
        "rtx-4090",
        {"lines": 16, "tile": 1024, "num_stages": 3},
        sets(num_stages=2, tile=512),
        whole=True,
    ),
    # the latent tile of 64 KiB three times, and 76 KiB that stay
    Case(
        f"{CORPUS}/attention.py",
        "latent_decode",
        "h100",
        {"latent": 512, "num_stages": 3},
        sets(num_stages=2),
    ),
]


@dataclass
class Lowerings:
    """Lowers each change of one case once, and says by arithmetic of its own whether it fits."""

    root: Path
    case: Case
    done: dict[Change, tuple[Kernel, ...] | None] = field(default_factory=dict)

    def read(self, params: Mapping[str, Any], configs: Mapping[str, Any]) -> tuple[Kernel, ...]:
        """What `tried_edits` reads."""
        made = frozenset((n, v) for n, v in params.items() if self.case.params.get(n) != v)
        found = self.of(made | frozenset(configs.items()))
        if found is None:
            raise RefusedError("the compiler refused it")
        return found

    def of(self, made: Change) -> tuple[Kernel, ...] | None:
        """The kernels after a change; None if the compiler refuses."""
        if made not in self.done:
            configs = {name: value for name, value in made if name == MERGE}
            params = {name: value for name, value in made if name != MERGE}
            target = device(self.case.device).target("tilelang")
            assert target is not None
            try:
                self.done[made] = source(self.root / self.case.file).read(
                    ask(self.case.kernel, {**self.case.params, **params}, target, options=configs)
                )
            except RefusedError:
                self.done[made] = None
        return self.done[made]

    def fits(self, made: Change) -> bool:
        """By the bytes and threads of the lowered kernels alone."""
        kernels = self.of(made)
        return kernels is not None and all(
            total_bytes(kernel) <= LIMITS[self.case.device]
            and (kernel.launch.threads or 0) <= MOST_THREADS
            for kernel in kernels
        )


def total_bytes(kernel: Kernel) -> int:
    assert kernel.staged.dynamic_bytes is not None
    align = kernel.staged.align_bytes or 1
    return kernel.staged.dynamic_bytes + -(-kernel.staged.static_bytes // align) * align


Own = Callable[[Case], dict[str, Any]]


@pytest.fixture
def own(root: Path) -> Own:
    """All parameters of a case with their values."""

    def find(case: Case) -> dict[str, Any]:
        listings = source(root / case.file).kernels()
        (listing,) = [item for item in listings if item.name == case.kernel]
        return {**{p.name: p.default for p in listing.parameters}, **case.params}

    return find


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_cheaper_than_the_first_suggestion_fits(case: Case, root: Path, own: Own) -> None:
    lowerings = Lowerings(root, case)
    assert not lowerings.fits(frozenset())
    card = device(case.device)
    tried = tried_edits(
        own(case),
        TILELANG,
        card.vendor,
        params=case.params,
        read=lowerings.read,
        judge=lambda kernel: judge(kernel, place(kernel), card),
    )
    for one in tried:
        fits = one.outcome.status is Status.FITS
        assert fits == lowerings.fits(change(one.edit)), change(one.edit)
    first = next((t.edit for t in tried if t.outcome.status is Status.FITS), None)
    assert (None if first is None else change(first)) == case.first
    everything = documented(own(case))
    if first is None:
        cheaper = [made for _, made in everything[:12]]
    else:
        cheaper = [made for cost, made in everything if cost < first.cost]
    assert [made for made in cheaper if lowerings.fits(made)] == []
    if case.whole and first is not None:
        assert min(cost for cost, made in everything if lowerings.fits(made)) == first.cost


def test_at_least_eight_kernels_do_not_fit() -> None:
    assert len({(case.file, case.kernel) for case in CASES}) >= 8
