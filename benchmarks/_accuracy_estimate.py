"""The section of docs/accuracy.md on `plan --estimate`: what the source alone says.

    python -m benchmarks.accuracy --only estimate

Two questions. Does the source frontend, which runs nothing, read what the author declared? The
truth is the PrimFunc that TileLang builds (`tests.declared_truth`). And how far is the sum of what
is declared from what a launch is charged? The truth is the total of `plan`, which the section
above holds against ptxas and the host code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.declared_truth import compare, required
from tests.lowering import source
from tests.opened import ask
from tilefit._devices.names import device
from tilefit._errors import TilefitError
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import STAGING
from tilefit._placement.place import place

TITLE = "## Estimate (source only)"
ROOT = Path(__file__).parent.parent
KERNELS = ROOT / "tests" / "kernels"
CORPUS = sorted((KERNELS / "corpus").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
# files whose kernels are compared with TileLang's PrimFuncs; library.py asks for a device
FILES = {
    "corpus": CORPUS,
    "Ascend corpus": sorted((KERNELS / "ascend").glob("*.py")),
    "other test kernels": [p for p in sorted(KERNELS.glob("*.py")) if p.stem != "library"],
    "examples": EXAMPLES,
}
TARGETS = {"sm_80": "a100", "sm_90a": "h100"}


@dataclass(frozen=True)
class Total:
    """One device function: what the source says it needs, and what the launch is charged."""

    estimate_bytes: int | None
    charged_bytes: int


def section() -> list[str]:
    """Return the lines of the section."""
    outcomes = {kind: declared(files) for kind, files in FILES.items()}
    lines = [
        TITLE,
        "",
        "What `plan --estimate` reads from the source with no toolchain at all, kernel by kernel: "
        "name, scope, shape and dtype of every buffer, grid and threads, and of every pipelined "
        "loop its iterations, num_stages and what a copy from global memory fills in it. Equal: "
        "all of it is what the PrimFunc has that TileLang builds. Unknown: something is missing "
        "and the estimate names it.",
        "",
        "| kernels | compared | equal | unknown | wrong |",
        "|---|---|---|---|---|",
    ]
    lines += [_declared_row(kind, counts) for kind, counts in outcomes.items()]
    lines += [
        _declared_row("all", sum(outcomes.values(), Counter())),
        "",
        "Its total is `sum of bytes x copies`, copies being num_stages for what a copy from "
        "global memory fills in a pipelined loop, else 1, against the total of `plan` for the "
        "device functions of the corpus and the bundled examples. It knows nothing of reuse, "
        "which makes it too high, nor of barriers, alignment and scratch, which make it too low: "
        "an estimate, not a bound. The Ascend section has its figures there.",
        "",
        "| target | device | functions | equal | above | below | unknown | false fits "
        "| false rejections |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_total_row(target, list(totals(target))) for target in TARGETS]
    return lines


def declared(files: list[Path]) -> Counter[str]:
    """Count how the kernels of some files compare with their PrimFuncs."""
    found: Counter[str] = Counter()
    for path in files:
        for kernel, params in required(path).items():
            outcome = compare(path, kernel, params)
            found[outcome.kind] += 1
            if outcome.kind != "equal":
                print(f"{path.stem}::{kernel}: {outcome.kind}: {outcome.detail[:90]}", flush=True)
    return found


def totals(target: str) -> Iterator[Total]:
    """Yield the device functions that both sides read for a target."""
    for path in (*CORPUS, *EXAMPLES):
        for kernel, params in required(path).items():
            try:
                charged = [_bytes(one) for one in source(path).read(ask(kernel, params, target))]
                mine = SourceFrontend().load(path).read(ask(kernel, params, target))
            except TilefitError as error:
                print(f"{target:8} {path.stem}::{kernel}: {str(error)[:90]}", flush=True)
                continue
            for one, truth in zip(mine, charged, strict=True):
                if truth:  # a kernel without tiles has nothing to estimate
                    yield Total(estimate_bytes=_bytes(one), charged_bytes=truth)


def _bytes(kernel: Kernel) -> int | None:
    return next(use.total_bytes for use in place(kernel) if use.memory in STAGING)


def _declared_row(kind: str, counts: Counter[str]) -> str:
    compared = counts.total() - counts["not built"]
    return f"| {kind} | {compared} | {counts['equal']} | {counts['unknown']} | {counts['wrong']} |"


def _total_row(target: str, found: list[Total]) -> str:
    chip = device(TARGETS[target])
    limit = next(pool.per_block_bytes for pool in chip.pools if pool.memory in STAGING)
    known = [(t.estimate_bytes, t.charged_bytes) for t in found if t.estimate_bytes is not None]
    counts = [
        sum(e == t for e, t in known),
        sum(e > t for e, t in known),
        sum(e < t for e, t in known),
        len(found) - len(known),
    ]
    cells = [f"{n} ({100 * n / len(found):.0f} %)" for n in counts[:3]]
    cells += [
        str(counts[3]),
        str(sum(e <= limit < t for e, t in known)),
        str(sum(t <= limit < e for e, t in known)),
    ]
    return f"| {target} | {TARGETS[target]} | {len(found)} | {' | '.join(cells)} |"
