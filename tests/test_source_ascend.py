"""What a kernel declares for Ascend: memories, cores, conditions, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.opened import ask
from tests.test_source_frontend import load, notes, read, tile_of
from tilefit._errors import RefusedError
from tilefit._frontends.source.frontend import SourceFrontend
from tilefit._kernel.kernel import Kernel
from tilefit._kernel.memory import Evidence, Memory, Owner
from tilefit._placement.open_buffers import Outlook, outlook, readings, words

OURS = "import tilelang\nimport tilelang.ascend.language as T\n"
# the chips that TileLang cannot lower for, as their device files name them
OLDER = ("ascend-910b", "ascend-910_93", "ascend-310p", "ascend-910a")


def totals(kernel: Kernel) -> dict[Memory, int | None]:
    return {arena.memory: arena.total_bytes for arena in kernel.memories}


def ours(tmp_path: Path, body: str, before: str = "") -> Kernel:
    """Read a kernel of TileLang's own Ascend dialect with this body."""
    lines = "\n".join(f"            {line}" for line in body.splitlines())
    text = f"""
{before}
def kernel():
    @T.prim_func
    def main(A: T.Tensor((1024, 1024), "float16"), B: T.Tensor((1024, 1024), "float16")):
        with T.Kernel(8) as core:
{lines}
    return main
"""
    (found,) = load(tmp_path, text, head=OURS).read(ask("kernel", {}, "ascend"))
    return found


def adapter(tmp_path: Path, body: str, target: str = "ascend-910b") -> Kernel:
    """Read a kernel written for the adapter with this body."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    text = f"""
