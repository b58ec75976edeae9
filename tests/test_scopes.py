"""The scope table: facts of four dialects, what a string means, and ``tilefit scopes``."""

from __future__ import annotations

import json

import pytest

from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.scopes import DIALECTS, SCOPES, ScopeRow, memory_of, scope_rows
from tilefit.cli import main

# function: (scope, memory), from each project's allocate.py; "?bool" is the row for dtype bool.
TILELANG = {
    "alloc_shared": ("shared.dyn", "shared"),
    "alloc_shared?bool": ("shared", "shared"),
    "alloc_fragment": ("local.fragment", "registers"),
    "alloc_local": ("local", "registers"),
    "alloc_var": ("local.var", "registers"),
    "alloc_global": ("global", "global"),
    "alloc_barrier": ("shared.barrier", "shared"),
    "alloc_cluster_barrier": ("shared.cluster_barrier", "shared"),
    "alloc_tmem": ("shared.tmem", "tensor"),
    "alloc_reducer": ("local.reducer", "undecided"),
    "alloc_descriptor": ("local.descriptor.wgmma", "registers"),
    "alloc_wgmma_desc": ("local.descriptor.wgmma", "registers"),
    "alloc_tcgen05_smem_desc": ("local.descriptor.tcgen05_smem", "registers"),
    "alloc_tcgen05_instr_desc": ("local.descriptor.tcgen05_instr", "registers"),
    "alloc_buffer": ("global", "global"),
}
ASCEND = {
    "alloc_shared": ("shared.dyn", "ub"),
    "alloc_l1": ("shared.l1", "l1"),
    "alloc_l0a": ("shared.l0a", "l0a"),
    "alloc_l0b": ("shared.l0b", "l0b"),
    "alloc_l0c": ("shared.l0c", "l0c"),
    "alloc_l0a_sf": ("shared.l0a.sf", "none"),
    "alloc_l0b_sf": ("shared.l0b.sf", "none"),
    "alloc_fragment": ("local.fragment", "registers"),
    "alloc_local": ("local", "registers"),
    "alloc_var": ("local.var", "registers"),
    "alloc_global": ("global", "global"),
    "alloc_barrier": ("shared.barrier", "none"),
    "alloc_reducer": ("local.reducer", "undecided"),
    "alloc_buffer": ("global", "global"),
}
ADAPTER_011 = {
    "alloc_ub": ("shared", "ub"),
    "alloc_L1": ("shared.dyn", "l1"),
    "alloc_L0A": ("wmma.matrix_a", "l0a"),
    "alloc_L0B": ("wmma.matrix_b", "l0b"),
    "alloc_L0C": ("wmma.accumulator", "l0c"),
    "alloc_shared": ("shared.dyn", "undecided"),
    "alloc_shared?bool": ("shared", "ub"),
    "alloc_fragment": ("local.fragment", "undecided"),
    "alloc_local": ("local", "registers"),
    "alloc_var": ("local.var", "registers"),
}
ADAPTER_012 = {
    "alloc_ub": ("shared.ub", "ub"),
    "alloc_L1": ("shared.l1", "l1"),
    "alloc_L0A": ("wmma.matrix_a", "l0a"),
    "alloc_L0B": ("wmma.matrix_b", "l0b"),
    "alloc_L0C": ("wmma.accumulator", "l0c"),
    "alloc_shared": ("shared", "undecided"),
    "alloc_shared?bool": ("shared.ub", "ub"),
    "alloc_fragment": ("local.fragment", "undecided"),
    "alloc_var": ("local.var", "registers"),
}
FACTS = dict(zip(DIALECTS, (TILELANG, ASCEND, ADAPTER_011, ADAPTER_012), strict=True))
CASES = [
    (dialect, function, scope, memory)
    for dialect, facts in FACTS.items()
    for function, (scope, memory) in facts.items()
]


def row_of(dialect: str, function: str) -> ScopeRow:
    name, _, dtype = function.partition("?")
    when = f"dtype {dtype}" if dtype else ""
    (row,) = (r for r in scope_rows(dialect) if r.function == name and r.when == when)
    return row


def vendor_of(dialect: str) -> str:
    return "nvidia" if dialect == "tilelang" else "ascend"


@pytest.mark.parametrize(("dialect", "function", "scope", "memory"), CASES)
def test_a_function_gives_this_scope_in_this_memory(
    dialect: str, function: str, scope: str, memory: str
) -> None:
    row = row_of(dialect, function)
    assert (row.scope, row.memory) == (scope, memory)


