"""Hold tilefit's numbers against independent truth, and write docs/accuracy.md.

    python -m benchmarks.accuracy [--targets sm_80,sm_90a] [--limit N] [-o docs/accuracy.md]
    python -m benchmarks.accuracy --only ascend    # or estimate: that section alone

The truth of a device function is what a launch is charged: the static bytes that ptxas reports
plus the dynamic bytes that the generated *host* code passes at the launch. Neither is read by
`plan`, which takes the dynamic bytes from the device function's attributes and models the static
part. The declared formula is `sum of bytes x (num_stages if a T.copy from global memory fills the
buffer in a pipelined loop, else 1)`, which tutorials call an upper bound.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.opened import ask
from tests.values import packing_differs
from tilefit._assembler.nvcc import assemble
from tilefit._devices.names import device
from tilefit._errors import TilefitError
from tilefit._kernel.dtype import parse_dtype
from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import Memory
from tilefit._placement.account import account
from tilefit._placement.place import place
from tilefit._verdict.judge import Status, judge

ROOT = Path(__file__).parent.parent
TARGETS = {
    "sm_80": "a100",
    "sm_89": "rtx-4090",
    "sm_90a": "h100",
    "sm_100a": "b200",
    "sm_120a": "rtx-5090",
}
SECTIONS = {
    "blocks": "benchmarks._accuracy_blocks",
    "estimate": "benchmarks._accuracy_estimate",
    "ascend": "benchmarks._accuracy_ascend",
}
"""Sections with a module of their own, in the order in which a new document has them."""


@dataclass(frozen=True)
class Case:
    """One device function, as tilefit and as the toolchain itself see it."""

    kernel: Kernel
    declared_bytes: int
    host_dynamic_bytes: int
    assembled_static_bytes: int | None
    cannot_assemble: str | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--limit", type=int, default=0, help="kernels a target, 0 for all")
    parser.add_argument("--only", choices=SECTIONS, help="make one section anew")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "accuracy.md")
    arguments = parser.parse_args()
    targets = arguments.targets.split(",")
    output = arguments.output.resolve()
    if arguments.only:
        lines = made(arguments.only)  # takes minutes: the rest may be made anew meanwhile
        text = output.read_text(encoding="utf-8")
        output.write_text(with_section(text, lines), encoding="utf-8")
        print(f"wrote {output}")
        return
    cases = {target: collect(target, arguments.limit) for target in targets}
    text = document(cases)
    for name in SECTIONS:
        text = with_section(text, made(name))
    output.write_text(text, encoding="utf-8")
    print(f"wrote {output}")


def made(name: str) -> list[str]:
    """Return the lines of a section that has a module of its own."""
    lines: list[str] = import_module(SECTIONS[name]).section()
    return lines


def with_section(text: str, lines: list[str]) -> str:
    """Return a document with a section in place of the one of that heading, or at its end."""
    parts = re.split(r"(?m)^(?=## )", text)
    section = "\n".join(lines) + "\n"
    at = next((n for n, part in enumerate(parts) if part.startswith(lines[0] + "\n")), None)
    if at is None:
        return text.rstrip("\n") + "\n\n" + section
    last = at == len(parts) - 1
    return "".join([*parts[:at], section if last else section + "\n", *parts[at + 1 :]])


def collect(target: str, limit: int) -> list[Case]:
    """Lower and assemble every kernel of the corpus for one target."""
    from tilefit._frontends.tilelang.frontend import TileLangFrontend

    frontend = TileLangFrontend()
    found: list[Case] = []
    files = sorted((ROOT / "tests" / "kernels" / "corpus").glob("*.py"))
    files += [ROOT / "examples" / "gemm.py", ROOT / "examples" / "alloc_scopes" / "scopes.py"]
    kernels = [
        (f, source, k.name)
        for f in files
        for source in [frontend.load(f)]
        for k in source.kernels()
        if not any(p.required for p in k.parameters)
    ]
    for file, source, name in kernels[: limit or None]:
        with _Host() as host:
            try:
                lowered = source.read(ask(name, {}, target, want_build=True))
            except TilefitError as error:
                print(f"{target:8} {file.stem}::{name}: {str(error)[:90]}")
                continue
        found += _cases(lowered, host.dynamic)
        print(f"{target:8} {file.stem}::{name}: {len(lowered)} device functions", flush=True)
    return found


def _cases(lowered: tuple[Kernel, ...], host: dict[str, int]) -> list[Case]:
    build = lowered[0].build
    assert build is not None
    assembly = assemble(build.source, lowered[0].target, build.include_dirs, flags=build.flags)
    static = {use.name: use.static_bytes for use in assembly.functions}
    return [
        Case(
            kernel=kernel,
            declared_bytes=declared(kernel),
            host_dynamic_bytes=host.get(kernel.function, 0),
            assembled_static_bytes=static.get(kernel.function),
            cannot_assemble=assembly.reason,
        )
        for kernel in lowered
    ]


def declared(kernel: Kernel) -> int:
    """Return the tutorial's formula for the shared buffers that the author declared."""
    total = 0
    for buffer in kernel.buffers:
        if buffer.memory is not Memory.SHARED or buffer.origin != "source":
            continue
        if buffer.scope not in ("shared", "shared.dyn"):
            continue
        stages = [loop.num_stages or 1 for loop in kernel.loops if buffer.name in loop.copied]
        total += one_copy(buffer) * max(stages, default=1)
    return total


