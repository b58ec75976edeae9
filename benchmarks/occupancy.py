"""Time `tilefit.occupancy_arrays` beside NVIDIA's header in C++ and the package cuxray.

    pip install '.[cuda]' cuxray
    python -m benchmarks.occupancy [--count N] [--rounds N]

All answer the same inputs in one run, each on one core; of the rounds, which alternate, the
fastest counts, in processor time, so that whatever else the machine does counts little. The C++
loop is `tests/occupancy_oracle.cpp`, compiled here with -O3 -march=native, and its answers are
compared with ours one by one. cuxray has no arrays, so it is called in a loop over fewer inputs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests import occupancy_oracle as oracle
from tests.occupancy_oracle import Columns
from tests.test_occupancy_oracle import edges, groups
from tilefit import device, occupancy_arrays

AIM = 15e6
SWEPT = {"a100": 80, "rtx-4090": 89, "h100": 90, "b200": 100}
CUXRAY_COUNT = 20_000
Evaluate = Callable[[], Any]


def plain(count: int) -> Columns:
    """A sweep as people run it: four cards, any block, everything opted in to."""
    rng = np.random.default_rng(2)
    which = rng.integers(0, len(SWEPT), count)
    most = np.array([device(name).main_pool.per_block_bytes for name in SWEPT])[which]
    static = rng.integers(0, 1025, count)
    return {
        "cc": np.array(list(SWEPT.values()))[which],
        "threads": rng.integers(1, 1025, count),
        "registers": rng.integers(16, 256, count),
        "static": static,
        "dynamic": rng.integers(0, most - static + 1, count),
        "carveout": np.full(count, -1),
        "optin": np.ones(count, dtype=int),
        "max_dynamic": most - static,
        "barriers": np.ones(count, dtype=int),
    }


def tilefit_calls(rows: Columns, *, defaults: bool) -> Evaluate:
    """Return a function that answers rows: one call for each device and opt-in."""
    calls = []
    for cc, optin, group in groups(rows):
        values: dict[str, Any] = {
            "threads": group["threads"],
            "registers": group["registers"],
            "static_smem": group["static"],
            "dynamic_smem": group["dynamic"],
        }
        if not defaults:
            values |= {"carveout": group["carveout"], "barriers": group["barriers"]}
            values |= {"optin": optin, "max_dynamic_smem": group["max_dynamic"] if optin else None}
        calls.append((f"sm_{cc}", values))
    return lambda: [occupancy_arrays(name, **values) for name, values in calls]


def cuxray_loop(rows: Columns) -> Evaluate | None:
    """Return the same for cuxray; None if it is not installed."""
    try:
        from cuxray.archspec import lookup
        from cuxray.occupancy import compute
    except ImportError:
        return None
    specs = {cc: lookup((cc // 10, cc % 10)) for cc in SWEPT.values()}
    names = ("cc", "registers", "threads", "static", "dynamic")
    calls = list(zip(*(rows[name].tolist() for name in names), strict=True))
    return lambda: [compute(specs[cc], *values).blocks_per_sm for cc, *values in calls]


def seconds(evaluate: Evaluate) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    evaluate()
    return time.process_time() - start


def checked(rows: Columns, evaluate: Evaluate, program: Path) -> None:
    """Exit if any answer differs from the header's."""
    ordered = {name: np.concatenate([g[name] for *_, g in groups(rows)]) for name in rows}
    found = np.concatenate([answer.blocks_per_core for answer in evaluate()])
    wrong = (found != oracle.ask(program, ordered)["blocks"]).sum()
    if wrong:
        sys.exit(f"{wrong} answers differ from the header's")


def compare(rows: Columns, evaluate: Evaluate, loop: Evaluate | None, args: Any) -> None:
    """Print the rates of one set of inputs and their ratios."""
    checked(rows, evaluate, args.program)
    mine, header, theirs = [], [], []
    for _ in range(args.rounds):
        mine.append(seconds(evaluate))
        header.append(oracle.clock(args.program, rows, 1)[0])
        if loop is not None:
            theirs.append(seconds(loop))
    rate = args.count / min(mine)
    print(f"  tilefit.occupancy_arrays  {rate / 1e6:7.2f} million/s")
    sides = [("cuda_occupancy.h in C++", args.count / min(header))]
    if loop is not None:
        sides.append(("cuxray in a loop", min(CUXRAY_COUNT, args.count) / min(theirs)))
    for name, other in sides:
        print(f"  {name:<25} {other / 1e6:7.2f} million/s   tilefit is {rate / other:.3g} x it")


def main() -> int:
    """Build the oracle, check that the answers are the same, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2_000_000, help="inputs (default: 2000000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default: 5)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.program = oracle.build(Path(folder), "-O3", "-march=native")
        print(f"{args.count:,} inputs, fastest of {args.rounds} rounds, one core")
        print("plain: four cards, any block, default carveout, opted in")
        rows = plain(args.count)
        few = {name: column[:CUXRAY_COUNT] for name, column in rows.items()}
        loop = cuxray_loop(few)
        compare(rows, tilefit_calls(rows, defaults=True), loop, args)
        print(f"  aim for tilefit: {AIM / 1e6:.0f} million/s")
        if loop is None:
            print("  cuxray is not installed: pip install cuxray")
        else:
            wrong = (np.array(loop()) != oracle.ask(args.program, few)["blocks"]).sum()
            print(f"  of {len(few['cc']):,} answers of cuxray {wrong} differ from the header's")
        print("mixed: 14 capabilities, edges, any carveout, barriers and opt-in")
        rows = edges(args.count)
        compare(rows, tilefit_calls(rows, defaults=False), None, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
