"""NVIDIA's own calculator agrees on every row: recorded rows, and 100,000 asked here and now."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import occupancy_oracle as oracle
from tests.occupancy_oracle import Columns
from tilefit import InputError, occupancy, occupancy_arrays
from tilefit._occupancy.core import core_limits
from tilefit._occupancy.rule import LIMITERS, UNLIMITED

SAMPLE = Path(__file__).parent / "data" / "occupancy_oracle_sample.csv.gz"
NAMES = {
    "threads": "threads",
    "regs": "registers",
    "static_smem": "static",
    "dyn_smem": "dynamic",
    "carveout": "carveout",
    "optin": "optin",
    "max_dyn_attr": "max_dynamic",
    "barriers": "barriers",
    "status": "status",
    "active_blocks": "blocks",
    "limit_bits": "bits",
    "lim_warps": "by_warps",
    "lim_regs": "by_registers",
    "lim_smem": "by_shared",
    "lim_blocks": "by_slots",
    "lim_barriers": "by_barriers",
    "alloc_regs_per_block": "taken_registers",
    "alloc_smem_per_block": "taken_shared",
}
KIB = 1024
# compute capability -> KiB of shared memory of an SM and of a block, reserved bytes, granule
SHARED = {
    **dict.fromkeys((70, 72), (96, 96, 0, 256)),
    75: (64, 64, 0, 256),
    **dict.fromkeys((80, 87), (164, 163, 1024, 128)),
    **dict.fromkeys((86, 88, 89, 120, 121), (100, 99, 1024, 128)),
    **dict.fromkeys((90, 100, 103, 110), (228, 227, 1024, 128)),
}
MUTANTS: dict[str, dict[str, Any]] = {
    "registers are not rounded": {"register_granule": 1},
    "one pool of registers for the SM": {"subpartitions": 1},
    "shared memory is not rounded": {"shared_granule_bytes": 1},
    "nothing is reserved": {"shared_reserved_bytes": 0},
    "no limit of blocks": {"max_blocks": 10**6, "max_one_warp_blocks": 10**6},
    "nobody has to opt in": {"shared_default_bytes": 228 * KIB},
}


def sample() -> Columns:
    """The recorded rows as columns."""
    with gzip.open(SAMPLE, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {mine: np.array([int(row[theirs]) for row in rows]) for theirs, mine in NAMES.items()}
    columns["cc"] = np.array([int(row["cc"].replace(".", "")) for row in rows])
    return columns


def edges(count: int, seed: int = 1) -> Columns:
    """Inputs of all 14 compute capabilities: a third anywhere, the others on the edges.

    Threads lie around multiples of a warp, registers around multiples of 8 (256 a warp), bytes
    around each boundary where one block more or fewer fits, and around the limits of a block.
    """
    rng = np.random.default_rng(seed)

    def around(value: Any) -> Any:
        return value + rng.integers(-1, 2, count)

    cc = rng.choice(list(SHARED), count)
    core, block, reserved, granule = np.array([SHARED[c] for c in cc.tolist()]).T
    core, block = core * KIB, block * KIB
    anywhere = rng.integers(0, 3, (3, count)) == 0
    threads = np.where(
        anywhere[0], rng.integers(1, 1100, count), around(32 * rng.integers(0, 34, count))
    )
    registers = np.where(
        anywhere[1], rng.integers(0, 260, count), around(8 * rng.integers(0, 34, count))
    )
    static = np.where(rng.integers(0, 2, count) == 0, 0, rng.integers(0, 60 * KIB, count))
    share = core // rng.integers(1, 33, count) // granule * granule - reserved
    total = np.where(rng.integers(0, 4, count) == 0, np.where(cc % 2, block, 48 * KIB), share)
    dynamic = np.where(anywhere[2], rng.integers(0, core + 2 * KIB, count), around(total) - static)
    optin = rng.integers(0, 4, count) > 0
    asked = rng.choice([0, 16 * KIB, 48 * KIB, 64 * KIB], count)
    everything = (rng.integers(0, 3, count) > 0) | ~optin
    return {
        "cc": cc,
        "threads": np.maximum(threads, 1),
        "registers": np.maximum(registers, 0),
        "static": static,
        "dynamic": np.maximum(dynamic, 0),
        "carveout": np.where(rng.integers(0, 2, count) == 0, -1, rng.integers(-1, 101, count)),
        "optin": optin.astype(int),
        "max_dynamic": np.where(everything, np.maximum(block - static, 0), asked),
        "barriers": rng.choice([1, 1, 1, 0, 2, 3, 16, 70], count),
    }


def groups(rows: Columns) -> Iterator[tuple[int, bool, Columns]]:
    """Split rows by what `occupancy_arrays` takes one of: device and opt-in."""
    for cc in np.unique(rows["cc"]).tolist():
        for optin in (True, False):
            chosen = (rows["cc"] == cc) & (rows["optin"] == optin)
            if chosen.any():
                yield cc, optin, {name: column[chosen] for name, column in rows.items()}


def answers(rows: Columns) -> tuple[Any, Any, Columns]:
    """Our blocks and bits for rows, and the rows in the order of these."""
    parts = []
    for cc, optin, group in groups(rows):
        ours = occupancy_arrays(
            f"sm_{cc}",
            threads=group["threads"],
            registers=group["registers"],
            static_smem=group["static"],
            dynamic_smem=group["dynamic"],
            carveout=group["carveout"],
            barriers=group["barriers"],
            optin=optin,
            max_dynamic_smem=group["max_dynamic"] if optin else None,
        )
        parts.append((ours.blocks_per_core, ours.limiter_bits, group))
    blocks, bits, ordered = zip(*parts, strict=True)
    joined = {name: np.concatenate([part[name] for part in ordered]) for name in rows}
    return np.concatenate(blocks), np.concatenate(bits), joined


def honest_bits(rows: Columns) -> Any:
    """The header's bits, without those that it leaves behind.

    It sets the bits of the other limits before it looks at barriers, and does not take them back
    where barriers allow fewer blocks.
    """
    others = np.minimum.reduce(
        [rows["by_warps"], rows["by_registers"], rows["by_shared"], rows["by_slots"]]
    )
    return np.where(rows["by_barriers"] < others, 16, rows["bits"])


def valid(rows: Columns) -> Columns:
    return {name: column[rows["status"] == 0] for name, column in rows.items()}


@pytest.fixture(scope="module")
def recorded() -> Columns:
    return sample()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Columns:
    """100,000 inputs on the edges with the answers of NVIDIA's header, compiled here."""
    try:
        program = oracle.build(tmp_path_factory.mktemp("oracle"))
    except oracle.NoOracle as missing:
        pytest.skip(str(missing))
    inputs = edges(100_000)
    return inputs | oracle.ask(program, inputs)


