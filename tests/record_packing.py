"""Record how TileLang lays kernels out in shared memory, for the tests that run without it.

    python -m tests.record_packing

in the root of the checkout, with the TileLang of constraints.txt installed, writes
tests/fixtures/packing/*.json: per device function the buffers that enter TileLang's packer with
our live intervals, the offsets that it chose, and the total. `test_packing_tilelang` lowers the
same kernels again and compares, so a stale fixture is a failing test.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tilefit._placement.tilelang_packer import Interval, agrees

ROOT = Path(__file__).parent.parent
FIXTURES = Path(__file__).parent / "fixtures" / "packing"
TILELANG = "0.1.15"  # as pinned in constraints.txt
TARGETS = ("sm_80", "sm_90a", "sm_100a")
# kernel file -> targets; sm_100a differs from sm_90a only where matrix instructions come in
FILES = {
    "examples/gemm.py": TARGETS,
    "tests/kernels/packing_modes.py": TARGETS[:2],
    "tests/kernels/packing_phases.py": TARGETS[:2],
    "tests/kernels/packing_roles.py": TARGETS,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One device function: what goes into a packer, and what TileLang's made of it."""

    kernel: str
    target: str
    function: str
    reuse: bool
    intervals: tuple[Interval, ...]
    offsets: tuple[int | None, ...]
    total_bytes: int | None

    @property
    def shares(self) -> bool:
        """True if some byte serves two buffers, one after the other."""
        ranges = sorted(
            (offset, offset + (one.bytes or 0))
            for one, offset in zip(self.intervals, self.offsets, strict=True)
            if offset is not None
        )
        return any(start < end for (_, end), (start, _) in pairwise(ranges))

    def matches(self) -> bool:
        """Tell whether our packer finds this layout."""
        return agrees(self.intervals, self.offsets, self.total_bytes, reuse=self.reuse)

    def __str__(self) -> str:
        return f"{self.kernel} for {self.target} ({self.function})"


# ---- fixtures ----------------------------------------------------------------------------


def recorded(path: Path) -> tuple[Case, ...]:
    """Read the cases of a fixture."""
    return tuple(
        Case(
            kernel=case["kernel"],
            target=case["target"],
            function=case["function"],
            reuse=case["reuse"],
            intervals=tuple(
                Interval(name=name, start=start, end=end, bytes=size, align_bytes=align)
                for name, start, end, size, align, _ in case["buffers"]
            ),
            offsets=tuple(buffer[-1] for buffer in case["buffers"]),
            total_bytes=case["total_bytes"],
        )
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
    )


def as_text(cases: tuple[Case, ...]) -> str:
    """Return cases as the text of a fixture, one line a buffer."""
    columns = ["name", "start", "end", "bytes", "align_bytes", "offset"]
    parts = []
    for case in cases:
        rows = [
            [i.name, i.start, i.end, i.bytes, i.align_bytes, offset]
            for i, offset in zip(case.intervals, case.offsets, strict=True)
        ]
        head = {
            "kernel": case.kernel,
            "target": case.target,
            "function": case.function,
            "reuse": case.reuse,
            "total_bytes": case.total_bytes,
        }
        buffers = ",\n   ".join(json.dumps(row) for row in rows)
        parts.append(f'{json.dumps(head)[:-1]}, "buffers": [\n   {buffers}]}}')
    return (
        f'{{"tilelang": "{TILELANG}",\n "columns": {json.dumps(columns)},\n "cases": [\n  '
        + ",\n  ".join(parts)
        + "]}\n"
    )


def path_of(file: str) -> Path:
    """Return the fixture of a kernel file."""
    return FIXTURES / f"{Path(file).stem}.json"


# ---- the real compiler -------------------------------------------------------------------


