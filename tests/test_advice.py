"""Advice is given for what fails, with numbers that would pass, and is labelled untried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.opened import ask
from tests.values import buffer, kernel
from tilefit._devices.names import device
from tilefit._kernel.kernel import Kernel
from tilefit._placement.place import place
from tilefit._verdict.advice import advice
from tilefit._verdict.judge import judge

H100 = device("h100")


def lines(one: Kernel, name: str = "h100") -> tuple[str, ...]:
    found = judge(one, place(one), device(name))
    return advice(one, (*found.memories, *found.limits), device(name))


def test_a_kernel_that_fits_gets_none() -> None:
    assert lines(kernel()) == ()


def test_threads_leave_room_for_what_the_compiler_adds() -> None:
    # 1,024 written, 128 added: 1,024 - 128 = 896 fit
    (line,) = lines(kernel(threads=1152, threads_declared=1024))
    assert "896" in line
    assert "tl.disable_warp_specialized" in line


def test_threads_to_write_are_whole_warp_groups() -> None:
    # one warp added: 1,024 - 32 = 992 would be 7.75 warp groups of 128, and 7 are 896
    (line,) = lines(kernel(threads=1152, threads_declared=1120))
    assert "at most 896 threads" in line


def test_threads_that_nobody_added_to_are_simply_too_many() -> None:
    (line,) = lines(kernel(threads=2048, threads_declared=2048))
    assert "1,024" in line


@pytest.mark.parametrize("grid", [(1, 65536, 1), (1, 1, 65536)])
def test_a_long_axis_belongs_into_x(grid: tuple[int, int, int]) -> None:
    (line,) = lines(kernel(grid=grid))
    assert "into x" in line


def test_a_cluster_names_the_most_blocks() -> None:
    (line,) = lines(kernel(grid=(64, 1, 1), cluster=(32, 1, 1)))
    assert "16" in line


def test_a_large_static_part_should_be_dynamic() -> None:
    one = replace(kernel(static_bytes=48 * 1024 + 16), target="sm_80")
    (line,) = lines(one, "a100")
    assert "shared.dyn" in line


def test_shared_memory_names_the_largest_buffer_and_its_copies() -> None:
    big: dict[str, Any] = {"copies": 4}
    one = kernel(buffer("small", 1024), buffer("big", 4 * 65536, **big), dynamic_bytes=263168)
    (line,) = lines(one)
    assert line.startswith("big is the largest buffer (262,144 B, 4 copies of 65,536 B)")


@pytest.mark.tilelang
@pytest.mark.filterwarnings("ignore")
def test_alignments_say_what_asks_for_them(root: Path) -> None:
    from tilefit._frontends.tilelang.frontend import TileLangFrontend

    source = TileLangFrontend().load(root / "examples" / "gemm.py")
    (hopper,) = source.read(ask("matmul", {}, "sm_90a"))
    (ampere,) = source.read(ask("matmul", {}, "sm_80"))
    # fp16 tiles of 64 columns are rows of 128 B: TMA and wgmma swizzle them by 128 B
    shown = {b.name: (b.align_bytes, b.align_why) for b in hopper.buffers if b.live}
    assert shown == {"A_s": (1024, "tma-swizzle-128"), "B_s": (1024, "tma-swizzle-128")}
    shown = {b.name: (b.align_bytes, b.align_why) for b in ampere.buffers if b.live}
    assert shown == {"A_s": (16, "least"), "B_s": (16, "least")}
