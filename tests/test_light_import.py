"""What `tilefit footprint` and `budget` may import: the standard library and tilefit, no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "rich", "tilelang", "torch", "psutil", "importlib.metadata", "triton"}
# What is not needed to multiply two numbers, and costs more than a millisecond each.
SLOW_STDLIB = {"asyncio", "json", "csv", "multiprocessing", "pathlib", "subprocess", "tomllib"}

PRELUDE = "import contextlib, io, sys\n"
PROBE = """
from tilefit.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main({arguments!r})
assert code in (0, 1), code
"""
EPILOGUE = "import json as _j\nprint(_j.dumps(_modules))"


def modules(code: str) -> set[str]:
    """Return the modules in a fresh interpreter after running ``code``."""
    script = f"{PRELUDE}{code}\n_modules = sorted(sys.modules)\n{EPILOGUE}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_the_probe_sees_a_heavy_import():
    """Without this the tests below could not fail."""
    assert "importlib.metadata" in modules("import importlib.metadata") - modules("")


@pytest.mark.parametrize(
    ("arguments", "device"),
    [
        (["footprint", "--tile", "128", "256"], False),
        (["footprint", "--tile", "128", "256", "--capacity", "100"], False),
        (["footprint", "--tile", "128", "256", "-d", "h100"], True),
        (["footprint"], False),
        (["budget", "--capacity", "233472"], False),
        (["budget"], True),
        (["budget", "-d", "h100-sm-shared-228kb", "--sweep"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_footprint_and_budget_import_only_the_stdlib_and_tilefit(arguments, device):
    loaded = modules(PROBE.format(arguments=arguments)) - modules("")
    outside = {
        name
        for name in loaded
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "tilefit"}
    }
    assert outside == set()
    assert not loaded & HEAVY
    if not device:
        assert not loaded & SLOW_STDLIB
        assert not any(name.startswith("tilefit._devices.names") for name in loaded)
