"""Whole-process time of ``tilefit footprint --tile 128 256`` beside a stdlib script.

Run it from the repository as ``python -m benchmarks.footprint`` with the interpreter that
tilefit is installed in. Both sides print the same text, and their runs alternate, so that
whatever else the machine does meets both. The children read bytecode from a folder that the
first runs fill: that is how an installed package starts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARGUMENTS = ("--tile", "128", "256")
BASELINE = Path(__file__).with_name("_stdlib_footprint.py")
CONSOLE_SCRIPT = Path(sys.executable).with_name("tilefit")
AIM = 1.6


def commands() -> dict[str, list[str]]:
    """Return the command lines to compare; the first is the baseline."""
    return {
        "stdlib script": [sys.executable, str(BASELINE), *ARGUMENTS],
        "tilefit (console script)": [str(CONSOLE_SCRIPT), "footprint", *ARGUMENTS],
        "python -m tilefit": [sys.executable, "-m", "tilefit", "footprint", *ARGUMENTS],
    }


def environment(bytecode: str) -> dict[str, str]:
    """Return the children's environment: bytecode is written to, and read from, that folder."""
    rest = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return rest | {"PYTHONPYCACHEPREFIX": bytecode}


def seconds(command: list[str], env: dict[str, str]) -> tuple[float, bytes]:
    """Run one command; return its wall time in seconds and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=env)
    return time.perf_counter() - start, done.stdout


def main() -> int:
    """Print the medians and the ratios to the baseline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="runs of each (default: 100)")
    runs = parser.parse_args().runs
    sides = commands()
    with tempfile.TemporaryDirectory() as bytecode:
        env = environment(bytecode)
        printed = {name: seconds(command, env)[1] for name, command in sides.items()}
        if len(set(printed.values())) != 1:
            sys.exit(f"the sides do not print the same: {printed}")
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(runs):
            for name, command in sides.items():
                times[name].append(seconds(command, env)[0])
    medians = {name: statistics.median(values) for name, values in times.items()}
    baseline = next(iter(medians.values()))
    print(f"Python {sys.version.split()[0]}, {runs} runs of each, alternating; medians")
    for name, median in medians.items():
        print(f"  {name:<26} {median * 1e3:6.1f} ms   {median / baseline:.2f}x")
    print(f"aim for the console script: at most {AIM}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