def one_copy(buffer: Buffer) -> int:
    """Return the bytes of one copy by shape and dtype alone."""
    elements = 1
    for extent in buffer.shape:
        assert isinstance(extent, int)
        elements *= extent
    return parse_dtype(buffer.dtype).nbytes(elements)


class _Host:
    """Reads the dynamic bytes that the host code of a lowering passes to each launch."""

    def __init__(self) -> None:
        self.dynamic: dict[str, int] = {}

    def __enter__(self) -> _Host:
        self._module = importlib.import_module("tilelang.engine.lower")
        self._lower = self._module.lower

        def lower(*args: Any, **kwargs: Any) -> Any:
            artifact = self._lower(*args, **kwargs)
            self._read(artifact.host_mod, artifact.device_mod)
            return artifact

        self._module.lower = lower
        return self

    def __exit__(self, *_: object) -> None:
        self._module.lower = self._lower

    def _read(self, host_mod: Any, device_mod: Any) -> None:
        from tvm.tirx.stmt_functor import post_order_visit

        names = {str(f.attrs["global_symbol"]) for f in device_mod.functions.values()}
        dynamic = {
            str(f.attrs["global_symbol"])
            for f in device_mod.functions.values()
            if "tirx.use_dyn_shared_memory"
            in [str(p) for p in f.attrs["tirx.kernel_launch_params"]]
        }

        def look(node: Any) -> None:
            if type(node).__name__ != "Call" or not len(node.args):
                return
            name = getattr(node.args[0], "value", None)
            if isinstance(name, str) and name in names and name in dynamic:
                self.dynamic[name] = int(node.args[-1])

        for function in host_mod.functions.values():
            post_order_visit(function.body, look)


# ---- the document ----------------------------------------------------------------------------


