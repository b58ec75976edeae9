"""Known rules that give the number in a message from the parameters of a tile.

A rule is held against the number and kept only if it gives exactly that: compilers differ, by
release too, in how many copies `num_stages` means and in what they keep beside the tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilefit._devices.alike import tensor_memory, warp
from tilefit._explain.params import Tile
from tilefit._kernel.units import round_up

Reckoned = tuple[int, str]
"""A number, and the arithmetic that gives it."""

_TRITON = frozenset({"triton", "inductor", "xla", "clang"})
_STAGED = _TRITON | {"tilelang", "cutlass", "cute-dsl", "ptxas", "cuda", "tensorrt-llm", "iree"}
_ACCUMULATOR_BYTES = 4
_MLX_PAD_BYTES = 16  # MLX pads every row of Q, K and V tiles by one 16-byte vector
_POW_SCRATCH_BYTES = 1152  # least scratch of T.tile.pow in tilelang-ascend
_AITER_SCRATCH_BYTES = 256  # beside K and V in AMD's unified attention kernel
_MX_GROUP = 32  # elements that share one scale of 8 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way to reckon.

    Attributes:
        name: A short name.
        toolchains: Whose messages it may explain.
        unit: What its result counts.
        needs: The numbers it reads.
        without: Numbers that show another kind of kernel.
        formula: In names.
        why: Who works so, and when.
        knobs: What can be made smaller, the cheapest first.
        least: The smallest extent of a block worth proposing.
        reckon: Tile, bits of an element and what `solve` found, to the result; None if it does
            not apply.
        solve: Tile, bits and the number wanted, to what the parameters leave open.
        open_words: What `solve` found, in words with ``{}``.
    """

    name: str
    toolchains: frozenset[str]
    unit: str = "bytes"
    needs: tuple[str, ...]
    without: tuple[str, ...] = ()
    formula: str
    why: str
    knobs: tuple[str, ...]
    reckon: Callable[[Tile, int, int], Reckoned | None]
    solve: Callable[[Tile, int, int], int | None] = lambda _tile, _bits, _wanted: 0
    open_words: str = ""
    least: int = 16  # the smallest extent of a matrix instruction's tile


def _elements(bits: int) -> str:
    return f"{bits // 8} B" if bits % 8 == 0 else f"{bits} bits / 8"


