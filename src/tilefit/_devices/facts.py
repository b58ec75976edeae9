"""What a user's code may ask about the device that a kernel is planned for, as plain values."""

from __future__ import annotations

from typing import Any

from tilefit._devices.names import Device, expand
from tilefit._kernel.memory import STAGING


def facts_of(device: Device) -> dict[str, Any]:
    """Return the facts that stand for a device in the child process, ready for JSON.

    An architecture has no count of cores: it answers with that of its first product.

    Args:
        device: The device.

    Returns:
        ``name`` (as its vendor prints it), ``arch``, ``vendor``, ``target`` (TileLang's, None
        where it has none), ``capability`` ([major, minor] on NVIDIA, else None), ``cores``,
        ``warp_size``, ``max_threads_per_block``, ``max_threads_per_core``,
        ``registers_per_core``, and in bytes ``shared_bytes`` (a block with the opt-in),
        ``default_shared_bytes`` (without), ``shared_per_core_bytes``. None is unknown.
    """
    staging = next((pool for pool in device.pools if pool.memory in STAGING), None)
    return {
        "name": device.title,
        "arch": device.arch,
        "vendor": device.vendor,
        "target": device.target("tilelang"),
        "capability": _capability(device),
        "cores": _cores(device),
        "warp_size": device.warp_size,
        "max_threads_per_block": device.max_threads_per_block,
        "max_threads_per_core": device.max_threads_per_core,
        "registers_per_core": device.registers_per_core,
        "shared_bytes": staging and staging.per_block_bytes,
        "default_shared_bytes": staging
        and (staging.default_per_block_bytes or staging.per_block_bytes),
        "shared_per_core_bytes": staging and staging.per_core_bytes,
    }


def _capability(device: Device) -> list[int] | None:
    digits = device.arch.removeprefix("sm_")
    if device.vendor != "nvidia" or not digits.isdecimal():
        return None
    return [int(digits[:-1]), int(digits[-1])]


def _cores(device: Device) -> int | None:
    products = () if device.product else expand([device.vendor])
    for one in (device, *(p for p in products if p.arch == device.arch)):
        for kind, count in one.cores:
            if kind in ("SM", "CU"):
                return count
    return None
