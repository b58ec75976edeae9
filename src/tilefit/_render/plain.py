"""Plain text of ``footprint`` and ``budget``: no colour, no library, 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from tilefit._kernel.units import KIB, human, percent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilefit._tiles.footprint import Footprint
    from tilefit._tiles.gemm import Budget
    from tilefit._tiles.limit import Limit
    from tilefit._tiles.tour import Tour


def footprint_text(tile: Footprint) -> str:
    """Return the facts of one tile, and how to make it fit if it does not."""
    lines = [
        f"shape        = {tile.shape}",
        f"dtype        = {tile.dtype.name} ({tile.dtype.bits} bit)",
        f"copies       = {tile.copies} (versions)",
        f"elements     = {tile.elements}",
        f"bytes / copy = {tile.bytes_per_copy} ({human(tile.bytes_per_copy)})",
        f"bytes total  = {tile.total_bytes} ({human(tile.total_bytes)})",
    ]
    if tile.padded_by_hardware:
        lines.append(
            f"containers   = {tile.container_bytes} ({human(tile.container_bytes)}): "
            "8 bit an element, as tcgen05 f8f6f4 reads it"
        )
    if tile.charged_as == "columns":
        lines.append(
            f"columns      = {tile.tensor_columns} of tensor memory, 512 B each "
            f"= {tile.charged_bytes} B"
        )
    if tile.limit is not None:
        lines += _fit_lines(tile)
    return "\n".join(lines) + "\n"


def _fit_lines(tile: Footprint) -> list[str]:
    assert tile.limit is not None
    limit, margin = tile.limit.limit_bytes, tile.margin_bytes or 0
    distance = f"over by {-margin} B" if margin < 0 else f"{margin} B spare"
    compared = f", {tile.charged_as} compared" if tile.choice else ""
    lines = [
        f"fits in {limit} B: {tile.fits} "
        f"({percent(tile.charged_bytes, limit)} % of {human(limit)}, {distance}{compared})"
    ]
    if tile.limit.memory is not None:
        lines.append(f"the limit is {tile.limit.source}")
    lines += _wrapped(tile.limit.note)
    if tile.fits_packed_only:
        lines.append("  packed, as the kinds mxf4 and mxf4nvf4 read it, it would fit")
    lines.append("Arithmetic alone, no alignment, padding or barriers: `tilefit plan` has them.")
    if tile.fits:
        return lines
    smaller = tile.smaller()
    if smaller is None:
        return [*lines, f"DOES NOT FIT, and neither would single elements: {limit} B is too small."]
    command = ["tilefit", "footprint", "--tile", *map(str, smaller.shape)]
    command += ["--dtype", smaller.dtype.name, "--copies", str(smaller.copies)]
    return [*lines, "DOES NOT FIT. This would:", *_command(command, tile.limit)]


def tour_text(tour: Tour) -> str:
    """Return the tour: where allocations live, six tiles, and what a fragment is."""
    lines = [
        "A tile takes elements x bits / 8 bytes, rounded up to a byte, times its copies.",
        "",
        "Where TileLang puts an allocation by default (all of them: `tilefit scopes`)",
    ]
    names = [
        f"{row.function} (Ascend)" if row.dialect == "tilelang.ascend" else row.function
        for row in tour.scopes
    ]
    name_width = max(map(len, names))
    scope_width = max(len(row.scope) for row in tour.scopes)
    for name, row in zip(names, tour.scopes, strict=True):
        lines.append(
            f"  {name:<{name_width}}  {row.scope:<{scope_width}}  {row.memory}, per {row.owner}"
        )
    limit = tour.limit
    what = "Ascend A2 and A3 Unified Buffer" if limit.memory is None else limit.source
    lines += ["", f"Six tiles against {_both(limit.limit_bytes)}, {what}"]
    for name, case in tour.cases:
        verdict = {True: "fits", False: "DOES NOT FIT", None: "in registers"}[case.fits]
        lines.append(
            f"  {name:<25}  {case.shape!s:<10}  {case.dtype.name:<8}  x{case.copies}  "
            f"{human(case.total_bytes):>7}  {verdict}"
        )
    fragment = tour.fragment
    lines += [
        "Twice the bits or twice the copies is twice the bytes. On the chip a kernel may",
        "use a little less than the physical size: `tilefit devices` says how much.",
        "",
        "Why that fragment is written in the block's shape and lives in registers",
        f"  {human(fragment.total_bytes)} fragment / {tour.threads} threads "
        f"= {tour.bytes_per_thread} B = {tour.registers_per_thread} fp32 registers per thread",
        "alloc_fragment takes the shape of what the whole block computes: T.gemm, T.copy",
        "and T.reduce name the tile, and nobody writes down which thread has which",
        "element. The compiler chooses that layout and gives each thread its share as a",
        "private array, which the GPU keeps in registers. So the shape is the block's,",
        "the cost is per thread, and no shared memory is taken.",
        "",
        "One tile of yours: tilefit footprint --tile 128 256 --dtype float16 --copies 2",
    ]
    return "\n".join(lines) + "\n"


def budget_text(budget: Budget, sweep: Sequence[Budget] = ()) -> str:
    """Return the stage table, what it is worth, and how to make it fit if nothing does."""
    limit = budget.limit
    m, n, k = budget.block_m, budget.block_n, budget.block_k
    lines = [
        f"tile: A[{m},{k}] + B[{k},{n}], {_dtypes(budget)}",
        f"per stage: A {budget.a_bytes} B + B {budget.b_bytes} B = {budget.stage_bytes} B",
    ]
    if budget.charged_as == "containers":
        lines += [
            "  in 8-bit containers, as tcgen05 f8f6f4 reads fp4 and fp6 from shared memory",
            f"  packed it would be {budget.packed_stage_bytes} B",
        ]
    if budget.reserve_bytes:
        lines.append(f"reserve: {budget.reserve_bytes} B in every row")
    lines.append(f"budget: {_both(limit.limit_bytes)}, {limit.source}")
    lines += _wrapped(limit.note)
    if budget.max_stages in budget.stages:
        listed = "of any count, and it is in the table"
    elif budget.max_stages:
        listed = "of any count; it is not in the table"
    else:
        listed = "not even one stage does"
    lines += [
        f"largest stage count that fits: {budget.max_stages} ({listed})",
        "",
        *_stage_table(budget),
    ]
    if sweep:
        lines += ["", *_sweep_table(sweep)]
    lines += [
        "",
        "An estimate, not a bound: the compiler adds barriers, workspaces and alignment,",
        "and lets buffers share bytes. The compiled answer, without a GPU:",
        f"  tilefit plan FILE.py::KERNEL -d {limit.plan_device or 'DEVICE'}",
    ]
    if not budget.fits:
        lines += _budget_command(budget)
    return "\n".join(lines) + "\n"


def _dtypes(budget: Budget) -> str:
    a, b = (f"{t.name} ({t.bits} bit)" for t in (budget.dtype_a, budget.dtype_b))
    return a if budget.dtype_a == budget.dtype_b else f"A {a}, B {b}"


def _stage_table(budget: Budget) -> list[str]:
    table = [("stages", "bytes", "KiB", "of budget", "verdict")]
    for row in budget.rows:
        table.append(
            (
                str(row.num_stages),
                f"{row.total_bytes} B",
                f"{row.total_bytes / KIB:.1f}",
                f"{percent(row.total_bytes, budget.limit_bytes)} %",
                "fits" if row.fits else f"DOES NOT FIT, over by {-row.margin_bytes} B",
            )
        )
    return _columns(table, words=1)


def _sweep_table(sweep: Sequence[Budget]) -> list[str]:
    block_ks = list(dict.fromkeys(tiling.block_k for tiling in sweep))
    table = [("block_m x block_n", *(f"BK {block_k}" for block_k in block_ks))]
    by_tile: dict[tuple[int, int], list[str]] = {}
    for tiling in sweep:
        row = by_tile.setdefault((tiling.block_m, tiling.block_n), [])
        row.append(str(tiling.max_stages) if tiling.max_stages else "-")
    table += [(f"{m} x {n}", *counts) for (m, n), counts in by_tile.items()]
    return ["largest stage count that fits, by tile size and block_k (-: none)", *_columns(table)]


def _columns(table: Sequence[Sequence[str]], words: int = 0) -> list[str]:
    """Align to the right, and the last ``words`` columns to the left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    sides = [">"] * (len(widths) - words) + ["<"] * words
    return [
        "  ".join(f"{c:{side}{w}}" for c, side, w in zip(row, sides, widths, strict=True)).rstrip()
        for row in table
    ]