@cache
def kernels_of(file: str) -> dict[str, Any]:
    """Execute a kernel file and return its public kernels."""
    spec = importlib.util.spec_from_file_location(f"packing_of_{Path(file).stem}", ROOT / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # TileLang reads the source of a kernel through its module
    spec.loader.exec_module(module)
    found = vars(module).items()
    return {k: v for k, v in found if hasattr(v, "get_tir") and not k.startswith("_")}


class Refused(Exception):
    """TileLang does not lower this kernel for this target."""


def lowered(file: str, kernel: str, target: str) -> Iterator[Case]:
    """Lower a kernel with its defaults; yield each device function with dynamic buffers.

    Raises:
        Refused: The compiler refused.
    """
    import tilelang
    from tilelang import tvm

    modules: dict[str, Any] = {}

    @tvm.ir.instrument.pass_instrument
    class AroundMerge:
        def run_before_pass(self, module: Any, info: Any) -> None:
            if info.name == "tl.MergeSharedMemoryAllocations":
                modules["before"] = module

        def run_after_pass(self, module: Any, info: Any) -> None:
            if info.name == "tl.MergeSharedMemoryAllocations":
                modules["after"] = module

    jit = kernels_of(file)[kernel]
    at = tvm.target.Target({"kind": "cuda", "arch": target})
    try:
        with at:
            prim_func = jit.get_tir()
        attrs = dict(prim_func.attrs or {})
        configs = {**dict(attrs.get("tilelang_pass_configs", {})), **(jit.pass_configs or {})}
        configs = {str(getattr(key, "value", key)): value for key, value in configs.items()}
        with (
            at,
            tvm.transform.PassContext(opt_level=3, config=configs, instruments=[AroundMerge()]),
        ):
            tilelang.lower(prim_func, target=at)
    except Exception as error:
        raise Refused(f"{kernel} for {target}: {error}") from error
    for symbol, before in modules["before"].functions.items():
        after = modules["after"][symbol]
        case = case_of(kernel, target, str(symbol.name_hint), before, after, configs)
        if case.intervals:
            yield case


def case_of(
    kernel: str, target: str, function: str, before: Any, after: Any, configs: dict[str, Any]
) -> Case:
    """Put our reading of a function next to what the packer made of it."""
    from tilefit._frontends.tilelang.liveness import AGGRESSIVE_MERGE, DISABLE_REUSE, live_buffers

    reuse = not configs.get(DISABLE_REUSE)
    live = live_buffers(before, aggressive=reuse and bool(configs.get(AGGRESSIVE_MERGE)))
    offsets, total = _layout(after)
    if len(live) == 1:  # not merged, so it has no offset of its own
        offsets = {live[0].var: 0}
    return Case(
        kernel=kernel,
        target=target,
        function=function,
        reuse=reuse,
        intervals=tuple(
            Interval(
                name=b.name, start=b.start, end=b.end, bytes=b.bytes, align_bytes=b.align_bytes
            )
            for b in live
        ),
        offsets=tuple(offsets.get(b.var) for b in live),
        total_bytes=total,
    )


def _layout(function: Any) -> tuple[dict[Any, int], int | None]:
    """Return the offset of each buffer and the size of the array, as the pass left them."""
    from tilelang import tvm
    from tvm.tirx.stmt_functor import post_order_visit

    offsets: dict[Any, int] = {}
    sizes: list[int | None] = []

    def look(node: Any) -> None:
        kind = type(node).__name__
        if kind == "Bind" and getattr(getattr(node.value, "op", None), "name", "").endswith(
            "handle_add_byte_offset"
        ):
            offset = node.value.args[1]
            if isinstance(offset, tvm.tirx.IntImm):
                offsets[node.var] = int(offset)
        elif kind == "AllocBuffer" and str(node.buffer.scope()) == "shared.dyn":
            (extent,) = node.buffer.shape
            known = isinstance(extent, tvm.tirx.IntImm)
            element = int(tvm.DataType(str(node.buffer.dtype)).bits) // 8
            sizes.append(int(extent) * element if known else None)

    post_order_visit(function.body, look)
    assert len(sizes) <= 1, "the pass leaves one dynamic array"
    return offsets, sizes[0] if sizes else 0


def main() -> int:
    """Write every fixture."""
    import tilelang

    if str(tilelang.__version__).split("+")[0] != TILELANG:
        print(f"TileLang is {tilelang.__version__}, not {TILELANG}: nothing written")
        return 1
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for file, targets in FILES.items():
        cases = []
        for kernel in kernels_of(file):
            for target in targets:
                try:
                    cases += list(lowered(file, kernel, target))
                except Refused as refusal:
                    print(str(refusal).splitlines()[0])
        path_of(file).write_text(as_text(tuple(cases)), encoding="utf-8")
        print(f"{path_of(file).relative_to(ROOT)}: {len(cases)} device functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
