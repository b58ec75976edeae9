"""The three kernels of examples/alloc_scopes, lowered by TileLang itself, without a GPU or NPU.

What their docstrings tell a newcomer to look for is asserted on the generated source.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.tilelang

EXAMPLES = Path(__file__).parent.parent / "examples" / "alloc_scopes"
FLOAT16, FLOAT32 = 2, 4  # bytes


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"alloc_scopes_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lowered(prim_func: Any, **target: str) -> tuple[str, dict[str, Any]]:
    """Return the source of the one device function and its attributes."""
    import tilelang

    with tilelang.tvm.target.Target(target) as scope:
        artifact = tilelang.lower(prim_func, target=scope)
    ((_, function),) = artifact.device_mod.functions.items()
    return artifact.kernel_source, dict(function.attrs)


@cache
def showcase(arch: str) -> tuple[str, dict[str, Any]]:
    return lowered(load("scopes").scope_showcase.get_tir(), kind="cuda", arch=arch)


@cache
def tensor_memory() -> tuple[str, dict[str, Any]]:
    return lowered(load("tmem").tmem_accumulator.get_tir(), kind="cuda", arch="sm_100a")


@cache
def ascend() -> tuple[str, dict[str, Any]]:
    return lowered(load("ascend").ascend_scope_showcase.get_tir(), kind="ascend")


def body(source: str) -> str:
    """Return what follows the launch bounds: the kernel's parameters and its body."""
    bounds = re.findall(r"__launch_bounds__\(\d+, 1\) \w+_kernel\(", source)
    assert len(bounds) == 1
    return source.split(bounds[0])[1]


def only(pattern: str, source: str) -> str:
    """Return the one group of the one match."""
    (found,) = re.findall(pattern, source)
    return found


ARCHS = pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])


@ARCHS
def test_shared_tiles_are_in_the_one_dynamic_array(arch: str) -> None:
    source, attrs = showcase(arch)
    assert body(source).count("extern __shared__ __align__(1024) uchar buf_dyn_shmem[];") == 1
    place = r"void\* {}_s = \(\(void\*\)\(\(char\*\)buf_dyn_shmem \+ (\d+)\)\);"
    tile = 2 * 128 * 32 * FLOAT16  # two stages of a 128 x 32 tile, A's and B's alike
    assert int(only(place.format("A"), body(source))) == 0
    assert int(only(place.format("B"), body(source))) == tile
    assert int(attrs["dyn_shared_memory_buf"]) == 2 * tile


@ARCHS
def test_fragment_and_local_are_private_arrays_of_a_thread(arch: str) -> None:
    source, _ = showcase(arch)
    elements_of_a_thread = 128 * 128 // 128  # block_M x block_N over the threads that compute
    assert int(only(r"\n  float C_f\[(\d+)\];", body(source))) == elements_of_a_thread
    assert int(only(r"\n  float scratch\[(\d+)\];", body(source))) == 8
    assert not re.search(r"__shared__[^;]*(C_f|scratch|scale)", source)


@ARCHS
def test_a_var_is_a_plain_scalar(arch: str) -> None:
    source, _ = showcase(arch)
    assert len(re.findall(r"\n  float scale = ", body(source))) == 1
    assert "scale = (scale + scratch[" in source
    assert "scale[" not in source


@ARCHS
def test_a_global_is_a_parameter_of_the_kernel(arch: str) -> None:
    source, _ = showcase(arch)
    parameters = body(source).split(") {")[0]
    assert parameters.endswith("float* __restrict__ C, float* __restrict__ product")


def test_threads_that_only_load_come_on_top_on_hopper() -> None:
    for arch, threads in (("sm_80", 128), ("sm_90a", 128 + 128)):
        source, attrs = showcase(arch)
        assert f"__launch_bounds__({threads}, 1)" in source
        assert int(attrs["thread_extent"]["threadIdx.x"]) == threads


def test_sizes_follow_the_parameters() -> None:
    """Half the columns over twice the threads: a quarter of the registers."""
    factory = load("scopes").scope_showcase
    prim_func = factory.get_tir(block_N=64, threads=256, terms=5, num_stages=3)
    source, attrs = lowered(prim_func, kind="cuda", arch="sm_80")
    assert "__launch_bounds__(256, 1)" in source
    assert int(only(r"\n  float C_f\[(\d+)\];", source)) == 128 * 64 // 256
    assert int(only(r"\n  float scratch\[(\d+)\];", source)) == 5
    assert int(attrs["dyn_shared_memory_buf"]) == 3 * (128 * 32 + 32 * 64) * FLOAT16


def test_an_accumulator_in_tensor_memory_takes_columns() -> None:
    source, _ = tensor_memory()
    columns = 128 * 128 * FLOAT32 // (128 * 4)  # a column has 128 lanes of 32 bits
    assert f"tl::tmem_allocate((&(C_t[0])), {columns});" in source
    assert f"tl::tmem_deallocate((&(C_t[0])), {columns});" in source
    assert f"tl::tcgen05_ld_32dp32bNx<{columns}, false>(C_t[0], 0, (&(C_f[0])));" in source


