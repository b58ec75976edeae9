"""Find a CUDA toolkit that assembles: the system's, or the wheels of the ``cuda`` extra.

The order is TileLang's own (``tilelang.env``), so that the same nvcc answers as would at run
time: CUDA_HOME, CUDA_PATH, the PATH, the wheels of this Python, ``/usr/local/cuda``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilefit._errors import ToolchainError

Origin = Literal["system", "wheels"]

# What nvcc needs of the five wheels, which share one folder, to make a cubin without a toolkit.
_WHEEL_FILES = {
    "bin/nvcc": "nvidia-cuda-nvcc",
    "bin/ptxas": "nvidia-cuda-nvcc",
    "nvvm/bin/cicc": "nvidia-nvvm",
    "include/crt/host_config.h": "nvidia-cuda-crt",
    "include/cuda_runtime.h": "nvidia-cuda-runtime",
    "include/cccl/cuda": "nvidia-cuda-cccl",
}
_INSTALL = "pip install 'tilefit[cuda]'"
_HOST_COMPILERS = ("g++", "clang++", "c++")
_VERSION_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A toolkit that can make a cubin.

    Attributes:
        nvcc: The compiler driver; it finds its own headers and ptxas.
        host_compiler: The C++ compiler that it preprocesses with.
        nvdisasm: The disassembler, None if there is none anywhere.
        origin: ``system``, or ``wheels`` for the ``cuda`` extra.
        version: nvcc's release (``13.0``).
    """

    nvcc: Path
    host_compiler: Path
    nvdisasm: Path | None
    origin: Origin
    version: str


def find_toolkit(*, hide_system: bool = False) -> Toolkit:
    """Find a toolkit.

    Args:
        hide_system: Look at the wheels only.

    Raises:
        ToolchainError: There is none, the wheels are incomplete, or no host compiler is there.
    """
    host = next((path for name in _HOST_COMPILERS if (path := shutil.which(name))), None)
    if host is None:
        raise ToolchainError("assembling needs a C++ compiler beside nvcc: no g++ on the PATH")
    for nvcc, origin in _candidates(hide_system):
        version = _version(nvcc)
        if version is not None:
            return Toolkit(
                nvcc=nvcc,
                host_compiler=Path(host),
                nvdisasm=_nvdisasm(nvcc),
                origin=origin,
                version=version,
            )
    where = "in the wheels" if hide_system else "(CUDA_HOME, PATH, wheels, /usr/local/cuda)"
    raise ToolchainError(f"assembling needs nvcc, and none was found {where}: {_INSTALL}")


def _candidates(hide_system: bool) -> Iterator[tuple[Path, Origin]]:
    system: list[Path] = []
    if not hide_system:
        homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
        system = [Path(home, "bin", "nvcc") for home in homes if home]
        if on_path := shutil.which("nvcc"):
            system.append(Path(on_path))
    yield from ((nvcc, "system") for nvcc in system if nvcc.is_file())
    root = _wheels()
    default = Path("/usr/local/cuda/bin/nvcc")
    fallback = not hide_system and default.is_file()
    if root is not None and (root / "bin" / "nvcc").is_file():
        missing = [need for need in _WHEEL_FILES if not (root / need).exists()]
        if not missing:
            yield root / "bin" / "nvcc", "wheels"
        elif not fallback:
            packages = ", ".join(dict.fromkeys(_WHEEL_FILES[need] for need in missing))
            raise ToolchainError(f"the CUDA wheels lack {packages}: {_INSTALL}")
    if fallback:
        yield default, "system"


def _wheels() -> Path | None:
    """Return the folder that the CUDA wheels of this Python share, the newest one."""
    spec = importlib.util.find_spec("nvidia")
    homes = spec.submodule_search_locations if spec is not None else None
    roots = [root for home in homes or () for root in Path(home).glob("cu[0-9]*")]
    roots = [root for root in roots if root.name[2:].isdigit()]
    return max(roots, key=lambda root: int(root.name[2:]), default=None)


def _nvdisasm(nvcc: Path) -> Path | None:
    beside = nvcc.parent / "nvdisasm"
    wheels = _wheels()
    on_path = shutil.which("nvdisasm")
    places = (beside, wheels and wheels / "bin" / "nvdisasm", on_path and Path(on_path))
    return next((place for place in places if place and place.is_file()), None)


def _version(nvcc: Path) -> str | None:
    """Return nvcc's release, None if it does not run."""
    try:
        done = subprocess.run(
            [nvcc, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return found[1] if done.returncode == 0 and found else None
