"""Time `tilefit plan` beside a bare script that imports TileLang and does the same lowerings.

    python -m benchmarks.plan [--runs N]

Both run as whole processes, in turn, in one run; the ratio of the medians is what counts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
# plan lowers what was asked for, then the pair around the largest stage count that fits
BARE = """
import sys
sys.path.insert(0, {examples!r})
import gemm, tilelang
from tilelang import tvm
target = tvm.target.Target({{"kind": "cuda", "arch": "sm_90a"}})
for num_stages in (3, 7, 8):
    with target:
        artifact = tilelang.lower(gemm.matmul.get_tir(num_stages=num_stages), target=target)
    function = next(iter(artifact.device_mod.functions.values()))
    print(num_stages, function.attrs["dyn_shared_memory_buf"])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    source = f"{ROOT / 'examples' / 'gemm.py'}::matmul"
    sides = {
        "bare script": [sys.executable, "-c", BARE.format(examples=str(ROOT / "examples"))],
        "tilefit plan": [
            *(sys.executable, "-m", "tilefit", "plan", source),
            *("-d", "h100", "--set", "num_stages=3", "--no-cache"),
        ],
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for run in range(runs + 1):
        for name, command in sides.items():
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            if run:  # the first of each warms the caches
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    base = medians["bare script"]
    for name, median in medians.items():
        print(f"{name:<14} median {median:6.3f} s   {median / base:5.2f}x")


if __name__ == "__main__":
    main()
