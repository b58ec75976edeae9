"""Element types: how many bits each has, and the names that people write for them.

Names and widths are those of TileLang 0.1.15 (``tilelang.language.dtypes``), Triton
(``triton.language``), ml_dtypes and torch. Sub-byte types are exact: bytes are rounded up once
per copy, never per element.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefit._errors import InputError, UnknownNameError


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    Attributes:
        name: The canonical name, for example ``"float16"`` or ``"float4_e2m1fn"``.
        bits: Bits per element when packed.
        container_bits: Bits that the hardware keeps per element where it unpacks: 8 for 4- and
            6-bit floats under tcgen05 ``kind::f8f6f4``, else the same as ``bits``.
    """

    name: str
    bits: int
    container_bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= self.container_bits:
            raise InputError(
                f"dtype {self.name!r}: {self.bits} bits do not fit {self.container_bits}"
            )

    def __str__(self) -> str:
        return self.name

    def nbytes(self, elements: int) -> int:
        """Return the bytes of ``elements`` packed elements, rounded up once.

        Raises:
            InputError: ``elements`` is negative.
        """
        return _nbytes(elements, self.bits)

    def container_nbytes(self, elements: int) -> int:
        """Return the bytes of ``elements`` elements where the hardware keeps containers.

        Raises:
            InputError: ``elements`` is negative.
        """
        return _nbytes(elements, self.container_bits)