def _nbytes(elements: int, bits: int) -> int:
    return -(-elements * bits // 8)


def _gemm(tile: Tile, bits: int, fewer: int) -> Reckoned | None:
    m, n, k, copies = tile["block_m"], tile["block_n"], tile["block_k"], tile["num_stages"] - fewer
    if copies < 1:
        return None
    value = copies * (_nbytes(m * k, bits) + _nbytes(k * n, bits))
    count = f"({tile['num_stages']} - {fewer})" if fewer else str(copies)
    return value, f"{count} x ({m}x{k} + {k}x{n}) x {_elements(bits)}"


def _mx_gemm(tile: Tile, _bits: int, fewer: int) -> Reckoned | None:
    a_type = tile.types.get("a_dtype")
    copies = tile["num_stages"] - fewer
    if a_type is None or tile.texts.get("b_dtype", "").casefold() != "mxfp4" or copies < 1:
        return None
    m, n, k = tile["block_m"], tile["block_n"], tile["block_k"]
    value = copies * (a_type.nbytes(m * k) + _nbytes(n * k, 4) + n * (k // _MX_GROUP))
    count = f"({tile['num_stages']} - {fewer})" if fewer else str(copies)
    a = f"{m}x{k} x {_elements(a_type.bits)}"
    return value, f"{count} x ({a} + {k}x{n} / 2 + {n} x ({k} / {_MX_GROUP}))"


def _heads(tile: Tile, rounded: bool) -> tuple[int, int]:
    qk = tile["head_dim"]
    v = tile.numbers.get("v_head_dim", qk)
    if not rounded:
        return qk, v
    return (
        tile.numbers.get("qk_rounded", _power_of_two(qk)),
        tile.numbers.get("v_rounded", _power_of_two(v)),
    )


def _power_of_two(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def _attention(tile: Tile, bits: int, rounded: bool) -> Reckoned | None:
    m, n, copies = tile["block_m"], tile["block_n"], tile["num_stages"]
    qk, v = _heads(tile, rounded)
    if copies < 1:
        return None
    value = _nbytes(m * qk, bits) + copies * (_nbytes(n * qk, bits) + _nbytes(n * v, bits))
    each = _elements(bits)
    return value, f"{m}x{qk} x {each} + {copies} x ({n}x{qk} + {n}x{v}) x {each}"


def _kv_scratch(tile: Tile, bits: int, _: int) -> Reckoned | None:
    n, head, copies = tile["block"], tile["head_dim"], tile["num_stages"]
    value = copies * 2 * _nbytes(n * head, bits) + _AITER_SCRATCH_BYTES
    return value, f"{copies} x 2 x {n}x{head} x {_elements(bits)} + {_AITER_SCRATCH_BYTES}"


def _tmem(tile: Tile, bits: int, depth: int) -> Reckoned | None:
    m, n = tile["block_m"], tile["block_n"]
    left, column = m * depth * bits // 8, tensor_memory().column_bytes
    value, rest = divmod(m * n * _ACCUMULATOR_BYTES + left, column)
    if rest:
        return None
    more = f" + {m}x{depth} x {_elements(bits)}" if depth else ""
    return value, f"({m}x{n} x {_ACCUMULATOR_BYTES} B{more}) / {column} B"


def _tmem_depth(tile: Tile, bits: int, wanted: int) -> int | None:
    """Return the columns of a left operand in tensor memory, by BLOCK_K or by what is left."""
    tile_bytes = tile["block_m"] * tile["block_n"] * _ACCUMULATOR_BYTES
    left = wanted * tensor_memory().column_bytes - tile_bytes
    row = tile["block_m"] * bits
    if left <= 0 or not row or left * 8 % row:
        return 0 if left == 0 else None
    depth = left * 8 // row
    return depth if tile.numbers.get("block_k", depth) == depth else None


def _live_tiles(tile: Tile, bits: int, tiles: int) -> Reckoned | None:
    size = _tile_elements(tile)
    return (tiles * size[0] * bits, f"{tiles} x {size[1]} x {bits} bits") if size else None


def _tile_count(tile: Tile, bits: int, wanted: int) -> int | None:
    size = _tile_elements(tile)
    if size is None or not size[0] or wanted % (size[0] * bits):
        return None
    count = wanted // (size[0] * bits)
    return count if 1 <= count <= 8 else None


def _tile_elements(tile: Tile) -> tuple[int, str] | None:
    if tile.has("block"):
        return tile["block"], str(tile["block"])
    if tile.has("block_m", "block_n") and not tile.has("block_k"):
        return tile["block_m"] * tile["block_n"], f"{tile['block_m']}x{tile['block_n']}"
    return None


def _pow(tile: Tile, bits: int, _: int) -> Reckoned | None:
    if "pow" not in tile.texts.get("op", ""):
        return None
    rows, columns = tile["rows"], tile["columns"]
    operand = _nbytes(rows * columns, bits)
    shape = f"{rows}x{columns} x {_elements(bits)}"
    if 2 * operand >= _POW_SCRATCH_BYTES:
        return 5 * operand, f"3 x {shape} + 2 x {shape}"
    return 3 * operand + _POW_SCRATCH_BYTES, f"3 x {shape} + {_POW_SCRATCH_BYTES}"


def _mlx(tile: Tile, bits: int, _: int) -> Reckoned | None:
    q, k, d = tile["block_m"], tile["block_k"], tile["head_dim"]
    pad, size = _MLX_PAD_BYTES * 8 // bits, bits // 8
    value = (q * (d + pad) + max((k + pad) * d, k * (d + pad))) * size
    words = f"{q}x({d} + {pad}) x {size} B + max(({k} + {pad})x{d}, {k}x({d} + {pad})) x {size} B"
    return (value, words) if size else None


def _registers(tile: Tile, _bits: int, _: int) -> Reckoned | None:
    lanes, granule = warp()
    each = round_up(tile["registers"], granule // lanes)
    threads = tile.numbers.get("threads", tile.numbers.get("num_warps", 0) * lanes)
    threads = round_up(threads, lanes)
    return (each * threads, f"{each} x {threads}") if threads else None


_GEMM = ("block_m", "block_n", "block_k", "num_stages")
_GEMM_KNOBS = ("num_stages", "block_k", "block_n", "block_m")
_HEADS = ("block_m", "block_n", "head_dim", "num_stages")
_A_B = "(BLOCK_M x BLOCK_K + BLOCK_K x BLOCK_N)"

RULES = (
    Rule(
        name="stages",
        toolchains=_STAGED,
        needs=_GEMM,
        without=("head_dim",),
        formula=f"num_stages x {_A_B} x bytes",
        why="one copy of both tiles a stage: TileLang, CUTLASS 2.x, Triton with wgmma (sm_90 on: "
        "fp16, bf16, TF32, fp8), and Triton on sm_80 in 2023",
        knobs=_GEMM_KNOBS,
        reckon=lambda tile, bits, _: _gemm(tile, bits, 0),
    ),
    Rule(
        name="stages-minus-one",
        toolchains=_TRITON,
        needs=_GEMM,
        without=("head_dim",),
        formula=f"(num_stages - 1) x {_A_B} x bytes",
        why="one copy fewer than stages: Triton 3 without wgmma (sm_80 to sm_89, sm_120, fp32 "
        "without TF32 on sm_90), and on AMD before 3.8",
        knobs=_GEMM_KNOBS,
        reckon=lambda tile, bits, _: _gemm(tile, bits, 1),
    ),
    Rule(
        name="mxfp4",
        toolchains=_TRITON,
        needs=_GEMM,
        formula="num_stages x (BLOCK_M x BLOCK_K x bytes + BLOCK_K x BLOCK_N / 2 + scales)",
        why="weights packed two to a byte, one scale of a byte for 32 of them; asynchronous "
        "copies keep a copy a stage (gfx950 from Triton 3.8)",
        knobs=_GEMM_KNOBS,
        reckon=lambda tile, bits, _: _mx_gemm(tile, bits, 0),
    ),
    Rule(
        name="mxfp4-minus-one",
        toolchains=_TRITON,
        needs=_GEMM,
        formula="(num_stages - 1) x (BLOCK_M x BLOCK_K x bytes + BLOCK_K x BLOCK_N / 2 + scales)",
        why="weights packed two to a byte, one scale of a byte for 32 of them; one copy fewer "
        "than stages without asynchronous copies",
        knobs=_GEMM_KNOBS,
        reckon=lambda tile, bits, _: _mx_gemm(tile, bits, 1),
    ),
    Rule(
        name="attention-rounded",
        toolchains=_TRITON,
        needs=_HEADS,
        formula="BLOCK_M x D x bytes + num_stages x (BLOCK_N x D + BLOCK_N x DV) x bytes",
        why="Q stays for the whole loop, K and V are kept once a stage; Triton rounds head "
        "dimensions up to a power of two",
        knobs=("num_stages", "block_n", "block_m"),
        reckon=lambda tile, bits, _: _attention(tile, bits, rounded=True),
    ),
    Rule(
        name="attention",
        toolchains=_STAGED - _TRITON,
        needs=_HEADS,
        formula="BLOCK_M x D x bytes + num_stages x (BLOCK_N x D + BLOCK_N x DV) x bytes",
        why="Q stays for the whole loop, K and V are kept once a stage",
        knobs=("num_stages", "block_n", "block_m"),
        reckon=lambda tile, bits, _: _attention(tile, bits, rounded=False),
    ),
    Rule(
        name="kv-and-scratch",
        toolchains=_TRITON,
        needs=("block", "head_dim", "num_stages"),
        formula="num_stages x 2 x TILE x D x bytes + 256",
        why="K and V once a stage, and 256 B of scratch: AMD's unified attention kernel",
        knobs=("num_stages", "block"),
        reckon=_kv_scratch,
    ),
    Rule(
        name="tensor-memory",
        toolchains=_TRITON | {"tilelang"},
        unit="columns",
        needs=("block_m", "block_n"),
        formula="(BLOCK_M x BLOCK_N x 4 B + BLOCK_M x DEPTH x bytes) / 512 B",
        why="an fp32 accumulator, and a left operand that was moved into tensor memory",
        knobs=("block_n", "block_m"),
        reckon=_tmem,
        solve=_tmem_depth,
        open_words="a left operand {} elements deep in tensor memory",
    ),
    Rule(
        name="live-tiles",
        toolchains=frozenset({"bisheng"}),
        unit="bits",
        needs=(),
        formula="tiles x BLOCK_SIZE x bits",
        why="whole tiles live at one time; multi-buffering, on by default, makes each of them two",
        knobs=("block", "block_n", "block_m"),
        reckon=_live_tiles,
        solve=_tile_count,
        open_words="{} tiles live at one time",
    ),
    Rule(
        name="pow",
        toolchains=frozenset({"tilelang-ascend", "pypto", "cann"}),
        needs=("rows", "columns"),
        formula="3 operands + scratch of max(2 operands, 1152)",
        why="T.tile.pow of tilelang-ascend takes scratch of twice an operand beside its three",
        knobs=("rows", "columns"),
        reckon=_pow,
    ),
    Rule(
        name="mlx-attention",
        toolchains=frozenset({"metal", "mlx"}),
        needs=("block_m", "block_k", "head_dim"),
        formula="BQ x (BD + pad) x bytes + max((BK + pad) x BD, BK x (BD + pad)) x bytes",
        why="MLX pads rows by 16 B, and K and V share one place",
        knobs=("block_k", "block_m"),
        reckon=_mlx,
        least=8,  # of Apple's simdgroup matrices
    ),
    Rule(
        name="registers",
        toolchains=frozenset({"cuda", "ptxas"}),
        unit="registers",
        needs=("registers",),
        formula="registers a thread, rounded up to a multiple of 8, x threads",
        why="a warp gets registers in units of 256, which is 8 a thread",
        knobs=("threads", "num_warps", "registers"),
        reckon=_registers,
    ),
)