def document(cases: dict[str, list[Case]]) -> str:
    """Return docs/accuracy.md."""
    import tilelang

    toolkit = _toolkit()
    lines = [
        "# Accuracy",
        "",
        "Made by `python -m benchmarks.accuracy` with TileLang "
        f"{tilelang.__version__.split('+')[0]} and {toolkit}: the kernels of "
        "`tests/kernels/corpus` and the bundled examples, each with its defaults, lowered and "
        "assembled here, nothing launched. Truth: static bytes by ptxas + dynamic bytes in the "
        "generated host launch code, against the opt-in limit of a block.",
        "",
        "## The declared formula",
        "",
        "`sum of bytes x (num_stages if a T.copy from global memory fills it in a pipelined loop, "
        "else 1)` against the truth, for device functions with shared memory.",
        "",
        "| target | device | functions | equal | above | below | false fits | false rejections |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_formula_row(target, found) for target, found in cases.items()]
    lines += [
        "",
        "## What `plan` says",
        "",
        "Dynamic: bytes of `plan` equal to those of the host code. Static: the modelled static "
        "part equal to ptxas's. Packer: functions where our own packer gives every offset and the "
        "total of the compiler (of those with two or more dynamic buffers). Rows: the account of "
        "all bytes sums to the total. False fits: `plan` without assembling says fits, and the "
        "truth is over the limit.",
        "",
        "| target | functions | assembled | dynamic | static | packer | rows | false fits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_plan_row(target, found) for target, found in cases.items()]
    lines += ["", "Not assembled:", ""]
    missing = [
        f"- {c.kernel.name} for {target}: {c.cannot_assemble}"
        for target, found in cases.items()
        for c in found
        if c.assembled_static_bytes is None
    ]
    lines += sorted(set(missing)) or ["- none"]
    return "\n".join(lines) + "\n"


def _toolkit() -> str:
    from tilefit._assembler.toolkit import find_toolkit

    kit = find_toolkit()
    return f"nvcc {kit.version}"


def _truth(case: Case) -> int | None:
    if case.assembled_static_bytes is None:
        return None
    return case.host_dynamic_bytes + case.assembled_static_bytes


def _limit(target: str) -> int:
    return device(TARGETS[target]).pool("shared").per_block_bytes


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.0f} %)" if of else "0"


def _formula_row(target: str, found: list[Case]) -> str:
    known = [(c.declared_bytes, t) for c in found if (t := _truth(c))]
    limit = _limit(target)
    equal = sum(d == t for d, t in known)
    above = sum(d > t for d, t in known)
    below = sum(d < t for d, t in known)
    false_fits = sum(d <= limit < t for d, t in known)
    rejections = sum(t <= limit < d for d, t in known)
    n = len(known)
    cells = [_share(equal, n), _share(above, n), _share(below, n), str(false_fits), str(rejections)]
    return f"| {target} | {TARGETS[target]} | {n} | {' | '.join(cells)} |"


def _plan_row(target: str, found: list[Case]) -> str:
    limit, chip = _limit(target), device(TARGETS[target])
    built = [c for c in found if c.assembled_static_bytes is not None]
    dynamic = sum(c.kernel.staged.dynamic_bytes == c.host_dynamic_bytes for c in found)
    static = sum(place(c.kernel)[0].static_bytes == c.assembled_static_bytes for c in built)
    packed = [c for c in found if _dynamic_buffers(c.kernel) >= 2]
    agree = sum(packing_differs(c.kernel) is None for c in packed)
    rows = [(account(c.kernel), place(c.kernel)[0].total_bytes) for c in found]
    summed = sum(r is not None and sum(x.own_bytes for x in r) == total for r, total in rows)
    false_fits = 0
    for case in built:
        truth = _truth(case)
        says = judge(case.kernel, place(case.kernel), chip)
        shared = next(c for c in says.memories if c.name == Memory.SHARED)
        false_fits += shared.status is Status.FITS and truth is not None and truth > limit
    cells = [
        f"{len(found)} | {len(built)}",
        f"{dynamic}/{len(found)}",
        f"{static}/{len(built)}",
        f"{agree}/{len(packed)}",
        f"{summed}/{len(found)}",
        str(false_fits),
    ]
    return f"| {target} | {' | '.join(cells)} |"


def _dynamic_buffers(kernel: Kernel) -> int:
    return sum(
        b.memory is Memory.SHARED and not b.static and bool(b.copies) for b in kernel.buffers
    )


if __name__ == "__main__":
    sys.exit(main())
