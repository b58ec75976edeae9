"""Blocks of a core, from what is known without an assembler: never above the truth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.values import KIB, kernel, made, tmem
from tilefit._devices.names import device
from tilefit._kernel.kernel import Role
from tilefit._planning.residency import residency

PRODUCER = Role(name="producer", threads=128, registers=24)
CONSUMER = Role(name="consumer", threads=128, registers=240)


def test_what_the_roles_hold_was_there_at_launch() -> None:
    """128 x 24 + 128 x 240 of 65,536 registers allow one block; shared memory alone six."""
    one = replace(kernel(dynamic_bytes=32 * KIB, threads=256), roles=(PRODUCER, CONSUMER))
    held = residency(one, device("h100"))
    assert held is not None
    assert 65536 // (128 * 24 + 128 * 240) == 1
    assert 228 * KIB // (32 * KIB + KIB) == held.by_shared == 6
    assert (held.blocks, held.exact, held.limiters) == (1, False, ("registers",))
    assert held.by_registers is None  # a bound, and no count


def test_a_role_that_sets_nothing_says_nothing() -> None:
    unset = replace(CONSUMER, registers=None)
    one = replace(kernel(dynamic_bytes=32 * KIB, threads=256), roles=(unset, unset))
    held = residency(one, device("h100"))
    assert held is not None
    assert (held.blocks, held.limiters) == (6, ("shared",))


@pytest.mark.parametrize(("columns", "blocks"), [(512, 1), (256, 2), (128, 4), (64, 6)])
def test_blocks_share_the_columns_of_tensor_memory(columns: int, blocks: int) -> None:
    """512 columns a core; 32 KiB of shared memory a block allow six."""
    one = kernel(tmem("C_t", columns), dynamic_bytes=32 * KIB)
    held = residency(one, device("b200"))
    assert held is not None
    assert held.blocks == min(512 // columns, 6) == blocks
    assert held.limiters == (("tensor",) if blocks < 6 else ("shared",))


def test_what_ties_is_named() -> None:
    one = kernel(tmem("C_t", 256), dynamic_bytes=100 * KIB)
    held = residency(one, device("b200"))
    assert held is not None
    assert 228 // (100 + 1) == 2 == 512 // 256
    assert (held.blocks, set(held.limiters)) == (2, {"tensor", "shared"})


def test_counted_registers_count_whatever_the_roles_say() -> None:
    one = replace(kernel(dynamic_bytes=32 * KIB, threads=256), roles=(PRODUCER, CONSUMER))
    counted = replace(one, assembly=made(registers_per_thread=168))
    held = residency(counted, device("h100"))
    assert held is not None
    assert (held.blocks, held.exact, held.by_registers) == (1, True, 65536 // (168 * 256))
