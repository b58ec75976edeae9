"""The public names: all there, lazy, and no name is a module's as well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tilefit

FUNCTIONS = (
    "budget",
    "device",
    "explain",
    "footprint",
    "limit",
    "max_stages",
    "occupancy",
    "occupancy_arrays",
    "parse_dtype",
    "plan",
)


def call_twice(name: str, *arguments: object, **options: object) -> object:
    """Call a public function twice by its public name; return the second result."""
    first = getattr(tilefit, name)(*arguments, **options)
    second = getattr(tilefit, name)(*arguments, **options)
    assert first == second
    return second


def test_limit_twice():
    # 227 KiB of opt-in shared memory at compute capability 9.0 (CUDA Programming Guide)
    assert call_twice("limit", "cuda -arch=sm_90a") == 227 * 1024


def test_explain_twice():
    text = "out of resource: shared memory, Required: 131072, Hardware limit: 101376."
    assert call_twice("explain", text).findings[0].over_bytes == 131072 - 101376


def test_footprint_twice():
    assert call_twice("footprint", (128, 256), "float32", 2).total_bytes == 128 * 256 * 4 * 2


def test_budget_twice():
    result = call_twice("budget", 256, 256, 64, (2, 3, 4), capacity_bytes=233472)
    assert [row.total_bytes for row in result.rows] == [2 * 65536, 3 * 65536, 4 * 65536]


def test_max_stages_twice():
    assert call_twice("max_stages", 256, 256, 64, capacity_bytes=233472) == 233472 // 65536


def test_device_twice():
    h100 = call_twice("device", "h100")
    assert h100.pool(tilefit.Memory.SHARED).per_block_bytes == 227 * 1024
    result = tilefit.budget(256, 256, 64, device=h100)
    assert result.limit_bytes == 227 * 1024


def test_occupancy_twice():
    result = call_twice("occupancy", "h100", threads=1024, registers=64)
    assert result.blocks_per_core == 65536 // (1024 * 64)


def test_occupancy_arrays_twice():
    """Called by the public name twice; the answers are arrays, which have no one truth value."""
    for _ in range(2):
        result = tilefit.occupancy_arrays("h100", threads=[512, 1024], registers=64)
        assert result.blocks_per_core.tolist() == [65536 // (512 * 64), 65536 // (1024 * 64)]


def test_parse_dtype_twice():
    assert call_twice("parse_dtype", "T.float16").bits == 16


def test_plan_twice(tmp_path):
    """Called, not lowered: what it does is tested elsewhere."""
    missing = tmp_path / "missing.py"
    for _ in range(2):
        with pytest.raises(tilefit.TilefitError):
            tilefit.plan(str(missing), "h100")


def test_a_user_can_say_what_may_be_used_and_catch_a_refusal(tmp_path):
    assert issubclass(tilefit.RefusedError, tilefit.TilefitError)
    with pytest.raises(tilefit.InputError, match="no such file"):
        tilefit.plan(str(tmp_path / "x.py"), "h100", limits=tilefit.Limits(seconds=1.0))


def test_every_function_is_called_twice_here():
    """A new public function needs a test above."""
    lower = {name for name in tilefit.__all__ if name.islower()}
    assert lower == set(FUNCTIONS)
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f"test_{name}_twice" in source for name in FUNCTIONS)


def test_all_is_what_resolves():
    assert list(tilefit.__all__) == sorted(tilefit.__all__)
    assert set(tilefit.__all__) == set(tilefit._MODULE_OF)
    assert dir(tilefit) == sorted([*tilefit.__all__, "__version__"])
    for name in tilefit.__all__:
        assert getattr(tilefit, name) is getattr(tilefit, name)


def test_no_public_name_is_a_module():
    """`tilefit.x` would change its meaning once `tilefit/x.py` is imported."""
    package = Path(tilefit.__file__).parent
    modules = {path.stem for path in package.iterdir()}
    assert not modules & set(tilefit.__all__)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'footprints'"):
        _ = tilefit.footprints


def test_version_is_the_distributions():
    assert tilefit.__version__[0].isdigit()


def test_importing_tilefit_loads_no_module_of_its_own():
    code = "import sys, tilefit; print([m for m in sys.modules if m.startswith('tilefit.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
