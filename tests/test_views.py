"""A buffer that is reached through `T.reshape` or `T.view` is one buffer, under its first name."""

from __future__ import annotations

import re

import pytest

from tests.lowering import KERNELS, source
from tests.opened import ask
from tilefit._kernel.kernel import Buffer, Kernel

pytestmark = pytest.mark.tilelang

VIEWS = KERNELS / "views.py"
BYTES = {"float": 4, "half_t": 2, "short": 2}  # of the types in generated CUDA


def lowered(name: str, target: str = "sm_90a") -> Kernel:
    (kernel,) = source(VIEWS).read(ask(name, {}, target, want_build=True))
    return kernel


def own(kernel: Kernel) -> dict[str, Buffer]:
    return {b.name: b for b in kernel.buffers if b.origin == "source"}


def emitted(kernel: Kernel, name: str) -> int:
    """Return the bytes of a thread's array in the code that TileLang emits."""
    assert kernel.build is not None
    ((kind, count),) = re.findall(rf"^\s*(\w+) {name}\[(\d+)\];", kernel.build.source, re.MULTILINE)
    return BYTES[kind] * int(count)


def test_a_reshaped_fragment_has_the_bytes_of_the_array_that_is_emitted() -> None:
    kernel = lowered("reshaped")
    values = own(kernel)["values"]
    # the emitted array has the name of the view; 8192 values are spread over 128 threads
    assert values.bytes_per_thread == emitted(kernel, "as_row") == 8192 // 128 * 4
    assert own(kernel)["largest"].bytes_per_thread == emitted(kernel, "largest") == 4


def test_a_view_of_another_type_is_the_same_array() -> None:
    kernel = lowered("viewed")
    assert own(kernel)["halves"].bytes_per_thread == emitted(kernel, "bits") == 8 * 2
    # nothing is emitted for what nobody uses
    assert own(kernel)["untouched"].bytes_per_thread == 0
    assert "untouched" not in kernel.build.source  # type: ignore[union-attr]


def test_a_reshaped_tile_in_shared_memory_is_the_authors() -> None:
    kernel = lowered("shared")
    tile = own(kernel)["tile"]
    assert (tile.bytes, tile.copies, tile.offset) == (4096 * 2, 1, 0)
    assert tile.bytes == kernel.staged.dynamic_bytes
    assert [b.name for b in kernel.buffers if b.origin == "compiler" and "shared" in b.scope] == []


def test_a_loop_names_the_buffer_that_a_view_in_it_stands_for() -> None:
    kernel = lowered("pipelined", "sm_80")
    (loop,) = kernel.loops
    assert set(loop.buffers) == {"flat", "other", "sums"}
    assert set(loop.copied) == {"flat", "other"}
    found = own(kernel)
    # TileLang multiplies `other` for the three stages, and not what a view reaches
    assert (found["flat"].copies, found["other"].copies) == (1, 3)
    assert kernel.staged.dynamic_bytes == (1 + 3) * 64 * 64 * 2
