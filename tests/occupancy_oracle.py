"""NVIDIA's own calculator as an oracle: builds ``occupancy_oracle.cpp`` and runs it."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_suffix(".cpp")
DISTRIBUTION = "nvidia-cuda-runtime"
INPUTS = (
    "cc",
    "threads",
    "registers",
    "static",
    "dynamic",
    "carveout",
    "optin",
    "max_dynamic",
    "barriers",
)
OUTPUTS = (
    "status",
    "blocks",
    "bits",
    "by_warps",
    "by_registers",
    "by_shared",
    "by_slots",
    "by_barriers",
    "taken_registers",
    "taken_shared",
)
Columns = dict[str, "np.ndarray[Any, Any]"]


class NoOracle(Exception):
    """What is missing to build it."""


def header_folder() -> Path:
    """Return the folder of cuda_occupancy.h in the installed wheel."""
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise NoOracle(f"{DISTRIBUTION} is not installed (pip install '.[cuda]')") from None
    for file in files:
        if file.name == "cuda_occupancy.h":
            return Path(str(file.locate())).parent
    raise NoOracle(f"{DISTRIBUTION} has no cuda_occupancy.h")


def build(folder: Path, *flags: str) -> Path:
    """Compile the oracle into a folder and return its path."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoOracle("g++ is not installed")
    program = folder / "oracle"
    include = str(header_folder())
    command = [compiler, *(flags or ("-O1",)), "-isystem", include, str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def records(inputs: Columns) -> bytes:
    """Return the inputs as the oracle reads them."""
    return np.stack([inputs[name] for name in INPUTS], axis=1).astype(np.int32).tobytes()


def ask(program: Path, inputs: Columns) -> Columns:
    """Return the oracle's answer to every input."""
    done = subprocess.run([program], input=records(inputs), stdout=subprocess.PIPE, check=True)
    table = np.frombuffer(done.stdout, dtype=np.int32).reshape(-1, len(OUTPUTS))
    return dict(zip(OUTPUTS, table.T, strict=True))


def clock(program: Path, inputs: Columns, rounds: int) -> tuple[float, int]:
    """Return the processor seconds of the oracle's fastest round, and the sum of all blocks."""
    command = [str(program), str(rounds)]
    done = subprocess.run(command, input=records(inputs), stdout=subprocess.PIPE, check=True)
    seconds, total = done.stdout.split()
    return float(seconds), int(total)