@pytest.mark.parametrize(
    ("dialect", "absent"),
    [
        ("tilelang.ascend", ["alloc_ub", "alloc_tmem", "alloc_cluster_barrier", "alloc_L1"]),
        ("tilelang-ascend@0.1.2", ["alloc_local", "alloc_l1", "alloc_barrier", "alloc_tmem"]),
        ("tilelang", ["alloc_ub", "alloc_l1", "alloc_l0c"]),
    ],
)
def test_a_dialect_lacks_these(dialect: str, absent: list[str]) -> None:
    assert not {row.function for row in scope_rows(dialect)} & set(absent)


def test_bool_stays_in_ub_in_the_ascend_dialect() -> None:
    """There alloc_shared has one row: only tilelang.language moves bool to a static array."""
    assert [r.when for r in scope_rows("tilelang.ascend") if r.function == "alloc_shared"] == [""]


def test_a_function_has_one_plain_row_and_it_comes_first() -> None:
    seen: set[tuple[str, str]] = set()
    for row in SCOPES:
        key = (row.dialect, row.function)
        assert (row.when == "") == (key not in seen), row
        seen.add(key)


def test_rows_come_dialect_by_dialect() -> None:
    assert scope_rows() == SCOPES
    assert tuple(row for d in DIALECTS for row in scope_rows(d)) == SCOPES


@pytest.mark.parametrize(
    ("dialect", "function", "align_bytes", "owner"),
    [
        ("tilelang", "alloc_shared", 16, Owner.BLOCK),
        ("tilelang", "alloc_fragment", None, Owner.THREAD),
        ("tilelang", "alloc_tmem", None, Owner.BLOCK),
        ("tilelang", "alloc_global", None, Owner.DEVICE),
        ("tilelang.ascend", "alloc_shared", 32, Owner.AIV),
        ("tilelang.ascend", "alloc_l1", 512, Owner.AIC),
        ("tilelang.ascend", "alloc_l0a", 512, Owner.AIC),
        ("tilelang.ascend", "alloc_l0b", 512, Owner.AIC),
        ("tilelang.ascend", "alloc_l0c", 1024, Owner.AIC),
        ("tilelang.ascend", "simd.alloc_var", None, Owner.AIV),
        ("tilelang-ascend@0.1.1", "alloc_L1", 32, Owner.AIC),
        ("tilelang-ascend@0.1.2", "alloc_ub", 32, Owner.AIV),
    ],
)
def test_alignment_and_owner(
    dialect: str, function: str, align_bytes: int | None, owner: Owner
) -> None:
    row = row_of(dialect, function)
    assert (row.align_bytes, row.owner) == (align_bytes, owner)


@pytest.mark.parametrize(
    ("dialect", "vendor", "scope", "memory"),
    [
        ("tilelang", "nvidia", "shared.dyn", Memory.SHARED),
        ("tilelang", "amd", "shared.dyn", Memory.LDS),
        ("tilelang", "apple", "shared.dyn", Memory.THREADGROUP),
        ("tilelang", "ascend", "shared.dyn", Memory.UB),
        ("tilelang.ascend", "ascend", "shared.dyn", Memory.UB),
        ("tilelang-ascend@0.1.1", "ascend", "shared.dyn", Memory.L1),
        ("tilelang-ascend@0.1.2", "ascend", "shared.dyn", Memory.L1),
        ("tilelang", "nvidia", "shared", Memory.SHARED),
        ("tilelang", "amd", "shared", Memory.LDS),
        ("tilelang.ascend", "ascend", "shared", Memory.UB),
        ("tilelang-ascend@0.1.1", "ascend", "shared", Memory.UB),
        ("tilelang-ascend@0.1.2", "ascend", "shared", Memory.UNDECIDED),
        ("tilelang", "nvidia", "local.fragment", Memory.REGISTERS),
        ("tilelang-ascend@0.1.1", "ascend", "local.fragment", Memory.UNDECIDED),
        # what only a compiler writes
        ("tilelang", "nvidia", "", Memory.GLOBAL),
        ("tilelang.ascend", "ascend", "shared.l1.dyn", Memory.L1),
        ("tilelang.ascend", "ascend", "shared.l0c.dyn", Memory.L0C),
        ("tilelang.ascend", "ascend", "shared.bt", Memory.BIAS),
        ("tilelang.ascend", "ascend", "shared.fp", Memory.FIXPIPE),
        ("tilelang", "apple", "metal.simdgroup", Memory.REGISTERS),
    ],
)
def test_the_same_string_means_another_memory_elsewhere(
    dialect: str, vendor: str, scope: str, memory: Memory
) -> None:
    assert memory_of(dialect, vendor, scope) is memory


