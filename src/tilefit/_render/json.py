"""The answer of `plan` as JSON; the keys are a contract (docs/json.md)."""

from __future__ import annotations

import json
from typing import Any

from tilefit._kernel.kernel import CannotAssemble, Kernel, Listing
from tilefit._planning.report import FileSeen, Report, Residency, Result, Rounds, Rung, Tried

SCHEMA_VERSION = 1


def render(report: Report) -> str:
    """Return the report as one JSON document."""
    body: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evidence": report.evidence,
        "summary": {
            "results": len(report.results),
            "verdicts": report.verdicts,
            "max_stages_everywhere": report.stages_everywhere,
        },
        "results": [_result(r) for r in report.results],
    }
    if report.files:
        body["seen"] = {
            **report.counts,
            "verdicts": report.kernel_verdicts,
            "files_without_kernels": report.files_without_kernels,
        }
        body["files"] = [_file(seen) for seen in report.files]
    return json.dumps(body, indent=2)


def _file(seen: FileSeen) -> dict[str, Any]:
    return {
        "file": seen.file,
        "seen": seen.seen,
        "planned": seen.planned,
        "refused": seen.refused,
        "failed": seen.failed,
        "needing": seen.needing,
        "failures": [
            {"kernel": one.kernel, "device": one.device, "reason": one.reason}
            for one in seen.failures
            if not one.needs_values
        ],
        "needs_values": [
            {"kernel": one.kernel, "parameters": list(one.needs)}
            for one in seen.failures
            if one.needs_values
        ],
        "remarks": list(seen.remarks),
    }


def render_listing(file: str, listings: tuple[Listing, ...], note: str | None = None) -> str:
    """Return the kernels of a file as one JSON document, with what there is to say of them."""
    kernels = [
        {
            "name": item.name,
            "style": item.style,
            "line": item.line,
            "parameters": [
                {"name": p.name, "default": p.default, "required": p.required}
                for p in item.parameters
            ],
        }
        for item in listings
    ]
    body = {"schema_version": SCHEMA_VERSION, "evidence": "declared", "file": file}
    return json.dumps({**body, "kernels": kernels, "note": note}, indent=2)


def _result(result: Result) -> dict[str, Any]:
    lowered = result.lowered
    made = lowered.assembled if lowered else None
    return {
        "file": result.file,
        "kernel": result.kernel,
        "function": lowered.function if lowered else None,
        "params": dict(result.params),
        "device": result.device,
        "arch": result.arch,
        "target": result.target,
        "toolchain": {"name": result.toolchain, "version": result.toolchain_version},
        "verdict": result.status,
        "reason": result.reason,
        "evidence": result.evidence,
        "silent_overflow": result.silent_overflow,
        "built": _built(lowered),
        "matrix": None
        if lowered is None or lowered.matrix is None
        else [{"path": m.path, "shape": m.shape, "dtype": m.dtype} for m in lowered.matrix],
        "matrix_instructions": made.matrix_instructions if made else None,
        "traps": made.traps if made else None,
        "threads": lowered.launch.threads if lowered else None,
        "threads_declared": lowered.launch.threads_declared if lowered else None,
        "grid": list(lowered.launch.grid) if lowered and lowered.launch.grid else None,
        "cluster": list(lowered.launch.cluster) if lowered and lowered.launch.cluster else None,
        "roles": [
            {"name": r.name, "threads": r.threads, "registers": r.registers}
            for r in (lowered.roles if lowered else ())
        ],
        "cores": lowered.cores if lowered else None,
        "conditions": list(lowered.conditions) if lowered else [],
        "overlaps": list(lowered.overlaps) if lowered else [],
        "notes": list(lowered.notes) if lowered else [],
        "registers_per_thread": made.registers_per_thread if made else None,
        "spill_bytes": made.spill_bytes if made else None,
        "stack_bytes": made.stack_bytes if made else None,
        "limits": [
            {
                "name": c.name,
                "value": c.value,
                "limit": c.limit,
                "verdict": c.status,
                "reason": c.reason,
                "holds_while": None
                if c.holds is None
                else {"expression": c.holds.expression, "most": c.holds.most},
            }
            for c in result.limits
        ],
        "memories": [
            {
                "memory": use.memory,
                "owner": use.owner,
                "dynamic_bytes": use.dynamic_bytes,
                "least_bytes": use.least_bytes,
                "static_bytes": use.static_bytes,
                "static_raw_bytes": use.static_raw_bytes,
                "total_bytes": use.total_bytes,
                "columns": use.columns,
                "limit_bytes": check.limit,
                "limit_reason": check.limit_reason,
                "margin_bytes": check.margin,
                "verdict": check.status,
                "silent_overflow": check.silent,
                "evidence": use.evidence,
            }
            for use, check in zip(result.uses, result.memories, strict=True)
        ],
        "buffers": [
            {
                "name": b.name,
                "scope": b.scope,
                "memory": b.memory,
                "owner": b.owner,
                "shape": list(b.shape),
                "padded_shape": list(b.padded_shape) if b.padded_shape else None,
                "dtype": b.dtype,
                "stages": b.stages,
                "copies": b.copies,
                "bytes": b.bytes,
                "bytes_per_thread": b.bytes_per_thread,
                "offset": b.offset,
                "align_bytes": b.align_bytes,
                "align_why": b.align_why,
                "live": list(b.live) if b.live else None,
                "static": b.static,
                "line": b.line,
                "origin": b.origin,
                "why": b.why,
                "detail": b.detail,
                "evidence": b.evidence,
            }
            for b in (lowered.buffers if lowered else ())
        ],
        "max_stages": result.stages.largest,
        "max_stages_reason": result.stages.reason,
        "versions": [
            {"buffer": v.buffer, "num_stages": v.asked, "versions": v.chosen}
            for v in result.stages.versions
        ],
        "max_stages_bytes": result.stages.largest_bytes,
        "next_stage_bytes": result.stages.next_bytes,
        "rows": [
            {
                "name": row.name,
                "kind": row.kind,
                "memory": row.memory,
                "static": row.static,
                "offset": row.offset,
                "bytes": row.bytes,
                "own_bytes": row.own_bytes,
                "shares_with": list(row.shares_with),
                "origin": row.origin,
                "why": row.why,
            }
            for row in result.rows
        ],
        "packing_note": result.packing_note,
        "ladder": [_rung(rung, result) for rung in result.ladder] or None,
        "occupancy": _rounds(result.rounds) or _residency(result.residency),
        "suggestions": [_suggestion(one) for one in result.fitting],
        "tried": len(result.tried),
        "advice_untried": list(result.advice),
    }


