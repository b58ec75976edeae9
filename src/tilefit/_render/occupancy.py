"""The answer of ``occupancy``: text of at most 80 columns, or the document for JSON."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from tilefit._occupancy.occupancy import Cliff, Occupancy, Role

_WIDTH = 80
_FLAGS = {
    "threads": "--threads",
    "registers": "--regs",
    "shared": "--smem",
    "lds": "--smem",
    "static": "--static",
    "max_dynamic": "--max-dynamic",
    "carveout": "--carveout",
    "barriers": "--barriers",
    "cluster": "--cluster",
    "tmem_columns": "--tmem",
    "wave": "--wave",
}


def occupancy_text(answer: Occupancy, spec: str) -> str:
    """Return the answer as text.

    Args:
        answer: What to show.
        spec: The device as the user named it, for the command to paste.
    """
    lines = [f"{answer.title}   {answer.arch}", *_headline(answer), "", *_table(answer)]
    lines += ["", *_next_lines(answer, spec)]
    if answer.notes:
        lines.append("")
    for note in answer.notes:
        lines += _folded(note, "- ", 2)
    return "\n".join(lines) + "\n"


def _headline(answer: Occupancy) -> Iterable[str]:
    if not answer.fits:
        for problem in answer.problems:
            yield from _folded(f"DOES NOT FIT   {problem.text}", "", 15)
        if not answer.blocks_per_core:
            return
    count, core = answer.blocks_per_core, answer.limits.core
    held = _and(answer.limiters)
    if answer.registers_known:
        text = f"{_blocks(count)} per {core}, held by {held}"
    else:
        text = f"at most {_blocks(count)} per {core} (registers unknown), held by {held}"
    yield from _folded(text, "", 2)
    yield (
        f"{answer.active_warps} of {answer.limits.max_warps} {_warps(answer)}s active, "
        f"{answer.percent:.3g} %"
    )


def _table(answer: Occupancy) -> Iterable[str]:
    rows = [("limit", "blocks", "one block takes")]
    for name, blocks in answer.tightest_first:
        count = "-" if blocks is None else str(blocks)
        if name == "registers" and not answer.registers_known:
            count = "?"
        rows.append((name, count, _takes(answer, name)))
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    for name, count, takes in rows:
        head = f"{name:<{widths[0]}}  {count:>{widths[1]}}  "
        yield from _folded(takes, head, len(head))


def _takes(answer: Occupancy, name: str) -> str:
    limits = answer.limits
    if name == "warps":
        return f"{answer.warps_per_block:,} of {limits.max_warps} {_warps(answer)}s"
    if name == "registers":
        return _takes_registers(answer)
    if name == limits.shared_name:
        reserved, asked = limits.shared_reserved_bytes, answer.asked_shared_bytes_per_block
        words = [f"{asked:,} + {reserved:,} reserved"] if reserved else []
        allocated = answer.allocated_shared_bytes_per_block
        words += _rounded(answer.charged_shared_bytes_per_block, allocated, "")
        return _explained(f"{allocated:,} of {answer.shared_bytes_per_core:,} B", words)
    if name == "barriers" and limits.barriers is not None:
        return f"{answer.request.barriers} of {limits.barriers}"
    return ""


def _takes_registers(answer: Occupancy) -> str:
    limits = answer.limits
    allocated = answer.allocated_registers_per_block
    if allocated is None:
        most = answer.registers_for_blocks
        keeps = _blocks(max(answer.blocks_per_core, 1))
        return f"unknown: {keeps} if a thread has at most {most} (--regs N)"
    asked = answer.asked_registers_per_warp or 0
    per_warp = answer.registers_per_warp or 0
    words = [f"{answer.warps_per_block:,} {_warps(answer)}s x {per_warp:,}"]
    words += _rounded(asked, per_warp, " each")
    text = _explained(f"{allocated:,} of {limits.registers_per_core:,}", words)
    if answer.vendor in _PER_PART:
        slots = answer.max_warps_per_subpartition
        text += f"; {answer.warps_per_subpartition} of {slots} {_PER_PART[answer.vendor]}"
    return text


def _rounded(asked: int, taken: int, each: str) -> list[str]:
    return [] if asked == taken else [f"rounded up from {asked:,}{each}"]


def _explained(text: str, words: Sequence[str]) -> str:
    return f"{text}: {', '.join(words)}" if words else text


def _next_lines(answer: Occupancy, spec: str) -> Iterable[str]:
    step = answer.step
    if step.blocks is None:
        yield from _folded(f"No more: {step.reason}", "", 2)
    else:
        need = "need" if step.blocks > 1 else "needs"
        all_of = " all of this" if len(step.cliffs) > 1 else ""
        yield f"{_blocks(step.blocks)} {need}{all_of}"
        rows = [_cliff_row(cliff) for cliff in step.cliffs]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        for name, what, now in rows:
            yield f"  {name:<{widths[0]}}  {what:<{widths[1]}}  {now}"
        for cliff in step.cliffs:
            yield from _cliff_remarks(answer, cliff)
    if step.blocks is not None or (answer.blocks_per_core and answer.problems):
        yield from _pasteable(_command(answer, spec))


def _cliff_row(cliff: Cliff) -> tuple[str, str, str]:
    unit = {"bytes": " B", "percent": " %", "registers per thread": " per thread"}.get(
        cliff.unit, ""
    )
    value = cliff.at_least if cliff.at_most is None else cliff.at_most
    bound = "at least" if cliff.at_most is None else "at most"
    now = "unknown" if cliff.now is None else f"{cliff.now:,}{unit.removesuffix(' per thread')}"
    return cliff.resource, f"{bound} {value:,}{unit}", f"now {now}"


def _cliff_remarks(answer: Occupancy, cliff: Cliff) -> Iterable[str]:
    if cliff.roles:
        yield from _folded(
            f"with fewer registers at launch the setmaxnreg roles have to come down from "
            f"{_slashed(answer.roles)} to {_slashed(cliff.roles)}, or they wait for ever",
            "  ",
            2,
        )
    if cliff.or_carveout is not None:
        yield f"  for {cliff.resource}, a carveout of {cliff.or_carveout} % would do as well"


def _pasteable(options: Sequence[str]) -> Iterable[str]:
    """Yield a shell command, in as many lines as it needs; an option keeps its value."""
    line = "  tilefit occupancy"
    for option in options:
        if len(f"{line} {option} \\") > _WIDTH:
            yield f"{line} \\"
            line = "   "
        line = f"{line} {option}"
    yield line


def _command(answer: Occupancy, spec: str) -> Sequence[str]:
    """Return the options of the command for the block as it would have to be."""
    request, shared = answer.request, answer.limits.shared_name
    values: dict[str, Any] = {
        "threads": request.threads,
        "registers": request.registers,
        shared: answer.asked_shared_bytes_per_block or None,
        "static": request.static or None,
        "max_dynamic": request.max_dynamic,
        "carveout": answer.carveout,
        "barriers": request.barriers if request.barriers != 1 else None,
        "cluster": answer.cluster,
        "tmem_columns": answer.tensor_columns,
        "wave": answer.wave,
        "roles": answer.roles,
    }
    values |= {problem.argument: problem.value for problem in answer.problems}
    for cliff in answer.next:
        values[cliff.resource] = cliff.at_least if cliff.at_most is None else cliff.at_most
        values["roles"] = cliff.roles or values["roles"]
    if values["static"] is not None:
        values["static"] = min(values["static"], values[shared])
    options = [f"-d {shlex.quote(spec)}"]
    options += [
        f"{flag} {values[name]}" for name, flag in _FLAGS.items() if values.get(name) is not None
    ]
    if not request.optin:
        options.append("--no-optin")
    roles: Sequence[Role] = values["roles"] or ()
    return options + [f"--role {role.threads}:{role.registers}" for role in roles]


def _warps(answer: Occupancy) -> str:
    return _WARP.get(answer.vendor, "warp")


_WARP = {"amd": "wave"}
_PER_PART = {"amd": "waves per SIMD"}
"""What a vendor calls it, and where it says how full a part of a core is."""


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _slashed(roles: Sequence[Role]) -> str:
    return "/".join(str(role.registers) for role in roles)


def _folded(text: str, head: str, indent: int) -> list[str]:
    glued = text.replace(" B", "\N{NO-BREAK SPACE}B").replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(
        glued,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [head.rstrip()]


def occupancy_dict(answer: Occupancy) -> dict[str, Any]:
    """Return the document of ``occupancy --json`` but for its version; sizes are bytes."""
    request = answer.request
    return {
        "device": answer.device,
        "arch": answer.arch,
        "core": answer.limits.core,
        "threads": request.threads,
        "registers": request.registers,
        "static_bytes": request.static,
        "dynamic_bytes": request.dynamic,
        "fits": answer.fits,
        "problems": [problem.text for problem in answer.problems],
        "blocks_per_core": answer.blocks_per_core,
        "upper_bound": not answer.registers_known,
        "limiters": list(answer.limiters),
        "limits": dict(answer.blocks_by),
        "warps_per_block": answer.warps_per_block,
        "active_warps": answer.active_warps,
        "max_warps": answer.limits.max_warps,
        "percent": answer.percent,
        "asked_registers_per_warp": answer.asked_registers_per_warp,
        "asked_shared_bytes_per_block": answer.asked_shared_bytes_per_block,
        "charged_shared_bytes_per_block": answer.charged_shared_bytes_per_block,
        "max_warps_per_subpartition": answer.max_warps_per_subpartition,
        "allocated_registers_per_block": answer.allocated_registers_per_block,
        "allocated_shared_bytes_per_block": answer.allocated_shared_bytes_per_block,
        "warps_per_subpartition": answer.warps_per_subpartition,
        "registers_for_blocks": answer.registers_for_blocks,
        "carveout": answer.carveout,
        "carveout_bytes": request.carveout,
        "shared_bytes_per_core": answer.shared_bytes_per_core,
        "tensor_columns": answer.tensor_columns,
        "tensor_blocks": answer.tensor_blocks,
        "cluster": answer.cluster,
        "active_clusters": None,
        "roles": _role_dicts(answer.roles),
        "next": [
            {
                "blocks_per_core": answer.step.blocks,
                "resource": cliff.resource,
                "unit": cliff.unit,
                "now": cliff.now,
                "at_most": cliff.at_most,
                "at_least": cliff.at_least,
                "or_carveout": cliff.or_carveout,
                "roles": _role_dicts(cliff.roles),
            }
            for cliff in answer.next
        ],
        "next_reason": answer.step.reason or None,
        "notes": list(answer.notes),
    }


def _role_dicts(roles: Iterable[Role]) -> list[dict[str, int]]:
    return [{"threads": role.threads, "registers": role.registers} for role in roles]
