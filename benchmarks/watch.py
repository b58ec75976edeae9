"""Time what `tilefit plan --watch` takes to answer a saved edit beside the same lowerings alone.

    python -m benchmarks.watch [--edits N]

Both sides keep TileLang imported. The bare side is a process that executes the edited file and
lowers it as often as `plan` does; the two take turns, and the ratio of the medians counts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tilefit._devices.names import expand
from tilefit._planning.question import Options
from tilefit._planning.report import Report
from tilefit._planning.watch import watch
from tilefit._reading.session import Limits

ROOT = Path(__file__).parent.parent
# plan lowers what was asked for, then the pair around the largest stage count that fits
BARE = """
import runpy, sys, time, tilelang
from tilelang import tvm
target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
print("ready", flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    matmul = runpy.run_path(line.strip())["matmul"]
    for num_stages in (3, 7, 8):
        with target:
            tilelang.lower(matmul.get_tir(num_stages=num_stages), target=target)
    print(time.perf_counter() - start, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=11)
    edits = parser.parse_args().edits
    text = (ROOT / "examples" / "gemm.py").read_text(encoding="utf-8")
    bare, watched = [], []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "gemm.py"
        path.write_text(text, encoding="utf-8")
        other = subprocess.Popen(
            [sys.executable, "-c", BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        saved = time.perf_counter()
        number = 0

        def show(_: Report) -> None:
            watched.append(time.perf_counter() - saved)

        def say(line: str) -> None:
            nonlocal saved, number
            assert other.stdin is not None
            assert other.stdout is not None
            assert line.startswith("--"), line
            other.stdin.write(f"{path}\n")
            other.stdin.flush()
            bare.append(float(other.stdout.readline()))
            number += 1
            saved = time.perf_counter()
            path.write_text(f"{text}\n# edit {number}\n", encoding="utf-8")

        devices = expand(["h100"])
        source = f"{path}::matmul"
        watch(
            *(source, devices, [{}], Options(), Limits(), sys.executable, show, say),
            times=edits + 1,
        )
        other.kill()
    # the first answer imports TileLang, and the first lowering warms both sides
    medians = statistics.median(bare[1:]), statistics.median(watched[2:])
    print(f"same lowerings   median {medians[0]:6.3f} s   1.00x")
    print(f"save to answer   median {medians[1]:6.3f} s   {medians[1] / medians[0]:.2f}x")


if __name__ == "__main__":
    main()