def test_shared_memory_holds_only_the_address_of_tensor_memory() -> None:
    source, attrs = tensor_memory()
    assert "__shared__ __align__(16) uint C_t[1];" in body(source)
    assert "__shared__ __align__(16) uint64_t mbar_mem[2];" in body(source)  # one per stage
    tiles = 2 * (128 * 64 + 128 * 64) * FLOAT16  # two stages of A and B, nothing of C
    assert int(attrs["dyn_shared_memory_buf"]) == tiles


def test_what_leaves_tensor_memory_passes_through_registers() -> None:
    source, _ = tensor_memory()
    assert int(only(r"\n  float C_f\[(\d+)\];", body(source))) == 128 * 128 // 128


@pytest.mark.parametrize(("block_n", "columns"), [(16, 32), (96, 128), (192, 256)])
def test_columns_come_in_powers_of_two_from_32(block_n: int, columns: int) -> None:
    prim_func = load("tmem").tmem_accumulator.get_tir(block_N=block_n, N=4 * block_n)
    source, _ = lowered(prim_func, kind="cuda", arch="sm_100a")
    assert f"tl::tmem_allocate((&(C_t[0])), {columns});" in source


def test_a_block_has_512_columns() -> None:
    prim_func = load("tmem").tmem_accumulator.get_tir(block_N=1024)
    with pytest.raises(AssertionError, match=r"\(128, 1024\) exceeds the 128x512 b32 TMEM"):
        lowered(prim_func, kind="cuda", arch="sm_100a")


@pytest.mark.parametrize(
    "declaration",
    [
        "__ubuf__ float *C_ub = (__ubuf__ float *)0;",  # T.alloc_shared
        "__cbuf__ uint8_t *buf_dyn_l1 = (__cbuf__ uint8_t *)0;",  # T.alloc_l1, twice
        "__ca__ half *A_l0 = (__ca__ half *)0;",  # T.alloc_l0a
        "__cb__ half *B_l0 = (__cb__ half *)0;",  # T.alloc_l0b
        "__cc__ float *C_l0 = (__cc__ float *)0;",  # T.alloc_l0c
        "showcase_kernel(__gm__ half* A, __gm__ half* B, __gm__ float* C)",
    ],
)
def test_an_ascend_pointer_names_its_memory(declaration: str) -> None:
    source, _ = ascend()
    assert source.count(declaration) == 1


def test_each_ascend_unit_moves_between_its_own_memories() -> None:
    """GM to L1, L1 to L0A and L0B, the multiplication into L0C, L0C to UB, UB to GM."""
    source, _ = ascend()
    assert re.search(r"asc_copy_gm2l1_nd2nz\(\(\(__cbuf__ half\*\)buf_dyn_l1", source)
    assert re.search(r"asc_copy_l12l0a\(\(\(__ca__ half\*\)A_l0 .*__cbuf__", source)
    assert re.search(r"asc_copy_l12l0b\w*\(\(\(__cb__ half\*\)B_l0 .*__cbuf__", source)
    assert re.search(r"asc_mmad\(\(\(__cc__ float\*\)C_l0\).*__ca__.*__cb__", source)
    assert re.search(r"asc_copy_l0c2ub\(\(&\(C_ub\[0\]\)\), \(\(__cc__ float\*\)C_l0\)", source)
    assert re.search(r"asc_copy_ub2gm_align\(\(__gm__ .*__ubuf__", source)
    cube, vector = source.split("if ASC_IS_AIC {")[1].split("if ASC_IS_AIV {")
    assert "asc_mmad" in cube
    assert "asc_vf_call" in vector


def test_ascend_bytes() -> None:
    """UB has half a tile per AIV; in L1, B's two copies follow A's; L0A and L0B have two."""
    source, attrs = ascend()
    assert int(attrs["dyn_shared_memory_buf"]) == 128 // 2 * 128 * FLOAT32
    assert f"buf_dyn_l1 + (((k & 1) * {64 * 128}) + {2 * 128 * 64})" in source
    assert f"(__ca__ half*)A_l0 + ((k & 1) * {128 * 64})" in source
    assert f"(__cb__ half*)B_l0 + ((k & 1) * {64 * 128})" in source


def test_the_vector_half_runs_under_its_own_launch_bounds() -> None:
    source, _ = ascend()
    assert "__simt_vf__ __launch_bounds__(128) inline void showcase_kernel_simt_vf_0(" in source


@pytest.mark.parametrize("name", ["scopes", "tmem", "ascend"])
def test_a_file_run_as_a_script_prints_its_source(name: str) -> None:
    """As its docstring says, without a GPU; importing it compiles nothing."""
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.count("__launch_bounds__(") == 1
    docstring = load(name).__doc__
    assert docstring is not None
    assert f"python examples/alloc_scopes/{name}.py" in docstring