@T.prim_func
def kernel(A: T.Tensor((1024, 1024), "float16"), B: T.Tensor((1024, 1024), "float16")):
    with T.Kernel(8, is_npu=True) as (cid, vid):
{lines}
"""
    return read(tmp_path, text, target=target)


# ---- memories --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["ascend", *OLDER])
def test_each_memory_is_summed_on_every_ascend(root: Path, target: str) -> None:
    source = SourceFrontend().load(root / "examples" / "alloc_scopes" / "ascend.py")
    (kernel,) = source.read(ask("ascend_scope_showcase", {}, target))
    # a loop of two stages fills both tiles in L1 from global memory; the L0 tiles come from L1
    assert totals(kernel) == {
        Memory.UB: 128 // 2 * 128 * 4,
        Memory.L1: 2 * 128 * 64 * 2 + 2 * 64 * 128 * 2,
        Memory.L0A: 128 * 64 * 2,
        Memory.L0B: 64 * 128 * 2,
        Memory.L0C: 128 * 128 * 4,
    }
    assert kernel.complete
    assert {arena.evidence for arena in kernel.memories} == {Evidence.DECLARED}
    assert {arena.memory: arena.owner for arena in kernel.memories} == {
        Memory.UB: Owner.AIV,
        **dict.fromkeys((Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C), Owner.AIC),
    }
    assert (kernel.cores, kernel.conditions) == ("mixed", ("simt",))
    # a grid is one of cores: there are no threads to count
    assert (kernel.launch.threads_declared, kernel.launch.threads) == (None, None)
    assert kernel.launch.grid == (32, 1, 1)


def test_a_memory_with_an_open_size_has_no_total_and_names_the_size(tmp_path: Path) -> None:
    text = """
    def kernel(n):
        @T.prim_func
        def main(A: T.Tensor((1024, 1024), "float16")):
            with T.Kernel(8):
                x = T.alloc_shared((n, 8), "float16")
                y = T.alloc_l1((16, 16), "float16")
        return main
    """
    source = load(tmp_path, text, head=OURS)
    (kernel,) = source.read(ask("kernel", {}, "ascend"))
    assert totals(kernel) == {Memory.UB: None, Memory.L1: 16 * 16 * 2}
    assert "x: not known without n: add --set n=VALUE" in notes(kernel)
    (kernel,) = source.read(ask("kernel", {"n": 24}, "ascend"))
    assert totals(kernel) == {Memory.UB: 24 * 8 * 2, Memory.L1: 16 * 16 * 2}


def test_where_an_allocation_may_be_missing_no_total_is_known(tmp_path: Path) -> None:
    body = 'x = T.alloc_shared((8, 8), "float16")\nelsewhere(x)'
    kernel = ours(tmp_path, body, before="from other import elsewhere")
    assert totals(kernel) == {Memory.UB: None}
    assert "what elsewhere() allocates is not known" in notes(kernel)


@pytest.mark.parametrize(
    ("body", "cores", "conditions"),
    [
        ('x = T.alloc_shared((8, 8), "float16")', "vector", ()),
        ('x = T.alloc_l1((16, 16), "float16")', "cube", ()),
        (
            'x = T.alloc_l1((16, 16), "float16")\ny = T.alloc_shared((8, 8), "float16")',
            "mixed",
            (),
        ),
        (
            'x = T.alloc_shared((8, 8), "float16")\nwith T.SimtVF(threads=64):\n    x[0, 0] = 1',
            "vector",
            ("simt",),
        ),
        (
            'x = T.alloc_shared((8, 8), "float16")\nwith T.SimdVF():\n    x[0, 0] = 1',
            "vector",
            (),
        ),
    ],
    ids=["UB", "L1", "both", "a SIMT region", "a SIMD region"],
)
def test_what_is_used_says_the_cores_and_the_limit(
    tmp_path: Path, body: str, cores: str, conditions: tuple[str, ...]
) -> None:
    kernel = ours(tmp_path, body)
    assert (kernel.cores, kernel.conditions) == (cores, conditions)


def test_a_region_that_may_not_be_there_leaves_the_limit_open(tmp_path: Path) -> None:
    body = (
        'x = T.alloc_shared((8, 8), "float16")\n'
        "if flag:\n    with T.SimtVF(threads=64):\n        x[0, 0] = 1"
    )
    kernel = ours(tmp_path, body, before="from other import flag")
    assert kernel.cores is None
    assert totals(kernel) == {Memory.UB: None}
    assert "--set flag=VALUE" in notes(kernel)


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("file", "name"), [("mixed", "product_relu"), ("gemm", "plain"), ("vector", "add")]
)
def test_cores_and_conditions_are_those_that_the_compiler_comes_to(
    root: Path, file: str, name: str
) -> None:
    from tests.lowering import lower

    path = root / "tests" / "kernels" / "ascend" / f"{file}.py"
    (lowered,) = lower(path, name, "ascend")
    (declared,) = SourceFrontend().load(path).read(ask(name, {}, "ascend"))
    assert (declared.cores, declared.conditions) == (lowered.cores, lowered.conditions)


# ---- the adapter -----------------------------------------------------------------------------

# every allocation of the adapter, and what both of its spellings agree on
EVERY = """
ub = T.alloc_ub((64, 128), "float32")
l1 = T.alloc_L1((128, 64), "float16")
l0a = T.alloc_L0A((128, 64), "float16")
l0b = T.alloc_L0B((64, 128), "float16")
l0c = T.alloc_L0C((128, 128), "float32")
open_tile = T.alloc_shared((32, 64), "float16")
flags = T.alloc_shared((64,), "bool")
""".strip()
DECIDED = {
    "ub": (Memory.UB, Owner.AIV, 64 * 128 * 4),
    "l1": (Memory.L1, Owner.AIC, 128 * 64 * 2),
    "l0a": (Memory.L0A, Owner.AIC, 128 * 64 * 2),
    "l0b": (Memory.L0B, Owner.AIC, 64 * 128 * 2),
    "l0c": (Memory.L0C, Owner.AIC, 128 * 128 * 4),
    "open_tile": (Memory.UNDECIDED, Owner.CORE, 32 * 64 * 2),
    "flags": (Memory.UB, Owner.AIV, 64),
}


@pytest.mark.parametrize(
    ("more", "version", "scopes"),
    [
        # alloc_local went away after the tags of 0.1.1
        (
            'v = T.alloc_local((4,), "float16")',
            "tilelang-ascend@0.1.1",
            {"ub": "shared", "l1": "shared.dyn", "open_tile": "shared.dyn", "flags": "shared"},
        ),
        (
            'v = T.alloc_shared((4,), "float16", scope="shared.ub")',
            "tilelang-ascend@0.1.2",
            {"ub": "shared.ub", "l1": "shared.l1", "open_tile": "shared", "flags": "shared.ub"},
        ),
        (
            "v = 1",
            "tilelang-ascend@0.1.2",
            {"ub": "shared.ub", "l1": "shared.l1", "open_tile": "shared", "flags": "shared.ub"},
        ),
    ],
    ids=["0.1.1", "0.1.2", "either"],
)
@pytest.mark.parametrize("target", ["ascend", *OLDER])
def test_both_spellings_of_the_adapter_are_read(
    tmp_path: Path, target: str, more: str, version: str, scopes: dict[str, str]
) -> None:
    kernel = adapter(tmp_path, f"{EVERY}\n{more}", target)
    assert kernel.toolchain_version == version
    found = {b.name: (b.memory, b.owner, b.bytes) for b in kernel.buffers if b.name != "v"}
    assert found == DECIDED
    assert {b.name: b.scope for b in kernel.buffers if b.name in scopes} == scopes


def test_what_the_scope_shared_means_hangs_on_the_spelling(tmp_path: Path) -> None:
    """UB in 0.1.1; in 0.1.2, and where nothing tells the two apart, UB or L1."""
    tile = 'x = T.alloc_shared((8, 8), "float16", scope="shared")'
    old = adapter(tmp_path, f'{tile}\nv = T.alloc_local((4,), "float16")')
    assert tile_of(old, "x").memory is Memory.UB
    assert totals(old) == {Memory.UB: 8 * 8 * 2}
    new = adapter(tmp_path, f'{tile}\ny = T.alloc_shared((4,), "float16", scope="shared.ub")')
    assert tile_of(new, "x").memory is Memory.UNDECIDED
    assert tile_of(new, "y").memory is Memory.UB
    either = adapter(tmp_path, tile)
    assert tile_of(either, "x").memory is Memory.UNDECIDED
    # and so does shared.dyn: decided by use in 0.1.1, L1 in 0.1.2
    either = adapter(tmp_path, tile.replace('"shared"', '"shared.dyn"'))
    assert tile_of(either, "x").memory is Memory.UNDECIDED


def test_an_open_buffer_leaves_the_totals_of_both_memories_open(tmp_path: Path) -> None:
    kernel = adapter(tmp_path, EVERY)
    assert totals(kernel) == {
        Memory.UB: None,
        Memory.L1: None,
        Memory.L0A: 128 * 64 * 2,
        Memory.L0B: 64 * 128 * 2,
        Memory.L0C: 128 * 128 * 4,
    }
    assert "open_tile: in UB or in L1, which the compiler decides by use" in notes(kernel)
    as_ub, as_l1 = readings(kernel)
    flags = 64
    assert totals(as_ub.kernel)[Memory.UB] == 64 * 128 * 4 + 32 * 64 * 2 + flags
    assert totals(as_ub.kernel)[Memory.L1] == 128 * 64 * 2
    assert totals(as_l1.kernel)[Memory.UB] == 64 * 128 * 4 + flags
    assert totals(as_l1.kernel)[Memory.L1] == 128 * 64 * 2 + 32 * 64 * 2


@pytest.mark.parametrize(
    ("rows", "expected", "as_ub", "as_l1"),
    [
        (64, Outlook.FITS, "fits", "fits"),
        (256, Outlook.DEPENDS, "does not fit", "fits"),
        (1024, Outlook.NEVER, "does not fit", "does not fit"),
    ],
)
def test_a_verdict_can_be_told_from_all_readings(
    tmp_path: Path, rows: int, expected: Outlook, as_ub: str, as_l1: str
) -> None:
    body = f"""
