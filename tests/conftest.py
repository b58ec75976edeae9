"""Toolchain tests skip where the toolchain is missing, unless TILEFIT_STRICT makes that an error.

CI sets TILEFIT_STRICT=1: there every toolchain is installed, and a skip would hide a failure.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLCHAINS = {"tilelang": "tilelang"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    strict = os.environ.get("TILEFIT_STRICT") == "1"
    for marker, module in TOOLCHAINS.items():
        if strict or importlib.util.find_spec(module) is not None:
            continue
        skip = pytest.mark.skip(reason=f"{module} is not installed")
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def]
    report = yield
    strict = os.environ.get("TILEFIT_STRICT") == "1"
    if strict and report.skipped and any(item.get_closest_marker(m) for m in TOOLCHAINS):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a toolchain test skipped under TILEFIT_STRICT"
    return report


@pytest.fixture
def root() -> Path:
    """The checkout, for the bundled examples."""
    return ROOT
