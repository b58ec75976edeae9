"""Buffers in UB or L1: what holds however they are read, with the arithmetic written out."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tilefit._kernel.kernel import Buffer, Kernel, Launch, MemoryUse, StageRule
from tilefit._kernel.memory import Evidence, Memory, Owner
from tilefit._placement.open_buffers import Outlook, open_buffers, outlook, readings, words

# Ascend 910B: what a kernel may use of UB and of L1
LIMITS = {Memory.UB: 196352, Memory.L1: 524032}


def buffer(name: str, memory: Memory, size: int | None, scope: str = "shared") -> Buffer:
    return Buffer(
        name=name,
        scope=scope,
        memory=memory,
        owner=Owner.CORE,
        shape=(size if size is not None else "n",),
        dtype="uint8",
        bytes=size,
        evidence=Evidence.DECLARED,
    )


def kernel(*buffers: Buffer, memories: tuple[MemoryUse, ...] = ()) -> Kernel:
    return Kernel(
        name="k",
        function="k",
        toolchain="source",
        toolchain_version="tilelang-ascend@0.1.2",
        target="ascend-910b",
        params=(),
        launch=Launch(threads_declared=None, threads=None, grid=(1, 1, 1)),
        buffers=buffers,
        memories=memories,
        complete=False,
        stage_rule=StageRule.UNKNOWN,
    )


def undecided(*sizes: int | None) -> Kernel:
    return kernel(
        *(buffer(f"t{i}", Memory.UNDECIDED, size) for i, size in enumerate(sizes)),
    )


def totals(read: Kernel) -> dict[Memory, int | None]:
    return {a.memory: a.total_bytes for a in read.memories}


def test_a_kernel_without_open_buffers_has_no_readings() -> None:
    firm = kernel(buffer("u", Memory.UB, 64), buffer("r", Memory.UNDECIDED, 4, "local.reducer"))
    assert open_buffers(firm) == ()
    assert readings(firm) == ()


def test_each_reading_adds_the_open_buffers_to_its_memory() -> None:
    both = kernel(
        buffer("u", Memory.UB, 64 * 128 * 4, "shared.ub"),
        buffer("a", Memory.L1, 128 * 64 * 2, "shared.l1"),
        buffer("s", Memory.UNDECIDED, 128 * 256 * 2),
        buffer("c", Memory.L0C, 128 * 128 * 4, "wmma.accumulator"),
        memories=tuple(
            MemoryUse(memory=memory, owner=owner, dynamic_bytes=n, evidence=Evidence.DECLARED)
            for memory, owner, n in (
                (Memory.UB, Owner.AIV, None),
                (Memory.L1, Owner.AIC, None),
                (Memory.L0C, Owner.AIC, 128 * 128 * 4),
            )
        ),
    )
    as_ub, as_l1 = readings(both)
    assert (as_ub.memory, as_l1.memory) == (Memory.UB, Memory.L1)
    assert totals(as_ub.kernel) == {
        Memory.UB: 64 * 128 * 4 + 128 * 256 * 2,
        Memory.L1: 128 * 64 * 2,
        Memory.L0C: 128 * 128 * 4,
    }
    assert totals(as_l1.kernel) == {
        Memory.UB: 64 * 128 * 4,
        Memory.L1: 128 * 64 * 2 + 128 * 256 * 2,
        Memory.L0C: 128 * 128 * 4,
    }
    assert open_buffers(as_ub.kernel) == open_buffers(as_l1.kernel) == ()
    (tile,) = [b for b in as_l1.kernel.buffers if b.name == "s"]
    assert (tile.memory, tile.owner) == (Memory.L1, Owner.AIC)


def test_what_fits_in_either_fits_either_way() -> None:
    # 2 x 98,176 = 196,352, all of UB
    assert outlook(undecided(98176, 98176), LIMITS) is Outlook.FITS
    assert outlook(undecided(98176, 98176 + 1), LIMITS) is Outlook.DEPENDS


def test_what_fits_in_l1_only_depends() -> None:
    kernel_of_one = undecided(256 * 1024)
    assert outlook(kernel_of_one, LIMITS) is Outlook.DEPENDS
    assert words(kernel_of_one, LIMITS) == (
        "t0: in UB or in L1, the source does not say: "
        "as UB does not fit (UB 262,144 of 196,352 B); as L1 fits (L1 262,144 of 524,032 B)"
    )


def test_a_mixture_may_fit_where_neither_extreme_does() -> None:
    # 500,000 + 100,000 is more than L1 has and more than UB has; one in each fits
    mixed = undecided(500_000, 100_000)
    assert outlook(mixed, LIMITS) is Outlook.DEPENDS
    assert words(mixed, LIMITS).endswith("with some in each it can fit")


def test_what_no_mixture_holds_fits_no_way() -> None:
    # together no more than 196,352 + 524,032 = 720,384, but neither half of it goes into UB
    assert outlook(undecided(360_000, 360_000), LIMITS) is Outlook.NEVER
    assert outlook(undecided(600_000), LIMITS) is Outlook.NEVER
    assert words(undecided(600_000), LIMITS).endswith(
        "as UB does not fit (UB 600,000 of 196,352 B); as L1 does not fit (L1 600,000 of 524,032 B)"
    )


def test_what_is_decided_takes_its_room_first() -> None:
    full = kernel(buffer("u", Memory.UB, 196352, "shared.ub"), buffer("s", Memory.UNDECIDED, 8192))
    assert outlook(full, LIMITS) is Outlook.DEPENDS  # 8,192 B fit L1, not UB
    over = kernel(buffer("u", Memory.UB, 196353, "shared.ub"), buffer("s", Memory.UNDECIDED, 8192))
    assert outlook(over, LIMITS) is Outlook.NEVER


def test_an_open_size_is_unknown_and_a_missing_memory_offers_nothing() -> None:
    assert outlook(undecided(None, 64), LIMITS) is Outlook.UNKNOWN
    assert "as UB is not known (UB ? of 196,352 B)" in words(undecided(None, 64), LIMITS)
    assert outlook(undecided(64), {Memory.UB: 64}) is Outlook.DEPENDS
    assert outlook(undecided(65), {Memory.UB: 64}) is Outlook.NEVER


def test_a_huge_size_is_no_huge_computation() -> None:
    assert outlook(undecided(*[2**60] * 50), LIMITS) is Outlook.NEVER


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    firm=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    limits=st.tuples(st.integers(0, 100), st.integers(0, 100)),
)
def test_the_outlook_is_that_of_trying_every_mixture(
    sizes: list[int], firm: tuple[int, int], limits: tuple[int, int]
) -> None:
    fits = []
    for places in product((0, 1), repeat=len(sizes)):
        used = list(firm)
        for size, place in zip(sizes, places, strict=True):
            used[place] += size
        fits.append(used[0] <= limits[0] and used[1] <= limits[1])
    wanted = Outlook.FITS if all(fits) else Outlook.DEPENDS if any(fits) else Outlook.NEVER
    tried = kernel(
        buffer("u", Memory.UB, firm[0], "shared.ub"),
        buffer("l", Memory.L1, firm[1], "shared.l1"),
        *(buffer(f"t{i}", Memory.UNDECIDED, size) for i, size in enumerate(sizes)),
    )
    assert outlook(tried, {Memory.UB: limits[0], Memory.L1: limits[1]}) is wanted
