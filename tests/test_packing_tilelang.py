"""Our liveness walk and packer against TileLang's own pass: real kernels, random programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.record_packing import (
    FILES,
    ROOT,
    TARGETS,
    Case,
    Refused,
    case_of,
    kernels_of,
    lowered,
    path_of,
    recorded,
)
from tilefit.frontends import _tilelang_liveness as liveness

pytestmark = pytest.mark.tilelang

CORPUS = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests/kernels/corpus").glob("*.py"))
PROGRAMS = 400


# ---- real kernels ------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_the_compiler_still_says_what_was_recorded(file: str) -> None:
    def key(case: Case) -> tuple[str, str, str]:
        return case.kernel, case.target, case.function

    now = {key(case): case for kernel in kernels_of(file) for case in everywhere(file, kernel)}
    then = {key(case): case for case in recorded(path_of(file))}
    assert now.keys() == then.keys()
    for name, case in now.items():
        # twins may have changed places: the compiler orders them by chance
        assert case.intervals == then[name].intervals, name
        assert replace(then[name], offsets=case.offsets).matches(), name
        assert case.total_bytes == then[name].total_bytes, name


def everywhere(file: str, kernel: str) -> Iterator[Case]:
    for target in TARGETS:
        try:
            yield from lowered(file, kernel, target)
        except Refused:
            continue


@pytest.mark.parametrize("file", CORPUS)
def test_the_packer_finds_every_offset_of_the_corpus(file: str) -> None:
    """Each kernel for one target, another one from kernel to kernel."""
    compared = 0
    for number, kernel in enumerate(kernels_of(file)):
        turned = TARGETS[number % 3 :] + TARGETS[: number % 3]
        for target in turned:
            try:
                cases = list(lowered(file, kernel, target))
            except Refused:
                continue
            for case in cases:
                assert case.matches(), str(case)
            compared += len(cases)
            break
    assert compared