@pytest.mark.parametrize("row", SCOPES, ids=lambda row: f"{row.dialect}:{row.function}{row.when}")
def test_a_row_and_its_scope_string_agree(row: ScopeRow) -> None:
    """Except where the row leaves open what the compiler's passes then write down."""
    meaning = memory_of(row.dialect, vendor_of(row.dialect), row.scope)
    assert row.memory in (meaning, Memory.UNDECIDED)


@pytest.mark.parametrize(
    ("dialect", "vendor", "scope", "message"),
    [
        ("tilelang", "amd", "shared.tmem", "unknown tilelang scope on amd 'shared.tmem'"),
        ("tilelang", "nvidia", "shared.l1", "unknown tilelang scope on nvidia 'shared.l1'"),
        ("tilelang", "nvidia", "shared.dny", "did you mean shared.dyn"),
        ("tilelang-ascend@0.1.1", "ascend", "shared.ub", "unknown tilelang-ascend@0.1.1 scope"),
        ("tilelang", "tpu", "shared", "no target of vendor 'tpu', only nvidia, amd, apple, ascend"),
        ("tilelang.ascend", "nvidia", "shared", "no target of vendor 'nvidia', only ascend"),
        ("tilelangs", "nvidia", "shared", "unknown dialect 'tilelangs'; did you mean tilelang"),
    ],
)
def test_a_string_without_a_meaning_is_refused(
    dialect: str, vendor: str, scope: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        memory_of(dialect, vendor, scope)


def test_an_unknown_dialect_has_near_misses() -> None:
    with pytest.raises(UnknownNameError) as refused:
        scope_rows("tilelang-ascend")
    assert {"tilelang-ascend@0.1.1", "tilelang-ascend@0.1.2"} <= set(refused.value.near)


def test_the_text_has_every_row_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scopes"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= 80
    words = out.split()
    for row in SCOPES:
        assert words.count(row.function) >= 1, row
        assert words.count(row.scope) >= 1, row
    plain = " ".join(words)
    assert "alloc_tmem shared.tmem tensor block - (" in plain
    assert "alloc_l0c shared.l0c l0c AIC 1024 (" in plain
    notes = {f"if {r.when}: {r.restrictions}".removesuffix(": ") for r in SCOPES if r.when}
    notes |= {row.restrictions for row in SCOPES if row.restrictions and not row.when}
    assert [note for note in notes if note not in plain] == []


def test_a_row_points_to_its_own_note(capsys: pytest.CaptureFixture[str]) -> None:
    """Equal notes share a number; numbers start again with each dialect."""
    main(["scopes", "--dialect", "tilelang-ascend@0.1.2"])
    lines = capsys.readouterr().out.splitlines()
    (fragment,) = (line for line in lines if line.startswith("alloc_fragment"))
    number = fragment.split()[-1]
    (note,) = (line for line in lines if line.lstrip().startswith(number))
    assert row_of("tilelang-ascend@0.1.2", "alloc_fragment").restrictions in note
    (plain,) = (line for line in lines if line.startswith("alloc_ub"))
    assert plain.split()[-1] == "32"


def test_a_dialect_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scopes", "--dialect", "tilelang-ascend@0.1.1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("tilelang-ascend@0.1.1: ")
    assert "alloc_l1" not in out
    assert out.count("alloc_L0A") == 1


def test_json_has_the_rows_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scopes", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema_version"], answer["evidence"]) == (1, "declared")
    assert len(answer["rows"]) == len(SCOPES)
    (tmem,) = (row for row in answer["rows"] if row["function"] == "alloc_tmem")
    restrictions = tmem.pop("restrictions")
    assert "power of two" in restrictions
    assert tmem == {
        "dialect": "tilelang",
        "function": "alloc_tmem",
        "when": "",
        "scope": "shared.tmem",
        "memory": "tensor",
        "owner": "block",
        "align_bytes": None,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dialect", "tilelangs"], "unknown dialect 'tilelangs'; did you mean tilelang"),
        (["--dialect", "cuda"], "unknown dialect 'cuda'; known: tilelang, "),
        (["--dialect", ""], "unknown dialect ''; known: tilelang, "),
        (["--dialect"], "argument --dialect: expected one argument"),
        (["--dilect", "tilelang"], "unrecognized arguments: --dilect tilelang"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scopes", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"tilefit: {message}")
    assert err.count("\n") == 1
