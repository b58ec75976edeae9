"""One unit decides: each kernel misses one limit by one unit, and its twin fits with 0 to spare."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.lowering import KERNELS, lower, source
from tilefit._devices.names import device
from tilefit._errors import RefusedError
from tilefit._placement.place import place
from tilefit._verdict.judge import Check, Status, judge

FILE = KERNELS / "exact_miss.py"


@dataclass(frozen=True)
class Miss:
    """What decides for a kernel: the check, the value that just fits, and one unit of it."""

    kernel: str
    device: str
    check: str
    limit: int
    unit: int

    @property
    def id(self) -> str:
        return f"{self.kernel}-{self.device}"


KIB = 1024

MISSES = (
    # shared memory: 227 KiB on sm_90 and sm_100, 163 on sm_80, 99 on sm_89 and sm_120
    Miss("one_float", "h100", "shared", 227 * KIB, 4),
    Miss("one_float", "b200", "shared", 227 * KIB, 4),
    Miss("one_byte", "rtx-4090", "shared", 99 * KIB, 1),
    Miss("sixteen_bytes", "a100", "shared", 163 * KIB, 16),
    Miss("beside_a_barrier", "h100", "shared", 227 * KIB, 4),
    # 1025 bytes of flags are rounded up to 2048 beside the dynamic array
    Miss("one_flag", "rtx-5090", "shared", 99 * KIB, 1024),
    Miss("one_thread", "a100", "threads", 1024, 1),
    Miss("one_thread_after_specialisation", "h100", "threads", 1024, 1),
    Miss("one_row_of_blocks", "a100", "grid.y", 65535, 1),
    Miss("one_row_of_blocks", "h100", "grid.y", 65535, 1),
    Miss("one_layer_of_blocks", "rtx-4090", "grid.z", 65535, 1),
    Miss("cluster_of_seventeen", "h100", "cluster", 16, 1),
    Miss("cluster_of_seventeen", "b200", "cluster", 16, 1),
)


def checks(miss: Miss, over: int) -> tuple[Status, dict[str, Check]]:
    """Lower, place and judge one kernel: the verdict and every check of it."""
    card = device(miss.device)
    target = card.target("tilelang")
    assert target is not None
    (kernel,) = lower(FILE, miss.kernel, target, over=over)
    verdict = judge(kernel, place(kernel), card)
    return verdict.status, {str(c.name): c for c in (*verdict.memories, *verdict.limits)}


@pytest.mark.tilelang
@pytest.mark.parametrize("miss", MISSES, ids=lambda m: m.id)
def test_the_twin_fits_with_nothing_to_spare(miss: Miss) -> None:
    status, found = checks(miss, over=0)
    assert status is Status.FITS
    assert (found[miss.check].value, found[miss.check].limit) == (miss.limit, miss.limit)
    assert found[miss.check].margin == 0


@pytest.mark.tilelang
@pytest.mark.parametrize("miss", MISSES, ids=lambda m: m.id)
def test_one_unit_more_does_not_fit_and_only_that_limit_says_so(miss: Miss) -> None:
    status, found = checks(miss, over=1)
    assert status is Status.DOES_NOT_FIT
    assert found[miss.check].value == miss.limit + miss.unit
    assert found[miss.check].margin == -miss.unit
    assert [n for n, c in found.items() if c.status is not Status.FITS] == [miss.check]


@pytest.mark.tilelang
def test_two_blocks_are_a_cluster_too_many_before_sm_90() -> None:
    miss = Miss("cluster_before_hopper", "a100", "cluster", 1, 1)
    # a cluster of one block is none: nothing to check
    status, found = checks(miss, over=0)
    assert (status, "cluster" in found) == (Status.FITS, False)
    status, found = checks(miss, over=1)
    assert (status, found["cluster"].value) == (Status.DOES_NOT_FIT, 2)


@pytest.mark.tilelang
def test_one_block_more_than_a_multiple_of_the_cluster_does_not_fit() -> None:
    miss = Miss("one_block_outside_a_cluster", "h100", "cluster.x", 32, 1)
    assert checks(miss, over=0)[0] is Status.FITS
    status, found = checks(miss, over=1)
    assert (status, found["cluster.x"].value) == (Status.DOES_NOT_FIT, 32 + 1)


@pytest.mark.tilelang
def test_512_columns_of_tmem_fit_and_32_more_are_refused_by_the_compiler() -> None:
    miss = Miss("tmem_columns", "b200", "tensor", 512, 32)
    status, found = checks(miss, over=0)
    assert status is Status.FITS
    # a column is 128 lanes of 4 bytes
    assert found["tensor"].value == 512 * 128 * 4
    assert found["tensor"].margin == 0
    with pytest.raises(RefusedError, match=f"{512 + 32} TMEM columns"):
        checks(miss, over=1)


@pytest.mark.tilelang
def test_the_largest_grid_fits_and_one_block_more_in_x_is_refused_by_the_compiler() -> None:
    miss = Miss("one_column_of_blocks", "h100", "grid.x", 2**31 - 1, 1)
    status, found = checks(miss, over=0)
    assert (status, found["grid.x"].margin) == (Status.FITS, 0)
    with pytest.raises(RefusedError, match="int32"):
        checks(miss, over=1)


@pytest.mark.tilelang
def test_at_least_twelve_kernels_and_every_one_is_tried() -> None:
    tried = {m.kernel for m in MISSES} | {
        *("cluster_before_hopper", "one_block_outside_a_cluster"),
        *("tmem_columns", "one_column_of_blocks"),
    }
    offered = {k.name for k in source(FILE).kernels() if not k.name.startswith("_")}
    assert offered == tried
    assert len(tried) >= 12
