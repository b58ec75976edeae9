"""The scope table against the installed TileLang, so that neither can drift."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from tilefit._kernel.memory import Memory
from tilefit._kernel.scopes import ScopeRow, memory_of, scope_rows

pytestmark = pytest.mark.tilelang

MODULES = {"tilelang": "tilelang.language", "tilelang.ascend": "tilelang.ascend.language"}
ROWS = [row for dialect in MODULES for row in scope_rows(dialect)]

# How to call each function; what takes a shape and a dtype is called with these.
SHAPE, DTYPE = (16, 64), "float16"
CALLS: dict[str, Callable[[Any], Any]] = {
    "alloc_shared if dtype bool": lambda T: T.alloc_shared(SHAPE, "bool"),
    "alloc_var": lambda T: T.alloc_var("float32"),
    "alloc_barrier": lambda T: T.alloc_barrier(128),
    "alloc_cluster_barrier": lambda T: T.alloc_cluster_barrier([1, 2]),
    "alloc_reducer if replication= is given": lambda T: T.alloc_reducer(
        SHAPE, "float32", replication="all"
    ),
    "alloc_descriptor": lambda T: T.alloc_descriptor(),
    "alloc_wgmma_desc": lambda T: T.alloc_wgmma_desc(),
    "alloc_tcgen05_smem_desc": lambda T: T.alloc_tcgen05_smem_desc(),
    "alloc_tcgen05_instr_desc": lambda T: T.alloc_tcgen05_instr_desc(),
    "alloc_tcgen05_instruction_desc": lambda T: T.alloc_tcgen05_instruction_desc(),
    "alloc_l0a_sf": lambda T: T.alloc_l0a_sf(T.alloc_l0a(SHAPE, "float8_e4m3fn")),
    "alloc_l0b_sf": lambda T: T.alloc_l0b_sf(T.alloc_l0b(SHAPE, "float8_e4m3fn")),
    "simd.alloc_var": lambda T: T.simd.alloc_var("float32"),
    "simd.alloc_local": lambda T: T.simd.alloc_local(4, "float32"),
}


def language(dialect: str) -> ModuleType:
    return import_module(MODULES[dialect])


def label(row: ScopeRow) -> str:
    return f"{row.function} if {row.when}" if row.when else row.function


def functions(module: ModuleType) -> set[str]:
    return {n for n in dir(module) if n.startswith("alloc") and callable(getattr(module, n))}


def allocated(dialect: str, allocate: Callable[[Any], Any]) -> Any:
    """Return the buffer that ``allocate`` makes inside a small kernel of that dialect."""
    T = language(dialect)
    launch = {"threads": 128} if dialect == "tilelang" else {}
    made: list[Any] = []

    @T.prim_func
    def probe(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, **launch) as _:
            made.append(allocate(T))

    (buffer,) = made
    return getattr(buffer, "buffer", buffer)  # alloc_var gives a load of its one element


@pytest.mark.parametrize("dialect", MODULES)
def test_the_package_has_exactly_the_functions_of_the_table(dialect: str) -> None:
    module = language(dialect)
    found = functions(module)
    if hasattr(module, "simd"):
        found |= {f"simd.{name}" for name in functions(module.simd)}
    assert found == {row.function for row in scope_rows(dialect)}


@pytest.mark.parametrize(
    "row", [r for r in ROWS if not r.when], ids=lambda r: f"{r.dialect}:{r.function}"
)
def test_the_default_of_a_scope_parameter_is_the_table_s(row: ScopeRow) -> None:
    function: Any = language(row.dialect)
    for name in row.function.split("."):
        function = getattr(function, name)
    parameter = inspect.signature(function).parameters.get("scope")
    if parameter is not None:
        assert parameter.default == row.scope


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.dialect}:{label(row)}")
def test_an_allocation_really_has_the_scope_of_the_table(row: ScopeRow) -> None:
    plain = getattr(language(row.dialect), row.function, None)
    allocate = CALLS.get(label(row), lambda _: plain(SHAPE, DTYPE))
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"alloc_reducer\(replication=", category=DeprecationWarning
        )
        buffer = allocated(row.dialect, allocate)
    assert buffer.scope() == row.scope


def test_bool_moves_to_a_static_array_in_the_common_language_only() -> None:
    for dialect, scope in (("tilelang", "shared"), ("tilelang.ascend", "shared.dyn")):
        buffer = allocated(dialect, lambda T: T.alloc_shared(SHAPE, "bool"))
        assert buffer.scope() == scope


@pytest.mark.parametrize("kind", ["wgmma", "tcgen05_smem", "tcgen05_instr"])
def test_every_kind_of_descriptor_is_known(kind: str) -> None:
    buffer = allocated("tilelang", lambda T: T.alloc_descriptor(kind))
    assert buffer.scope() == f"local.descriptor.{kind}"
    assert memory_of("tilelang", "nvidia", buffer.scope()) is Memory.REGISTERS


def test_barriers_have_8_bytes_each() -> None:
    buffer = allocated("tilelang", lambda T: T.alloc_barrier([128, 1, 1]))
    assert [int(extent) for extent in buffer.shape] == [3]
    assert str(buffer.dtype) == "uint64"


@pytest.mark.parametrize("name", ["alloc_barrier", "alloc_cluster_barrier"])
def test_an_arrive_count_is_at_least_1(name: str) -> None:
    with pytest.raises(ValueError, match="arrive_count must be at least 1"):
        getattr(language("tilelang"), name)([1, 0])


def test_scale_factor_handles_take_k_in_steps_of_32_or_64() -> None:
    """One scale for 32 elements of K: uint8 keeps one of them, uint16 two."""
    for sf_dtype, k_step in (("uint8", 32), ("uint16", 64)):
        handle = allocated(
            "tilelang.ascend",
            lambda T, d=sf_dtype: T.alloc_l0a_sf(T.alloc_l0a((16, 192), "float8_e4m3fn"), d),
        )
        assert [int(extent) for extent in handle.shape] == [16, 192 // k_step]


def test_a_tensor_memory_tile_has_two_dimensions_or_more() -> None:
    with pytest.raises(AssertionError, match="2D or higher"):
        language("tilelang").alloc_tmem((128,), "float32")


def test_ascend_drops_a_barrier_that_nothing_can_use() -> None:
    import tilelang
    import tilelang.ascend.language as T

    @T.prim_func
    def copy(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1) as _:
            tile = T.alloc_shared((128,), "float32")
            unused = T.alloc_barrier(1)  # noqa: F841
            T.copy(A, tile)
            T.copy(tile, B)

    assert "shared.barrier" in str(copy)
    with tilelang.tvm.target.Target({"kind": "ascend"}) as target:
        source = tilelang.lower(copy, target=target).kernel_source
    assert "__ubuf__ float *tile" in source
    assert "unused" not in source
    assert [name for name in dir(T) if name.startswith(("mbarrier", "barrier_"))] == []
