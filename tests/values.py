"""Small kernels and devices made by hand, for tests of the pure core."""

from __future__ import annotations

from typing import Any

from tilefit._devices.names import Device, Pool
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._frontends.uses import gpu_uses
from tilefit._kernel.extent import OpenSize
from tilefit._kernel.kernel import Assembled, Buffer, Dim, Kernel, Launch, Loop
from tilefit._kernel.memory import Evidence, Memory, Owner
from tilefit._placement import compare

KIB = 1024


def buffer(name: str, n_bytes: int | None, **changes: Any) -> Buffer:
    """A buffer of bytes, in dynamic shared memory unless changed."""
    values: dict[str, Any] = {
        "scope": "shared.dyn",
        "memory": Memory.SHARED,
        "owner": Owner.BLOCK,
        "shape": (n_bytes if n_bytes is not None else "n",),
        "dtype": "int8",
    }
    return Buffer(name=name, bytes=n_bytes, **{**values, **changes})


def tmem(name: str, columns: int | None, **changes: Any) -> Buffer:
    """A buffer of so many columns of tensor memory: 128 lanes of 4 bytes each."""
    n_bytes = None if columns is None else columns * 128 * 4
    return buffer(name, n_bytes, memory=Memory.TENSOR, scope="shared.tmem", **changes)


def made(**changes: Any) -> Assembled:
    """What an assembler made: nothing remarkable unless changed."""
    values: dict[str, Any] = {"registers_per_thread": 32, "spill_bytes": 0, "stack_bytes": 0}
    return Assembled(**{**values, "static_bytes": 0, **changes})


def packing_differs(value: Kernel) -> str | None:
    """Our packers' word on a kernel that TileLang laid out."""
    return compare.packing_differs(value, TILELANG.packers)


def kernel(
    *buffers: Buffer,
    dynamic_bytes: int | None = 0,
    static_bytes: int = 0,
    align: int | None = None,
    threads: int | None = 128,
    threads_declared: int | None = 128,
    grid: tuple[Dim, ...] = (1, 1, 1),
    cluster: tuple[int, ...] | None = None,
    sizes: tuple[OpenSize, ...] = (),
    loops: tuple[Loop, ...] = (),
) -> Kernel:
    """A kernel with nothing in it but what is given."""
    return Kernel(
        name="made",
        function="made_kernel",
        toolchain="by hand",
        toolchain_version="0",
        target="sm_90a",
        params=(),
        launch=Launch(
            threads_declared=threads_declared,
            threads=threads,
            grid=grid,
            cluster=cluster,
            sizes=sizes,
        ),
        buffers=buffers,
        memories=gpu_uses(
            buffers,
            Memory.SHARED,
            dynamic_bytes=dynamic_bytes,
            static_bytes=static_bytes,
            align_bytes=align,
            evidence=Evidence.COMPILED,
        ),
        complete=dynamic_bytes is not None,
        loops=loops,
    )


def card(shared_bytes: int, **changes: Any) -> Device:
    """A device of which nothing is known but its shared memory, unless changed."""
    pool = Pool(
        memory=Memory.SHARED,
        owner=Owner.BLOCK,
        core="SM",
        per_block_bytes=shared_bytes,
        per_core_bytes=shared_bytes,
        physical_bytes=shared_bytes,
    )
    values: dict[str, Any] = {"name": "card", "title": "A card", "vendor": "nvidia", "arch": "card"}
    return Device(**{**values, "pools": (pool,), **changes})