def _built(lowered: Kernel | None) -> str:
    if lowered is None:
        return "not-tried"
    if isinstance(lowered.assembly, CannotAssemble):
        return f"{lowered.built}({lowered.assembly.reason})"
    return lowered.built


def _residency(found: Residency | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "blocks_per_core": found.blocks,
        "exact": found.exact,
        "limiters": list(found.limiters),
        "by_shared": found.by_shared,
        "by_registers": found.by_registers,
    }


def _rounds(found: Rounds | None) -> dict[str, Any] | None:
    """Return what Ascend has in place of resident blocks."""
    if found is None:
        return None
    return {
        "rounds": found.rounds,
        "blocks": found.blocks,
        "cores": found.cores,
        "core": found.core,
        "reason": found.reason,
    }


def _rung(rung: Rung, result: Result) -> dict[str, Any]:
    outcome = rung.outcome
    return {
        "parameter": result.ladder_parameter,
        "value": rung.value,
        "verdict": outcome.status,
        "reason": outcome.reason,
        "memory": outcome.memory,
        "total_bytes": outcome.total_bytes,
        "limit_bytes": outcome.limit_bytes,
        "margin_bytes": outcome.margin_bytes,
        "memories": dict(outcome.totals),
        "in_flight_bytes_per_block": rung.in_flight_bytes,
        "in_flight_bytes_per_core": rung.in_flight_bytes_per_core,
        "same_code_as": rung.same_as,
        "occupancy": _residency(rung.residency),
    }


def _suggestion(one: Tried) -> dict[str, Any]:
    outcome = one.outcome
    return {
        "set": dict(one.edit.params),
        "pass_configs": dict(one.edit.pass_configs),
        "cost": one.edit.cost,
        "memory": outcome.memory,
        "total_bytes": outcome.total_bytes,
        "margin_bytes": outcome.margin_bytes,
        "blocks_per_core": one.residency.blocks if one.residency else None,
        "spill_bytes": outcome.spill_bytes,
        "loses": {
            "blocks_per_core": one.loss.blocks_per_core,
            "spill_bytes": one.loss.spill_bytes,
            "tensor_cores": one.loss.tensor_cores,
            "matrix_path": one.loss.matrix_path,
        },
        "verdict": outcome.status,
    }
