"""Time the second `tilefit plan FOLDER` beside a script that reads and hashes the same files.

    python -m benchmarks.folder [--files N] [--runs N]

The folder holds N unchanged kernels that a first run has read. Both sides run as whole processes,
in turn; the same is printed without what it costs to start Python and import the packages.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
HASH = """
import hashlib, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    print(hashlib.sha256(path.read_bytes()).hexdigest(), path)
"""
START = (
    "import tilefit._planning.plan, tilefit._reading.store, tilefit._render.text.map, rich.console"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "kernels"
        folder.mkdir()
        text = (ROOT / "examples" / "gemm.py").read_text(encoding="utf-8")
        for number in range(args.files):
            (folder / f"gemm_{number}.py").write_text(text.replace("128", "64", number % 2))
        time.sleep(2.5)  # younger files are hashed again, as their clock may not tell edits apart
        env = {**os.environ, "XDG_CACHE_HOME": str(Path(name) / "cache")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled already
        plan = [sys.executable, "-m", "tilefit", "plan", str(folder), "-d", "h100"]
        start = time.perf_counter()
        subprocess.run(plan, env=env, stdout=subprocess.DEVNULL, check=True)
        print(f"first run, {args.files} files: {time.perf_counter() - start:.1f} s")
        sides = {
            "python starts": [sys.executable, "-c", ""],
            "read and hash": [sys.executable, "-c", HASH, str(folder)],
            "tilefit starts": [sys.executable, "-c", START],
            "second run": plan,
        }
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(args.runs):
            for side, command in sides.items():
                start = time.perf_counter()
                subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
                seconds[side].append(time.perf_counter() - start)
        shutil.rmtree(folder)
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    base = medians["read and hash"]
    for side, median in medians.items():
        print(f"{side:<14} median {1000 * median:7.1f} ms   {median / base:5.2f}x")
    own = medians["second run"] - medians["tilefit starts"]
    hashing = base - medians["python starts"]
    print(f"without starting: {1000 * own:.1f} ms beside {1000 * hashing:.1f} ms")


if __name__ == "__main__":
    main()
