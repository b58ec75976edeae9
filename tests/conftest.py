"""Toolchain tests skip where the toolchain is missing, unless TILEFIT_STRICT makes that an error.

CI sets TILEFIT_STRICT=1: there every toolchain is installed, and a skip would hide a failure.
Tests that ask a real accelerator run only with TILEFIT_LIVE=1, and are no part of that.

The tests that tests/slow.txt names are marked ``slow``: left out by default, and run by CI.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
Golden = Callable[[str, str], None]
# marker -> the distribution that brings the toolchain
TOOLCHAINS = {"tilelang": "tilelang", "cuda": "nvidia-cuda-nvcc", "triton": "triton"}


# where the workers of a session keep what they lowered, for each other
LOWERED = "TILEFIT_TESTS_LOWERED"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[LOWERED] = tempfile.mkdtemp(prefix="tilefit-lowered-")
    # a shell that starts the tests in the background makes them, and their children, deaf to Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the screens of tests/golden anew"
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(LOWERED, ""), ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = set((ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")
    if os.environ.get("TILEFIT_LIVE") != "1":
        live = [item for item in items if item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]
    strict = os.environ.get("TILEFIT_STRICT") == "1"
    for marker, distribution in TOOLCHAINS.items():
        if strict or _installed(distribution):
            continue
        skip = pytest.mark.skip(reason=f"{distribution} is not installed")
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(skip)


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def]
    report = yield
    strict = os.environ.get("TILEFIT_STRICT") == "1"
    if strict and report.skipped and any(item.get_closest_marker(m) for m in TOOLCHAINS):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a toolchain test skipped under TILEFIT_STRICT"
    return report


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's cache folder out of the tests, and the tests out of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def root() -> Path:
    """The checkout, for the bundled examples."""
    return ROOT


@pytest.fixture
def golden(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Golden:
    """Compare a whole screen with tests/golden/NAME.txt, at 80 columns and without colours.

    For layout: the facts in a screen have tests of their own.
    """
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path}: write it with --update-golden, and read it"
        assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()

    return compare
