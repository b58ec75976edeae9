"""Element types: widths against ml_dtypes, numpy, torch and TileLang; names; exact bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.dtype import DTYPES, DType, parse_dtype

untimed = settings(deadline=None)

# TileLang's names and widths (its tutorial on memory scopes uses the first thirteen).
BITS = {
    "bool": 8,
    "int4": 4,
    "int8": 8,
    "uint8": 8,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "float6_e2m3fn": 6,
    "float4_e2m1fn": 4,
    "float4_e2m1_unpacked": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "int1": 1,
    "uint1": 1,
    "int2": 2,
    "uint2": 2,
    "uint4": 4,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
    "uint64": 64,
    "float6_e3m2fn": 6,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float8e4b15": 8,  # Triton alone
    "tfloat32": 32,  # stored in 32
}

ALIASES = {
    "fp16": "float16",
    "half": "float16",
    "f16": "float16",
    "T.float16": "float16",
    "tl.float16": "float16",
    "torch.float16": "float16",
    "np.float16": "float16",
    "jnp.bfloat16": "bfloat16",
    "ml_dtypes.float8_e4m3fn": "float8_e4m3fn",
    "BF16": "bfloat16",
    " bf16 ": "bfloat16",
    "fp32": "float32",
    "float": "float32",
    "double": "float64",
    "tf32": "tfloat32",
    "i8": "int8",
    "s8": "int8",
    "u8": "uint8",
    "u4": "uint4",
    "int": "int32",
    "torch.long": "int64",
    "T.short": "int16",
    "np.bool_": "bool",
    "e4m3": "float8_e4m3",
    "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "fp8_e5m2": "float8_e5m2",
    "f8E4M3FN": "float8_e4m3fn",  # MLIR
    "cutlass.Float8E8M0FNU": "float8_e8m0fnu",
    "ue8m0": "float8_e8m0fnu",  # PTX
    "tl.float8e4nv": "float8_e4m3fn",  # Triton: attribute, and what str() of it gives
    "fp8e4nv": "float8_e4m3fn",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e4b15": "float8e4b15",
    "fp8e5": "float8_e5m2",
    "fp8e5b16": "float8_e5m2fnuz",
    "e2m3": "float6_e2m3fn",
    "fp6_e3m2": "float6_e3m2fn",
    "e2m1fn": "float4_e2m1fn",
    "fp4_e2m1fn": "float4_e2m1fn",
    "custom[tfloat32]": "tfloat32",  # TVM
    "custom[float4_e2m1_unpacked]8": "float4_e2m1_unpacked",
}


def test_the_types_are_exactly_these_widths() -> None:
    assert {name: dtype.bits for name, dtype in DTYPES.items()} == BITS


def test_only_packed_narrow_floats_have_a_wider_container() -> None:
    wider = {d.name: d.container_bits for d in DTYPES.values() if d.container_bits != d.bits}
    assert wider == {"float4_e2m1fn": 8, "float6_e2m3fn": 8, "float6_e3m2fn": 8}


def test_widths_are_those_of_ml_dtypes() -> None:
    """Every real type of ml_dtypes is known, with the width that its own finfo or iinfo gives."""
    checked = set()
    for name in ml_dtypes.__all__:
        scalar = getattr(ml_dtypes, name)
        if not isinstance(scalar, type) or "complex" in name or name in ("finfo", "iinfo"):
            continue
        info = ml_dtypes.iinfo if "int" in name else ml_dtypes.finfo
        assert parse_dtype(name).bits == info(scalar).bits, name
        assert parse_dtype(str(scalar)) == parse_dtype(name)  # "<class 'ml_dtypes.int4'>"
        checked.add(name)
    assert {"int2", "uint4", "float4_e2m1fn", "float6_e3m2fn", "float8_e3m4"} <= checked


@pytest.mark.parametrize(
    "scalar", [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float64]
)
def test_widths_are_those_of_numpy(scalar: type[np.generic]) -> None:
    assert parse_dtype(str(scalar)).bits == 8 * np.dtype(scalar).itemsize
    assert parse_dtype(str(np.dtype(scalar))) == parse_dtype(str(scalar))


@pytest.mark.parametrize(("written", "meant"), ALIASES.items())
def test_names_as_people_write_them(written: str, meant: str) -> None:
    assert parse_dtype(written) is DTYPES[meant]


@pytest.mark.parametrize("name", DTYPES)
def test_a_canonical_name_means_itself_in_any_case_and_namespace(name: str) -> None:
    for written in (name, name.upper(), f"T.{name}", f"torch.{name}", f"tilelang.language.{name}"):
        assert parse_dtype(written) is DTYPES[name]


@pytest.mark.parametrize(
    ("written", "choices"),
    [
        ("fp8", [name for name in BITS if name.startswith("float8_")]),
        ("float8", ["float8_e4m3fn", "float8_e5m2"]),
        ("torch.f8", ["float8_e4m3fn", "float8_e5m2"]),
        ("fp6", ["float6_e2m3fn", "float6_e3m2fn"]),
        ("fp4", ["float4_e2m1fn (4 bits", "float4_e2m1_unpacked (8 bits"]),
        ("e2m1", ["float4_e2m1fn", "float4_e2m1_unpacked"]),
        ("float4", ["float4_e2m1fn", "float4_e2m1_unpacked", "float32x4"]),
        ("fp8x4", ["float8_e4m3fn"]),
        ("mxfp4", ["float4_e2m1fn", "float8_e8m0fnu scale for every 32"]),
        ("nvfp4", ["float4_e2m1fn", "float8_e4m3fn scale for every 16"]),
        ("np.int", ["int32", "int64"]),
        ("np.uint", ["uint32", "uint64"]),
        (str(float), ["float32", "float64"]),
    ],
)
def test_an_ambiguous_name_is_refused_with_its_choices(written: str, choices: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        parse_dtype(written)
    assert not isinstance(refused.value, UnknownNameError)
    message = str(refused.value)
    assert repr(written) in message
    assert [choice for choice in choices if choice not in message] == []


def test_an_unknown_name_has_near_misses_or_a_pattern() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown dtype 'flaot16'; did you mean float16"):
        parse_dtype("flaot16")
    with pytest.raises(UnknownNameError, match=r"unknown dtype 'quux'; names look like float16"):
        parse_dtype("quux")


@pytest.mark.parametrize(
    "written", ["", " ", "x4", "int3", "complex64", "foo.float16", "float16x²"]
)
def test_what_is_no_type_is_refused(written: str) -> None:
    with pytest.raises(UnknownNameError):
        parse_dtype(written)


@pytest.mark.parametrize("lanes", ["0", "1025", "9" * 5000])
def test_a_vector_has_1_to_1024_lanes(lanes: str) -> None:
    with pytest.raises(InputError, match="1 to 1024 lanes"):
        parse_dtype(f"float16x{lanes}")


@untimed
@given(st.text() | st.sampled_from(sorted(BITS)).flatmap(lambda n: st.text().map(n.__add__)))
def test_any_text_is_a_type_or_one_line_of_error(text: str) -> None:
    try:
        outcome = parse_dtype(text).name
    except InputError as error:
        outcome = str(error)
    assert outcome
    assert outcome.splitlines() == [outcome]


@untimed
@given(st.sampled_from(sorted(BITS)), st.integers(1, 1024))
def test_a_vector_is_one_element_of_n_times_the_bits(name: str, lanes: int) -> None:
    """As in TVM (``float16x4``) and torch (``float4_e2m1fn_x2``)."""
    vector, scalar = parse_dtype(f"{name}x{lanes}"), DTYPES[name]
    assert vector.bits == lanes * scalar.bits
    assert vector.container_bits == lanes * scalar.container_bits
    assert parse_dtype(f"{name}_x{lanes}") == parse_dtype(vector.name) == vector
    assert vector.nbytes(5) == scalar.nbytes(5 * lanes)


def test_torch_keeps_two_fp4_in_one_byte() -> None:
    assert parse_dtype("torch.float4_e2m1fn_x2") == DType("float4_e2m1fnx2", 2 * 4, 2 * 8)


@untimed
@given(st.sampled_from(sorted(BITS)), st.integers(0, 2**50))
def test_bytes_are_exact_and_rounded_up_once(name: str, elements: int) -> None:
    dtype = DTYPES[name]
    assert 0 <= 8 * dtype.nbytes(elements) - elements * BITS[name] < 8
    assert 0 <= 8 * dtype.container_nbytes(elements) - elements * dtype.container_bits < 8


@untimed
@given(st.sampled_from(sorted(BITS)), st.integers(0, 2**40), st.integers(0, 2**40))
def test_rounding_two_parts_never_gives_less_than_rounding_the_whole(
    name: str, a: int, b: int
) -> None:
    dtype = DTYPES[name]
    apart, together = dtype.nbytes(a) + dtype.nbytes(b), dtype.nbytes(a + b)
    assert together <= apart <= together + 1


def test_sub_byte_tiles() -> None:
    assert DTYPES["int4"].nbytes(3) == 2  # 12 bits
    assert DTYPES["float6_e2m3fn"].nbytes(3) == 3  # 18 bits
    assert DTYPES["uint1"].nbytes(9) == 2
    assert DTYPES["float4_e2m1fn"].nbytes(128 * 64) == 128 * 64 // 2
    assert DTYPES["float4_e2m1fn"].container_nbytes(128 * 64) == 128 * 64
    assert DTYPES["float4_e2m1_unpacked"].nbytes(128 * 64) == 128 * 64
    assert DTYPES["float6_e3m2fn"].nbytes(128 * 64) == 128 * 64 * 6 // 8
    assert DTYPES["bool"].nbytes(0) == 0


def test_a_negative_count_and_an_impossible_type_are_refused() -> None:
    with pytest.raises(InputError, match="-1 elements"):
        DTYPES["int4"].nbytes(-1)
    with pytest.raises(InputError, match="-1 elements"):
        DTYPES["int4"].container_nbytes(-1)
    with pytest.raises(InputError, match="16 bits do not fit 8"):
        DType("odd", 16, 8)
    with pytest.raises(InputError, match="0 bits"):
        DType("void", 0, 8)


@pytest.mark.tilelang
def test_every_type_of_tilelang_is_known_with_its_width() -> None:
    """Both by its name below ``T`` and as TVM prints it, vectors included."""
    import tilelang.language.dtypes as dtypes

    known = {n: d for n in dtypes.__all__ if isinstance(d := getattr(dtypes, n), dtypes.dtype)}
    assert {"bool", "half", "int4", "float4_e2m1_unpacked", "float16x8", "tfloat32"} <= set(known)
    for name, dtype in known.items():
        for written in (name, f"T.{name}", str(dtype)):
            assert parse_dtype(written).bits == dtype.bits * dtype.lanes, written


@pytest.mark.tilelang
def test_tvm_has_the_same_width_for_every_name() -> None:
    """TVM parses them all but Triton's own; two it has only as custom types, see above."""
    from tilelang import tvm

    for name in set(BITS) - {"float8e4b15", "tfloat32", "float4_e2m1_unpacked"}:
        assert tvm.DataType(name).bits == BITS[name], name


@pytest.mark.tilelang
def test_torch_keeps_an_element_in_these_bytes() -> None:
    import torch

    known = [n for n in dir(torch) if isinstance(getattr(torch, n), torch.dtype)]
    ours = [n for n in known if n in BITS or n in ("half", "double", "long", "float4_e2m1fn_x2")]
    assert len(ours) > 20
    for name in ours:
        dtype = getattr(torch, name)
        assert parse_dtype(str(dtype)).nbytes(1) == dtype.itemsize, name
