"""The section on blocks per SM: the bound without assembling, against the count with registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tests.opened import ask
from tilefit._assembler.assemble import assembled
from tilefit._devices.names import device
from tilefit._errors import TilefitError
from tilefit._planning.residency import residency

ROOT = Path(__file__).parent.parent
TARGETS = {"sm_80": "a100", "sm_90a": "h100", "sm_100a": "b200"}


@dataclass(frozen=True)
class Compared:
    """One device function: blocks of an SM as bounded, and as counted."""

    name: str
    bound: int
    truth: int


def section() -> list[str]:
    """Return the lines of the section."""
    lines = [
        "## Blocks per SM",
        "",
        "The same device functions: `at most N per SM`, which `plan` says without assembling, "
        "against the count with the registers and static bytes of ptxas. A bound below the count "
        "would be false.",
        "",
        "| target | device | functions | equal | above | below |",
        "|---|---|---|---|---|---|",
    ]
    below: list[str] = []
    for target, name in TARGETS.items():
        found = compared(target, name)
        equal = sum(one.bound == one.truth for one in found)
        above = sum(one.bound > one.truth for one in found)
        wrong = [one for one in found if one.bound < one.truth]
        below += [f"{one.name} on {target}: {one.bound} < {one.truth}" for one in wrong]
        share = f"{100 * equal / len(found):.0f} %"
        lines.append(
            f"| {target} | {name} | {len(found)} | {equal} ({share}) | {above} | {len(wrong)} |"
        )
    return [*lines, "", *(f"- {one}" for one in below or ["none is below"])]


def compared(target: str, name: str) -> list[Compared]:
    """Lower and assemble the corpus for one target."""
    from tilefit._frontends.tilelang.frontend import TileLangFrontend

    frontend, card, found = TileLangFrontend(), device(name), []
    files = sorted((ROOT / "tests" / "kernels" / "corpus").glob("*.py"))
    for file in [*files, ROOT / "examples" / "gemm.py", ROOT / "tests" / "kernels" / "matrix.py"]:
        source = frontend.load(file)
        for item in source.kernels():
            if any(p.required for p in item.parameters):
                continue
            try:
                kernels = assembled(source.read(ask(item.name, {}, target, want_build=True)))
            except TilefitError as error:
                print(f"{target:8} {file.stem}::{item.name}: {str(error)[:90]}")
                continue
            for kernel in kernels:
                counted = residency(kernel, card)
                bounded = residency(replace(kernel, assembly=None), card)
                if kernel.assembled and counted is not None and bounded is not None:
                    print(f"{target:8} {kernel.name}: {bounded.blocks} >= {counted.blocks}")
                    found.append(Compared(kernel.name, bounded.blocks or 0, counted.blocks or 0))
    return found
