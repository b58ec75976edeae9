"""Bytes of a kernel at values of its parameters that nobody lowered, from lowerings nearby.

How each buffer's bytes hang on one parameter is read from two lowerings that differ in it alone: by
a power for a tile, by a step for stages. Our own packer then lays the buffers out. What comes out
is modelled: it decides which edits are worth a lowering, and never what is said of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from tilefit._kernel.kernel import Buffer, Kernel
from tilefit._kernel.memory import STAGING
from tilefit._placement.tilelang_packer import Interval, pack


class Foresight:
    """What is known of one kernel, around its parameters as they are."""

    def __init__(
        self, kernels: Sequence[Kernel], own: Mapping[str, object], stages: Sequence[str]
    ) -> None:
        """Begin with the kernel as it is.

        Args:
            kernels: Its device functions; none where it could not be lowered.
            own: Its parameters.
            stages: Those of them that set stages.
        """
        self._kernels, self._stages = tuple(kernels), frozenset(stages)
        self._own = {n: v for n, v in own.items() if type(v) is int and v > 0}
        # of a parameter: its other value, and the bytes of every buffer with it
        self._seen: dict[str, tuple[int, list[list[int]]]] = {}

    def learn(self, params: Mapping[str, int], kernels: Sequence[Kernel]) -> None:
        """Take in the kernel at other values: they tell of the one parameter that is new in them.

        A tile may not lower alone, and do so together with fewer threads.
        """
        same = [[b.name for b in _dynamic(k)] for k in self._kernels] == [
            [b.name for b in _dynamic(k)] for k in kernels
        ]
        new = [name for name in params if name not in self._seen]
        if not same or len(new) != 1 or any(name not in self._own for name in params):
            return
        (name,) = new
        others = {n: v for n, v in params.items() if n != name}
        alone = []
        for number, (before, after) in enumerate(zip(self._kernels, kernels, strict=True)):
            pairs = zip(_dynamic(before), _dynamic(after), strict=True)
            alone.append(
                [
                    round((b.bytes or 0) * (a.bytes or 0) / expected) if expected else 0
                    for place, (b, a) in enumerate(pairs)
                    for expected in [self._bytes(number, place, b.bytes or 0, others)]
                ]
            )
        self._seen[name] = params[name], alone

    def total_bytes(self, params: Mapping[str, int]) -> int | None:
        """Return the bytes of a block with other values; None if how they change is not known."""
        if not self._kernels or any(name not in self._seen for name in params):
            return None
        totals = [self._total(n, kernel, params) for n, kernel in enumerate(self._kernels)]
        known = [total for total in totals if total is not None]
        return max(known) if len(known) == len(totals) else None

    def _total(self, number: int, kernel: Kernel, params: Mapping[str, int]) -> int | None:
        use = kernel.staged
        buffers = _dynamic(kernel)
        if use is None or any(b.live is None for b in buffers):
            return None
        packed = pack(
            [
                Interval(
                    name=b.name,
                    start=b.live[0] if b.live else 0,
                    end=b.live[1] if b.live else 0,
                    bytes=self._bytes(number, place, b.bytes or 0, params),
                    align_bytes=b.align_bytes or 1,
                )
                for place, b in enumerate(buffers)
            ],
            reuse=kernel.reuse,
        )
        if packed.total_bytes is None:
            return None
        return packed.total_bytes + use.padded_static_bytes

    def _bytes(self, number: int, place: int, now: int, params: Mapping[str, int]) -> int:
        found = float(now)
        for name, value in params.items():
            was, (other, all_bytes) = self._own[name], self._seen[name]
            then = all_bytes[number][place]
            if name in self._stages:
                found *= max(now - (now - then) * (was - value) / (was - other), 0) / max(now, 1)
            elif now and then:
                power = round(log2(then / now) / log2(other / was))
                found *= (value / was) ** power
        return round(found)


def _dynamic(kernel: Kernel) -> list[Buffer]:
    """Return the buffers that share the dynamic array of a block."""
    return [b for b in kernel.buffers if b.memory in STAGING and not b.static and b.copies != 0]
