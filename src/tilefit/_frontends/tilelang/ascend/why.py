"""Why an Ascend buffer has its versions, as the compiler's own passes show it.

The author may fix them. Otherwise the pass that looks for multi-buffering says which loop owns a
buffer, the scheduler chooses between 1 and num_stages of that loop, and where it took fewer it is
asked once more without its limits on memory: what it takes then tells lack of room from lack of
use. The codes are those of `tilefit._kernel.reasons`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefit._frontends.tilelang.ascend.ir import (
    MANUAL,
    SCHEDULE_PASS,
    VERSIONS,
    AscendCapture,
    Key,
    allocated,
    annotated,
    block_names,
    bodies,
    keyed,
    noted,
)
from tilefit._frontends.tilelang.ascend.steps import Span, Steps
from tilefit._frontends.tilelang.declared import dim, nbytes
from tilefit._kernel.reasons import Why

_UNLIMITED = "tl.unlimit_memory_scopes"
# what the scheduler counts with: ScheduleSingleKernel in src/ascend/transform/auto_schedule.cc
_ROOM = {
    "shared": 248 * 1024,
    "shared.l1": 512 * 1024,
    "shared.l0a": 64 * 1024,
    "shared.l0b": 64 * 1024,
    "shared.l0c": 256 * 1024,
}
_SIMT_BYTES = 32 * 1024  # kept for the threads of a kernel with SIMT


class Versions:
    """The versions of one kernel's buffers and what decided them."""

    def __init__(self, capture: AscendCapture, steps: Steps) -> None:
        self._steps = steps
        self._asked = capture.module(f"before {SCHEDULE_PASS}")
        source = self._asked or capture.scheduled
        self._fixed = _counts(source, VERSIONS)
        self._manual = _counts(source, MANUAL)
        self._chosen = _counts(capture.module(f"after {SCHEDULE_PASS}"), VERSIONS)
        self._room = _Room(source)
        self._free: dict[Key, int] | None = None
        self._tried = False

    def copies(self, key: Key) -> int:
        """Return the versions of a buffer."""
        return self._chosen.get(key, 1)

    def stages(self, key: Key) -> int | None:
        """Return the num_stages of the loop that decides a buffer's versions, None without one."""
        loops = self._owners(key) or self._steps.around(key)
        return max((loop.stages for loop in loops if loop.stages), default=None)

    def why(self, key: Key, copies: int) -> Why:
        """Return the code for a buffer that lowering kept."""
        if key in self._manual:
            return Why.MANUAL_VERSIONS
        if self._asked is None:
            return Why.SCHEDULE_OFF
        if key in self._fixed:
            return Why.FIXED_VERSIONS
        stages = self.stages(key)
        if stages is None:
            return Why.NOT_PIPELINED
        if stages <= 1:
            return Why.ONE_STAGE
        owners = self._owners(key)
        if not any((loop.stages or 1) > 1 for loop in owners):
            return Why.OUTLIVES_ITERATION
        if copies >= stages:
            return Why.SCHEDULED
        held_back = self._held_back(key, copies, owners, stages)
        if held_back is None:
            return Why.FEWER_TAKEN
        return Why.NO_ROOM if held_back else Why.FEWER_SUFFICE

    def _owners(self, key: Key) -> list[Span]:
        return [loop for loop in self._steps.loops if key in loop.owned]

    def _held_back(self, key: Key, copies: int, owners: list[Span], stages: int) -> bool | None:
        """Return whether the scheduler would take more versions if the memory were larger.

        Returns:
            None if it could not be asked again.
        """
        scope = self._room.scope(key)
        most = {k: stages for loop in owners for k in loop.owned}
        if not any(self._demand(loop, scope, most) > self._room.limit(scope) for loop in owners):
            return False  # all that num_stages allows would fit
        free = self._taken_without_limits()
        if free is None:
            return None
        return free.get(key, 1) > copies and any(
            self._demand(loop, scope, free) > self._room.limit(scope) for loop in owners
        )

    def _taken_without_limits(self) -> dict[Key, int] | None:
        if not self._tried:
            self._tried = True
            try:
                self._free = _counts(_schedule_without_limits(self._asked), VERSIONS)
            except (RuntimeError, TypeError, ValueError):  # what TVM raises
                self._free = None
        return self._free

    def _demand(self, loop: Span, scope: str, versions: Mapping[Key, int]) -> int:
        """Return the bytes that a loop needs of a memory with these versions of what it owns."""
        return sum(
            self._room.bytes(key)
            * (self._fixed.get(key) or versions.get(key, 1) if key in loop.owned else 1)
            for key in self._steps.within(loop)
            if self._room.scope(key) == scope
        )


class _Room:
    """The sizes that the scheduler counts, and the memory that it counts them against."""

    def __init__(self, module: Any) -> None:
        buffers = allocated(module)
        keys = keyed(buffers)
        self._bytes = {keys[b.data]: nbytes([dim(d) for d in b.shape], b.dtype) for b in buffers}
        self._scopes = {keys[b.data]: str(b.scope()).removesuffix(".dyn") for b in buffers}
        names = {name for body in bodies(module) for name in block_names(body)}
        self._simt_bytes = _SIMT_BYTES if "SIMT_VF" in names else 0
        self._unlimited = {
            str(scope) for body in bodies(module) for scope in noted(body, _UNLIMITED)
        }

    def scope(self, key: Key) -> str:
        return self._scopes.get(key, "")

    def bytes(self, key: Key) -> int:
        return self._bytes.get(key) or 0

    def limit(self, scope: str) -> float:
        if scope in self._unlimited or scope not in _ROOM:
            return float("inf")
        return _ROOM[scope] - (self._simt_bytes if scope == "shared" else 0)


def _counts(module: Any, name: str) -> dict[Key, int]:
    keys = keyed(allocated(module))
    found: dict[Key, int] = {}
    for body in bodies(module):
        for storage, count in annotated(body, name).items():
            if storage in keys:
                found[keys[storage]] = count
    return found


def _schedule_without_limits(module: Any) -> Any:
    """Run the scheduler once more on what it got, with room for everything."""
    from tilelang import tvm
    from tilelang.ascend import transform
    from tvm.tirx.stmt_functor import ir_transform

    def unlimited(node: Any) -> Any:
        if str(node.name_hint) != "tilelang_root":
            return None
        notes = {**dict(node.annotations or {}), _UNLIMITED: list(_ROOM)}
        return tvm.tirx.SBlock(
            node.iter_vars,
            node.reads,
            node.writes,
            node.name_hint,
            node.body,
            node.init,
            node.alloc_buffers,
            node.match_buffers,
            notes,
        )

    functions = {
        symbol: function.with_body(ir_transform(function.body, None, unlimited, ["tirx.SBlock"]))
        if hasattr(function, "body")
        else function
        for symbol, function in module.functions.items()
    }
    return transform.AutoSchedule()(tvm.IRModule(functions, attrs=module.attrs))