def _nbytes(elements: int, bits: int) -> int:
    if elements < 0:
        raise InputError(f"{elements} elements: a count of elements is 0 or more")
    return -(-elements * bits // 8)


# Formats by width; a name is "float", the width, "_", the format.
_FORMATS = {
    4: ("e2m1fn",),
    6: ("e2m3fn", "e3m2fn"),
    8: (
        "e3m4",
        "e4m3",
        "e4m3fn",
        "e4m3fnuz",
        "e4m3b11fnuz",
        "e5m2",
        "e5m2fnuz",
        "e8m0fnu",
    ),
}
_INT_WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def _all_dtypes() -> dict[str, DType]:
    widths = {"bool": 8}
    for width in _INT_WIDTHS:
        widths[f"int{width}"] = widths[f"uint{width}"] = width
    for width, formats in _FORMATS.items():
        widths.update({f"float{width}_{fmt}": width for fmt in formats})
    widths |= {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
    widths["float4_e2m1_unpacked"] = 8  # TileLang: one 4-bit value in a byte of shared memory
    widths["float8e4b15"] = 8  # Triton's own, exponent bias 15
    widths["tfloat32"] = 32  # 19 significant bits, kept in 32
    narrow_floats = {f"float{w}_{fmt}" for w in (4, 6) for fmt in _FORMATS[w]}
    return {
        name: DType(name, bits, 8 if name in narrow_floats else bits)
        for name, bits in widths.items()
    }


DTYPES: dict[str, DType] = _all_dtypes()
"""Every scalar element type by its canonical name."""

# Other names, folded to lower case. `_short_names` adds the regular ones (fp16, i8, e4m3 ...).
_ALIASES = {
    "bool_": "bool",
    "boolean": "bool",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "uchar": "uint8",
    "ushort": "uint16",
    "uint": "uint32",
    "ulong": "uint64",
    "half": "float16",
    "bf16": "bfloat16",
    "bfloat": "bfloat16",
    "float": "float32",
    "double": "float64",
    "tf32": "tfloat32",
}
# Formats with a second spelling: PTX, Triton and papers against ml_dtypes.
_FORMAT_ALIASES = {
    "e2m1_unpacked": "float4_e2m1_unpacked",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e8m0": "float8_e8m0fnu",
    "ue8m0": "float8_e8m0fnu",
    "e4nv": "float8_e4m3fn",
    "e4b8": "float8_e4m3fnuz",
    "e4b15": "float8e4b15",
    "e5": "float8_e5m2",
    "e5b16": "float8_e5m2fnuz",
}
_FP4 = ("float4_e2m1fn (4 bits, packed)", "float4_e2m1_unpacked (8 bits)")
_FP6 = tuple(f"float6_{fmt}" for fmt in _FORMATS[6])
_FP8 = tuple(f"float8_{fmt}" for fmt in _FORMATS[8])
# Names that could mean several types, each with its choices.
_AMBIGUOUS: dict[str, tuple[str, ...]] = {
    "float4": (*_FP4, "float32x4 (CUDA's vector of four floats)"),
    **dict.fromkeys(("fp4", "f4", "e2m1", "float4_e2m1", "fp4_e2m1", "f4e2m1"), _FP4),
    **dict.fromkeys(("float6", "fp6", "f6"), _FP6),
    **dict.fromkeys(("float8", "fp8", "f8"), _FP8),
}
# Formats of two types: the elements', the scales', and how many elements share a scale (OCP
# Microscaling Formats v1.0; NVIDIA for nvfp4).
_BLOCK_SCALED: dict[str, tuple[tuple[str, ...], str, int]] = {
    "mxfp4": (_FP4, "float8_e8m0fnu", 32),
    "nvfp4": (_FP4, "float8_e4m3fn", 16),
    "mxfp6": (_FP6, "float8_e8m0fnu", 32),
    "mxfp8": (("float8_e4m3fn", "float8_e5m2"), "float8_e8m0fnu", 32),
}
# C, torch and TileLang have 32 bits for these (64 for long), Python and numpy mostly 64.
_NUMPY = frozenset(("np", "jnp", "numpy", "jax.numpy"))
_NUMPY_SIZED = {"int": "int", "long": "int", "uint": "uint", "ulong": "uint", "float": "float"}
_OTHER_NAMESPACES = ("t", "tl", "tilelang.language", "triton.language", "torch", "ml_dtypes")
_NAMESPACES = _NUMPY.union(_OTHER_NAMESPACES, ("cutlass",))
_MAX_LANES = 1024


def _short_names() -> dict[str, str]:
    names = {name: name for name in DTYPES} | _ALIASES
    for width in _INT_WIDTHS:
        names |= {f"i{width}": f"int{width}", f"s{width}": f"int{width}"}
        names[f"u{width}"] = f"uint{width}"
    for width in (16, 32, 64):
        names |= {f"fp{width}": f"float{width}", f"f{width}": f"float{width}"}
    for width, formats in _FORMATS.items():
        pairs = {fmt: f"float{width}_{fmt}" for fmt in formats}
        pairs |= {
            alias: name
            for alias, name in _FORMAT_ALIASES.items()
            if name.startswith(f"float{width}")
        }
        for fmt, name in pairs.items():
            if len(fmt) > 2:
                names[fmt] = name
            for stem in (f"float{width}", f"fp{width}", f"f{width}"):
                names |= {f"{stem}_{fmt}": name, f"{stem}{fmt}": name}
    return names


_NAMES = _short_names()


def parse_dtype(text: str) -> DType:
    """Return the element type that ``text`` names.

    Canonical names (``float16``, ``float8_e4m3fn``) and what people write instead: ``fp16``,
    ``half``, ``bf16``, ``e4m3``, ``i8``, with or without a prefix (``T.``, ``tl.``, ``torch.``,
    ``np.``, ``jnp.`` ...), in any case. A format alone is the type of exactly that format:
    ``e4m3`` is ``float8_e4m3``. A suffix ``xN`` (torch: ``_xN``) makes a vector of N lanes, one
    element of N times the bits, as in TVM: ``float4_e2m1fnx2`` has 8.

    Raises:
        InputError: The name could mean several types; the message lists them.
        UnknownNameError: There is no such type; the message has near misses.
    """
    folded = text.strip().casefold()
    plain = folded.removeprefix("<class '").removesuffix("'>")  # str(numpy.float16)
    namespace, name = _split_namespace(plain)
    if name in _NUMPY_SIZED and (namespace in _NUMPY or plain != folded):
        stem = _NUMPY_SIZED[name]
        raise InputError(f"dtype {text!r} has no fixed width: write {stem}32 or {stem}64")
    base, lanes = _split_lanes(_from_tvm(name))
    if base in _AMBIGUOUS:
        choices = ", ".join(_AMBIGUOUS[base])
        raise InputError(f"dtype {text!r} is ambiguous: write one of {choices}")
    if base in _BLOCK_SCALED:
        elements, scale, group = _BLOCK_SCALED[base]
        raise InputError(
            f"dtype {text!r} is a format of two types: elements of {' or '.join(elements)}, and "
            f"a {scale} scale for every {group} of them; size a tile of each"
        )
    if base not in _NAMES:
        raise _unknown(text)
    scalar = DTYPES[_NAMES[base]]
    if lanes == 1:
        return scalar
    if not 1 < lanes <= _MAX_LANES:
        raise InputError(f"dtype {text!r}: a vector has 1 to {_MAX_LANES} lanes")
    return DType(f"{scalar.name}x{lanes}", scalar.bits * lanes, scalar.container_bits * lanes)


def names_dtype(text: str) -> bool:
    """Say whether a text names a dtype."""
    try:
        parse_dtype(text)
    except InputError:
        return False
    return True


def _split_namespace(name: str) -> tuple[str, str]:
    namespace, _, rest = name.rpartition(".")
    return (namespace, rest) if namespace in _NAMESPACES else ("", name)


def _from_tvm(name: str) -> str:
    """Turn TVM's spelling of a custom type, ``custom[tfloat32]x2``, into ``tfloat32x2``."""
    if not name.startswith("custom["):
        return name
    inner, _, rest = name.removeprefix("custom[").partition("]")
    bits, x, lanes = rest.partition("x")
    known = inner in DTYPES and bits in ("", str(DTYPES[inner].bits))
    return f"{inner}{x}{lanes}" if known else name


def _split_lanes(name: str) -> tuple[str, int]:
    base, x, digits = name.rpartition("x")
    if not (x and digits.isascii() and digits.isdecimal()):
        return name, 1
    return base.removesuffix("_"), int(digits) if len(digits) < 9 else _MAX_LANES + 1


def _unknown(text: str) -> UnknownNameError:
    for names in (DTYPES, _ALIASES):
        error = UnknownNameError("dtype", text, names)
        if error.near:
            return error
    return UnknownNameError("dtype", text, (), "names look like float16, bf16, e4m3, int4, bool")
