"""Which matrix instructions TileLang wrote for the T.gemm of a kernel, and why no better ones.

TileLang chooses an instruction for each T.gemm by its sizes, types and scopes
(``src/cuda/op/gemm.cc``: AllowTcgen5Mma, AllowWgmma, then mma or, on Volta and Turing, single
multiplications), and says nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilefit._frontends.ptx import (
    TENSOR_VERSIONS,
    WARP_GROUP_THREADS,
    WGMMA_ROWS,
    WGMMA_VERSIONS,
    version_of,
)
from tilefit._frontends.tilelang.declared import dim, visit
from tilefit._kernel.dtype import names_dtype, parse_dtype
from tilefit._kernel.kernel import Dim, MatrixUse

_PATHS = (
    ("tcgen05", re.compile(r"tcgen05_mma_(ss|ts|ws|blockscaled)")),
    ("wgmma", re.compile(r"ptx_wgmma_(ss|rs|sp)")),
    ("mma", re.compile(r"\bptx_mma")),
    ("mfma", re.compile(r"tvm_mfma$")),
    ("wmma", re.compile(r"rdna_wmma")),
)
# as TileLang writes operand types in calls of instructions
_DTYPES = {
    **{"fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "fp32": "tf32", "tf32": "tf32"},
    **{"e4m3": "float8_e4m3", "e5m2": "float8_e5m2"},
}


def matrix_of(function: Any) -> tuple[MatrixUse, ...]:
    """Return the matrix instructions of a lowered device function, each once, in order."""
    found: dict[MatrixUse, None] = {}

    def look(node: Any) -> None:
        name = str(getattr(getattr(node, "op", None), "name", ""))
        path = next((path for path, pattern in _PATHS if pattern.search(name)), None)
        if path is None or name.endswith("arrive"):
            return
        words = [str(a.value) for a in node.args if type(a).__name__ == "StringImm"]
        shape = next((w for w in words if re.search(r"\d+[xnk]\d", w)), None)
        types = [w for w in words if w != shape and w not in ("row", "col")]
        found[MatrixUse(path=path, shape=shape, dtype=_dtype(types[0]) if types else "")] = None

    visit(function.body, look)
    return tuple(found)


def _dtype(word: str) -> str:
    """Return the type of an operand by our name: ``fp16`` and ``float16x4`` are ``float16``."""
    word = re.sub(r"x\d+$", "", word)
    if word in _DTYPES:
        return _DTYPES[word]
    return parse_dtype(word).name if names_dtype(word) else word


# ---- why no better ones ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """A T.gemm as its author wrote it: sizes of the block's tile, operands, whether transposed."""

    m: Dim
    n: Dim
    k: Dim
    a: Any
    b: Any
    c: Any
    transpose_a: bool
    transpose_b: bool

    @property
    def size(self) -> str:
        """The sizes in words."""
        return f"{self.m}x{self.n}x{self.k}"


def gemms_written(root: Any) -> list[Gemm]:
    """Return the T.gemm of a launch whose instruction TileLang chooses, in program order."""
    found: list[Gemm] = []

    def look(node: Any) -> None:
        if str(getattr(getattr(node, "op", None), "name", "")) != "tl.tileop.gemm":
            return
        a, b, c = (getattr(one.args[0], "buffer", None) for one in node.args[:3])
        if a is None or b is None or c is None:
            return
        transposed = [bool(getattr(one, "value", one)) for one in node.args[3:5]]
        m, n, k = (dim(one) for one in node.args[5:8])
        found.append(
            Gemm(
                **{"m": m, "n": n, "k": k, "a": a, "b": b, "c": c},
                transpose_a=transposed[0],
                transpose_b=transposed[1],
            )
        )

    visit(root, look)
    return found


def slower_paths(
    root: Any,
    uses: tuple[MatrixUse, ...],
    *,
    target: str,
    threads: int | None,
    configs: Mapping[str, Any],
) -> tuple[str, ...]:
    """Return a line for each T.gemm that does not get the best instruction of the chip.

    Args:
        root: The launch as its author wrote it.
        uses: The matrix instructions that it came to.
        target: ``sm_90a`` ...
        threads: Threads of a block as the author wrote them.
        configs: The kernel's pass configs.
    """
    return tuple(dict.fromkeys(_slower(root, uses, target, threads, configs)))


def _slower(
    root: Any,
    uses: tuple[MatrixUse, ...],
    target: str,
    threads: int | None,
    configs: Mapping[str, Any],
) -> Iterator[str]:
    version, gemms = version_of(target), gemms_written(root)
    if version is None or not gemms:
        return
    paths = {use.path for use in uses}
    if not paths:
        types = ", ".join(dict.fromkeys(str(gemm.a.dtype) for gemm in gemms))
        yield (
            f"no matrix instruction: TileLang has none for {types} on {target} and multiplies "
            "element by element"
        )
    elif "mma" in paths and version in TENSOR_VERSIONS:
        for gemm in gemms:
            why = _why_no_tcgen05(gemm)
            if why:
                yield f"T.gemm {gemm.size} uses mma and not tcgen05, which {why}"
    elif "mma" in paths and version in WGMMA_VERSIONS:
        for gemm in gemms:
            why = _why_no_wgmma(gemm, threads, configs)
            if why:
                yield f"T.gemm {gemm.size} uses mma and not wgmma, which {why}"


def _why_no_tcgen05(gemm: Gemm) -> str | None:
    if str(gemm.c.scope()) != "shared.tmem":
        return (
            f"accumulates in tensor memory (T.alloc_tmem), and {gemm.c.name} is in {gemm.c.scope()}"
        )
    if not str(gemm.b.scope()).startswith("shared"):
        return f"reads B from shared memory, and {gemm.b.name} is in {gemm.b.scope()}"
    return None


def _why_no_wgmma(gemm: Gemm, threads: int | None, configs: Mapping[str, Any]) -> str | None:
    """Return the first rule of AllowWgmma that a T.gemm breaks; None if it breaks none."""
    if configs.get("tl.disable_wgmma"):
        return "the kernel's pass configs turn off"
    if isinstance(gemm.m, int) and gemm.m < WGMMA_ROWS:
        return f"takes {WGMMA_ROWS} rows at least, and its tile has {gemm.m}"
    if threads is not None and threads % WARP_GROUP_THREADS:
        return f"takes groups of {WARP_GROUP_THREADS} threads, and the block has {threads}"
    if not str(gemm.b.scope()).startswith("shared"):
        return f"reads B from shared memory, and {gemm.b.name} is in {gemm.b.scope()}"
    a, b, c = (str(one.dtype) for one in (gemm.a, gemm.b, gemm.c))
    plain = a == b and a in ("float16", "bfloat16") and c in ("float32", "float16")
    eight = _is_eight_bit(a) and _is_eight_bit(b)
    if not (plain or eight) or (a == "bfloat16" and c == "float16"):
        return f"TileLang does not have for {a} x {b} into {c}"
    if eight and (gemm.transpose_a or not gemm.transpose_b):
        return f"takes {a} along K only: transpose_B=True, and A as it is"
    step = 32 if eight else 16
    if isinstance(gemm.k, int) and gemm.k % step:
        return f"takes K in steps of {step}, and its tile has {gemm.k}"
    return None


def _is_eight_bit(dtype: str) -> bool:
    return dtype.startswith("float8") or dtype in ("int8", "uint8")