def _budget_command(budget: Budget) -> list[str]:
    smaller = budget.smaller()
    if smaller is None:
        return [f"No tile fits at all: {budget.limit_bytes} B is too small."]
    command = ["tilefit", "budget", "--bm", str(smaller.block_m), "--bn", str(smaller.block_n)]
    command += ["--bk", str(smaller.block_k), "--stages", *map(str, smaller.stages)]
    if smaller.dtype_a == smaller.dtype_b:
        command += ["--dtype", smaller.dtype_a.name]
    else:
        command += ["--dtype-a", smaller.dtype_a.name, "--dtype-b", smaller.dtype_b.name]
    if smaller.reserve_bytes:
        command += ["--reserve", str(smaller.reserve_bytes)]
    return ["No stage count in the table fits. This would:", *_command(command, budget.limit)]


def _both(n_bytes: int) -> str:
    return f"{n_bytes} B ({human(n_bytes)})" if n_bytes >= KIB else f"{n_bytes} B"


def _wrapped(note: str) -> list[str]:
    if not note:
        return []
    import textwrap

    glued = note.replace(" B", "\N{NO-BREAK SPACE}B")  # a number keeps its unit
    lines = textwrap.wrap(glued, 78, initial_indent="  ", subsequent_indent="  ")
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _command(command: list[str], limit: Limit) -> list[str]:
    import shlex

    return [f"  {shlex.join([*command, *limit.arguments])}"]