x = T.alloc_shared(({rows}, 256), "float16")
for k in T.Pipelined(4, num_stages=2):
    T.copy(A[k, 0], x)
""".strip()
    kernel = adapter(tmp_path, body)
    limits = {Memory.UB: 196352, Memory.L1: 524032}  # of Ascend 910B
    assert tile_of(kernel, "x").copies == 2
    assert outlook(kernel, limits) is expected
    needed = f"{2 * rows * 256 * 2:,}"  # two copies of float16
    assert words(kernel, limits).endswith(
        f"as UB {as_ub} (UB {needed} of 196,352 B); as L1 {as_l1} (L1 {needed} of 524,032 B)"
    )


def test_a_fragment_is_where_its_place_in_the_product_puts_it(tmp_path: Path) -> None:
    body = """
a = T.alloc_fragment((128, 64), "float16")
b = T.alloc_fragment((64, 128), "float16")
c = T.alloc_fragment((128, 128), "float32")
alone = T.alloc_fragment((16, 16), "float32")
twice = T.alloc_fragment((64, 64), "float16")
l1 = T.alloc_L1((64, 64), "float16")
T.gemm(a, b, c)
T.gemm(twice, l1, c)
T.gemm(l1, twice, C=c)
""".strip()
    kernel = adapter(tmp_path, body)
    assert {b.name: b.memory for b in kernel.buffers} == {
        "a": Memory.L0A,
        "b": Memory.L0B,
        "c": Memory.L0C,
        "alone": Memory.L0C,  # in no product
        "twice": Memory.UNDECIDED,  # A of one product, B of another
        "l1": Memory.L1,
    }
    # "twice" may be in any of them
    assert totals(kernel) == {
        Memory.L1: 64 * 64 * 2,
        **dict.fromkeys((Memory.L0A, Memory.L0B, Memory.L0C)),
    }
    assert "twice: in L0A, L0B or L0C" in notes(kernel)
    once = adapter(tmp_path, body.replace("T.gemm(l1, twice, C=c)", ""))
    assert totals(once) == {
        Memory.L1: 64 * 64 * 2,
        Memory.L0A: 128 * 64 * 2 + 64 * 64 * 2,
        Memory.L0B: 64 * 128 * 2,
        Memory.L0C: 128 * 128 * 4 + 16 * 16 * 4,
    }


def test_a_common_kernel_on_a_chip_that_only_the_adapter_serves(root: Path) -> None:
    """The tiles of the bundled GEMM are in UB on Ascend 950; on 910B T.gemm takes them from L1."""
    source = SourceFrontend().load(root / "examples" / "gemm.py")
    (newest,) = source.read(ask("matmul", {}, "ascend"))
    assert totals(newest) == {Memory.UB: 3 * (128 * 64 + 64 * 128) * 2}
    (older,) = source.read(ask("matmul", {}, "ascend-910b"))
    assert {b.name: b.memory for b in older.buffers} == {
        "A_s": Memory.L1,
        "B_s": Memory.L1,
        "C_l": Memory.L0C,
    }
    assert readings(older) == ()
    assert totals(older) == {
        Memory.L1: 3 * (128 * 64 + 64 * 128) * 2,
        Memory.L0C: 128 * 128 * 4,
    }


def test_a_kernel_of_the_adapter_is_refused_for_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="tilelang-ascend"):
        adapter(tmp_path, EVERY, "sm_90a")
