"""Whether a lowered kernel uses instructions that its target does not have.

TileLang lowers what an author wrote by hand (tensor memory, wgmma, TMA ...) for any target; the
assembler or the device refuses it later. Such a kernel is meant for another chip, and its bytes
say nothing about this one.
"""

from __future__ import annotations

import re
from typing import Any

from tilefit._frontends.ptx import (
    FIRST_WARP_GROUPS,
    TENSOR_VERSIONS,
    WGMMA_VERSIONS,
    version_of,
)
from tilefit._frontends.tilelang.declared import declared_buffers, visit

_AMD = "MFMA"
# instruction family: name in words, pattern of TileLang's operators, where it exists.
# PTX ISA 9.0, "Target ISA notes" of tcgen05.*, wgmma.*, cp.async.bulk.tensor, setmaxnreg, and the
# AMD CDNA instruction sets for MFMA.
_FAMILIES = (
    ("tensor memory (tcgen05)", re.compile(r"tcgen05|tmem"), lambda v: v in TENSOR_VERSIONS),
    ("wgmma", re.compile(r"wgmma|warpgroup_(arrive|commit|wait)"), lambda v: v in WGMMA_VERSIONS),
    ("TMA", re.compile(r"^tl\.(tma_|create_tma)"), lambda v: v >= FIRST_WARP_GROUPS),
    ("setmaxnreg", re.compile(r"\bset_max_nreg\b"), lambda v: v >= FIRST_WARP_GROUPS),
    (_AMD, re.compile(r"mfma|amdgcn"), lambda _: False),
)


def foreign_instructions(prim_func: Any, device_mod: Any, target: str) -> str | None:
    """Say which instructions of a lowered kernel a target does not have; None if it has all.

    Args:
        prim_func: The kernel as its author wrote it.
        device_mod: Its device functions; None where lowering failed.
        target: ``sm_90a`` or ``gfx942``.
    """
    version = version_of(target)
    if version is None and not target.startswith("gfx"):
        return None
    used = set() if device_mod is None else _operators(device_mod)
    if any(str(b.scope()) == "shared.tmem" for b in declared_buffers(prim_func.body)):
        used.add("tmem")
    for words, pattern, exists in _FAMILIES:
        there = words == _AMD if version is None else exists(version)
        if any(pattern.search(name) for name in used) and not there:
            return f"it uses {words}, which {target} does not have"
    return None


def _operators(device_mod: Any) -> set[str]:
    names: set[str] = set()

    def look(node: Any) -> None:
        name = getattr(getattr(node, "op", None), "name", None)
        if name is not None:
            names.add(str(name))

    for function in device_mod.functions.values():
        visit(function.body, look)
    return names
