"""Record what TileLang makes of a few kernels, for the tests that run without it.

    python -m tests.record_kernels

in the root of the checkout, with the TileLang of constraints.txt installed, writes
tests/fixtures/kernels/*.json. `test_recorded_kernels` lowers the same kernels again and compares,
so a fixture that no longer says what the compiler says is a failing test, not a silent one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.opened import Session, ask
from tilefit._kernel.kernel import Kernel

ROOT = Path(__file__).parent.parent
FIXTURES = Path(__file__).parent / "fixtures" / "kernels"
TILELANG = "0.1.15"  # as pinned in constraints.txt


@dataclass(frozen=True, slots=True)
class Recording:
    """One lowering: which kernel of which file, for what."""

    file: str
    kernel: str
    target: str
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def path(self) -> Path:
        settings = "".join(f"-{name}={value}" for name, value in self.params)
        return FIXTURES / f"{self.kernel}-{self.target}{settings}.json"


_LIMITS = "tests/kernels/launch_limits.py"
RECORDINGS = (
    *(
        Recording("examples/gemm.py", "matmul", target, (("num_stages", stages),))
        for target in ("sm_80", "sm_90a", "sm_100a", "sm_120a")
        for stages in (2, 3, 4)
    ),
    Recording(_LIMITS, "many_threads", "sm_90a"),
    Recording(_LIMITS, "cluster", "sm_90a"),
    Recording(_LIMITS, "no_iterations", "sm_90a"),
    Recording(_LIMITS, "dynamic_rows", "sm_90a"),
    Recording("examples/alloc_scopes/scopes.py", "scope_showcase", "sm_90a"),
    Recording("examples/alloc_scopes/tmem.py", "tmem_accumulator", "sm_100a"),
)


def lowered(recordings: Iterable[Recording]) -> Iterator[tuple[Recording, Kernel]]:
    """Lower each recording, one session per file; each has a single device function."""
    for file, group in groupby(recordings, key=lambda recording: recording.file):
        with Session(ROOT / file) as session:
            session.load()
            for recording in group:
                params = dict(recording.params)
                (kernel,) = session.read(ask(recording.kernel, params, recording.target))
                yield recording, kernel


def as_text(kernel: Kernel) -> str:
    """Return a kernel as the text of its fixture."""
    return json.dumps(kernel.to_dict(), indent=1, sort_keys=True) + "\n"


def recorded(path: Path) -> Kernel:
    """Read a fixture."""
    return Kernel.from_dict(json.loads(path.read_text(encoding="utf-8")))


def main() -> int:
    """Write every fixture and drop those that no recording names."""
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for recording, kernel in lowered(RECORDINGS):
        if kernel.toolchain_version != TILELANG:
            print(f"TileLang is {kernel.toolchain_version}, not {TILELANG}: nothing written")
            return 1
        recording.path.write_text(as_text(kernel), encoding="utf-8")
        print(recording.path.relative_to(ROOT))
    for stale in set(FIXTURES.glob("*.json")) - {r.path for r in RECORDINGS}:
        stale.unlink()
        print(f"removed {stale.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