def test_the_sample_is_whole(recorded):
    assert len(recorded["cc"]) == 24363
    assert set(recorded["cc"].tolist()) == set(SHARED)


def test_every_recorded_row_in_arrays(recorded):
    blocks, bits, rows = answers(valid(recorded))
    assert len(blocks) == 24363 - 23
    np.testing.assert_array_equal(blocks, rows["blocks"])
    np.testing.assert_array_equal(bits, honest_bits(rows))


def test_the_bits_that_the_header_leaves_behind_are_few(recorded):
    """Otherwise `honest_bits` would hide differences."""
    rows = valid(recorded)
    assert (honest_bits(rows) != rows["bits"]).sum() == 12
    assert (honest_bits(rows) & ~rows["bits"] == 0).all()


def test_every_recorded_row_one_by_one(recorded):
    """Also each limit and each allocation."""
    same_one_by_one(valid(recorded))


def test_a_carveout_that_the_header_refuses_is_refused(recorded):
    refused = recorded["carveout"][recorded["status"] != 0]
    assert set(refused.tolist()) == {-2, 101}
    for carveout in (-2, 101):
        with pytest.raises(InputError, match="carveout"):
            occupancy("h100", threads=32, carveout=carveout)
        with pytest.raises(InputError, match="carveout"):
            occupancy_arrays("h100", threads=[32, 64], carveout=[50, carveout])


