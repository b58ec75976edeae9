"""The answer of `plan` as rows: CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from tilefit._kernel.memory import Memory
from tilefit._planning.report import Report, Result
from tilefit._render.visible import cell, markdown

_COLUMNS = (
    *("file", "kernel", "function", "device", "arch", "target", "verdict", "threads"),
    *("dynamic_bytes", "static_bytes", "total_bytes", "limit_bytes", "margin_bytes"),
    *("max_stages", "blocks_per_core", "blocks_exact", "limiters", "registers_per_thread"),
    *("built", "evidence", "reason"),
)
_SHORT = (
    *("device", "target", "threads", "total_bytes", "limit_bytes", "margin_bytes", "max_stages"),
    *("blocks_per_core", "limiters", "verdict"),
)


def render_csv(report: Report) -> str:
    """Return a header and a line for each result; parameters that vary lead the columns.

    Where whole files were asked about, kernels without a plan have a line too.
    """
    lead, rows = _rows(report, (*_COLUMNS, *(("params",) if report.several_kernels else ())))
    out = io.StringIO()
    lines: list[Sequence[object]] = [lead, *rows]
    shown = [[cell(value) for value in line] for line in lines]
    csv.writer(out, lineterminator="\n").writerows(shown)
    return out.getvalue().rstrip("\n")


def render_md(report: Report) -> str:
    """Return a Markdown table with the columns that people compare."""
    named = ("file", "kernel") if report.several_kernels else ()
    header, rows = _rows(report, (*named, *_SHORT))
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for row in rows:
        lines.append(f"| {' | '.join('' if value is None else markdown(value) for value in row)} |")
    notes = [
        f"- {markdown(result.device)}: {markdown(result.reason)}"
        for result in report.results
        if result.reason
    ]
    notes += [
        f"- {markdown(cells['file'])}: {markdown(cells['reason'])}" for cells in _failures(report)
    ]
    return "\n".join([*lines, *([""] if notes else []), *dict.fromkeys(notes)])


def _rows(report: Report, columns: Sequence[str]) -> tuple[list[str], list[list[object]]]:
    """Return the header and the cells; a parameter that has a column's name gets a prefix."""
    shown = [*columns, *_of_cores(report)]
    varying = () if report.several_kernels else report.varying
    header = [*(f"param.{name}" if name in shown else name for name in varying), *shown]
    rows: list[list[object]] = []
    for result in report.results:
        params, cells = dict(result.params), _cells(result)
        cells["params"] = " ".join(f"{name}={value}" for name, value in result.params)
        rows.append([*(params.get(n) for n in varying), *(cells.get(c) for c in shown)])
    rows += [[*(None for _ in varying), *map(cells.get, shown)] for cells in _failures(report)]
    return header, rows


def _failures(report: Report) -> list[dict[str, object]]:
    """Return the cells of what could not be read."""
    return [
        {
            **{"file": seen.file, "kernel": one.kernel, "device": one.device},
            **{"verdict": "needs-values" if one.needs_values else "failed", "reason": one.reason},
        }
        for seen in report.files
        for one in seen.failures
    ]


def _of_cores(report: Report) -> list[str]:
    """Return the columns for memories of cores: each that is used."""
    here = [result for result in report.results if result.by_core]
    used = {check.name for result in here for check in result.memories}
    memories = [m for m in Memory if m in used]
    names = [name for m in memories for name in (f"{m}_bytes", f"{m}_limit_bytes")]
    return ["memory", "rounds", "silent_overflow", *names] if memories else []


def _cells(result: Result) -> dict[str, object]:
    lowered, held = result.lowered, result.residency
    made = lowered.assembled if lowered else None
    check = result.main
    use = next((u for u in result.uses if check is not None and u.memory == check.name), None)
    by_memory: dict[str, object] = {}
    for found in result.memories:
        by_memory |= {f"{found.name}_bytes": found.value, f"{found.name}_limit_bytes": found.limit}
    return {
        **by_memory,
        "memory": check.name if check else None,
        "silent_overflow": result.silent_overflow,
        "rounds": result.rounds.rounds if result.rounds else None,
        "file": result.file,
        "kernel": result.kernel,
        "function": lowered.function if lowered else None,
        "device": result.device,
        "arch": result.arch,
        "target": result.target,
        "verdict": str(result.status),
        "threads": lowered.launch.threads if lowered else None,
        "dynamic_bytes": use.dynamic_bytes if use else None,
        "static_bytes": use.static_bytes if use else None,
        "total_bytes": use.total_bytes if use else None,
        "limit_bytes": check.limit if check else None,
        "margin_bytes": check.margin if check else None,
        "max_stages": result.stages.largest,
        "blocks_per_core": held.blocks if held else None,
        "blocks_exact": held.exact if held else None,
        "limiters": " ".join(held.limiters) if held else None,
        "registers_per_thread": made.registers_per_thread if made else None,
        "built": lowered.built if lowered else "not-tried",
        "evidence": str(result.evidence),
        "reason": result.reason,
    }
