"""A tiled GEMM whose lowering is arithmetic: for tests of what drives a compiler, without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.stand_in import StandIn
from tests.values import buffer, card, kernel
from tilefit._errors import RefusedError
from tilefit._kernel.kernel import Kernel, Listing, Parameter
from tilefit._kernel.request import Request
from tilefit._placement.place import place
from tilefit._verdict.judge import Verdict, judge

DEFAULTS: dict[str, Any] = {
    **{"M": 4096, "N": 4096, "K": 4096, "block_M": 128, "block_N": 128, "block_K": 64},
    **{"num_stages": 3, "threads": 128, "dtype": "float16"},
}


def tile_bytes(params: Mapping[str, Any]) -> int:
    """The fp16 tiles of A and of B for every stage."""
    p = {**DEFAULTS, **params}
    return 2 * p["num_stages"] * (p["block_M"] * p["block_K"] + p["block_K"] * p["block_N"])


def lowered(
    params: Mapping[str, Any], pass_configs: Mapping[str, Any] | None = None
) -> tuple[Kernel, ...]:
    """The kernel for these parameters; N tiles of more than 256 are refused."""
    p = {**DEFAULTS, **params}
    if p["block_N"] > 256:
        raise RefusedError(f"N of an instruction is at most 256, not {p['block_N']}")
    a = 2 * p["num_stages"] * p["block_M"] * p["block_K"]
    b = 2 * p["num_stages"] * p["block_K"] * p["block_N"]
    found = kernel(
        buffer("A_s", a, offset=0, live=(3, 9), copies=p["num_stages"], why="pipeline"),
        buffer("B_s", b, offset=a, live=(3, 9), copies=p["num_stages"], why="pipeline"),
        dynamic_bytes=a + b,
        threads=p["threads"],
        threads_declared=p["threads"],
        grid=(p["N"] // p["block_N"], p["M"] // p["block_M"], 1),
    )
    return (replace(found, name="gemm", params=tuple(p.items())),)


def judged(shared_bytes: int) -> Callable[[Kernel], Verdict]:
    """The verdict on a card with so much shared memory and the usual launch limits."""
    grid = (2**31 - 1, 65535, 65535)
    device = card(shared_bytes, max_threads_per_block=1024, max_grid=grid)
    return lambda value: judge(value, place(value), device)


class MadeSession(StandIn):
    """Stands for the child process that has a compiler."""

    def load(self, _: object = ()) -> tuple[Listing, ...]:
        parameters = tuple(
            Parameter(name=name, default=value, required=False) for name, value in DEFAULTS.items()
        )
        return (Listing(name="gemm", style="factory", line=1, parameters=parameters),)

    def read(self, request: Request) -> tuple[Kernel, ...]:
        assert request.kernel == "gemm"
        made = lowered(request.params, request.options)
        return tuple(replace(k, target=request.target) for k in made)