def same_one_by_one(rows: Columns) -> None:
    wanted_bits = honest_bits(rows)
    listed = {name: column.tolist() for name, column in rows.items()}
    for i in range(len(rows["cc"])):
        row = {name: column[i] for name, column in listed.items()}
        ours = occupancy(
            f"sm_{row['cc']}",
            threads=row["threads"],
            registers=row["registers"],
            static_smem=row["static"],
            dynamic_smem=row["dynamic"],
            carveout=row["carveout"],
            barriers=row["barriers"],
            optin=bool(row["optin"]),
            max_dynamic_smem=row["max_dynamic"] if row["optin"] else None,
        )
        by = {name: UNLIMITED if b is None else b for name, b in ours.blocks_by}
        found = {
            "blocks": ours.blocks_per_core,
            "by_warps": by["warps"],
            "by_registers": by["registers"],
            "by_shared": by["shared"],
            "by_slots": by["blocks"],
            "by_barriers": by["barriers"],
            "taken_registers": ours.allocated_registers_per_block,
            "taken_shared": ours.allocated_shared_bytes_per_block,
        }
        assert found == {name: row[name] for name in found}, row
        bits = sum(1 << LIMITERS.index(name) for name in ours.limiters)
        assert bits == wanted_bits[i], row
        assert ours.fits is (row["blocks"] > 0), row


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_recorded_rows_catch_a_wrong_rule(mutant, recorded, monkeypatch):
    monkeypatch.setattr("tilefit._occupancy.arrays.core_limits", mutated(mutant))
    blocks, _, rows = answers(valid(recorded))
    assert (blocks != rows["blocks"]).sum() > 0


def mutated(mutant: str) -> Callable[..., Any]:
    return lambda *given: replace(core_limits(*given), **MUTANTS[mutant])


def test_the_recorded_rows_catch_threads_that_are_not_rounded_to_warps(recorded, monkeypatch):
    def whole_warps(limits: Any, threads: Any) -> Any:
        return np.maximum(threads // limits.warp_size, 1)

    monkeypatch.setattr("tilefit._occupancy.rule.warps_of", whole_warps)
    blocks, _, rows = answers(valid(recorded))
    assert (blocks != rows["blocks"]).sum() > 0


@pytest.mark.cuda
def test_100000_inputs_on_the_edges(asked):
    """Zero differences from the header that comes with the nvidia-cuda-runtime wheel."""
    assert len(asked["cc"]) == 100_000
    assert (asked["status"] == 0).all()
    blocks, bits, rows = answers(asked)
    np.testing.assert_array_equal(blocks, rows["blocks"])
    np.testing.assert_array_equal(bits, honest_bits(rows))


@pytest.mark.cuda
def test_the_edges_are_among_them(asked):
    rows = asked
    assert (rows["threads"] % 32 == 1).sum() > 10_000
    assert (rows["registers"] % 8 == 1).sum() > 10_000
    core, block, reserved, granule = np.array([SHARED[c] for c in rows["cc"].tolist()]).T
    taken = rows["static"] + rows["dynamic"] + reserved
    for k in (1, 2, 3, 5, 8, 16, 32):
        boundary = core * KIB // k // granule * granule
        for offset in (-1, 0, 1):
            assert (taken == boundary + offset).sum() > 100, (k, offset)
    assert (rows["static"] + rows["dynamic"] == block * KIB + 1).sum() > 100
    assert len(np.unique(rows["blocks"])) > 20


@pytest.mark.cuda
def test_some_of_them_one_by_one(asked):
    same_one_by_one({name: column[::20] for name, column in asked.items()})


@pytest.mark.cuda
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_edges_catch_a_wrong_rule(mutant, asked, monkeypatch):
    monkeypatch.setattr("tilefit._occupancy.arrays.core_limits", mutated(mutant))
    blocks, _, rows = answers(asked)
    assert (blocks != rows["blocks"]).sum() > 0
