"""Does this tile, with this many stages, fit this chip? Answered before a GPU or NPU is touched.

Every public name is loaded on first use, so that importing tilefit costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilefit._analyze import plan
    from tilefit._device import Device, device
    from tilefit._dtype import DType, parse_dtype
    from tilefit._errors import (
        InputError,
        KernelError,
        TilefitError,
        ToolchainError,
        UnknownNameError,
        WorkerError,
    )
    from tilefit._explain import Explanation, Finding, explain
    from tilefit._footprint import Footprint, footprint
    from tilefit._gemm import Budget, BudgetRow, budget, max_stages
    from tilefit._limit import Limit
    from tilefit._memory import Evidence, Memory, Owner
    from tilefit._occupancy import Occupancy, occupancy
    from tilefit._occupancy_arrays import OccupancyArrays, occupancy_arrays

__all__ = [
    "Budget",
    "BudgetRow",
    "DType",
    "Device",
    "Evidence",
    "Explanation",
    "Finding",
    "Footprint",
    "InputError",
    "KernelError",
    "Limit",
    "Memory",
    "Occupancy",
    "OccupancyArrays",
    "Owner",
    "TilefitError",
    "ToolchainError",
    "UnknownNameError",
    "WorkerError",
    "budget",
    "device",
    "explain",
    "footprint",
    "max_stages",
    "occupancy",
    "occupancy_arrays",
    "parse_dtype",
    "plan",
]

_MODULES = {
    "_analyze": ("plan",),
    "_device": ("Device", "device"),
    "_dtype": ("DType", "parse_dtype"),
    "_errors": (
        "InputError",
        "KernelError",
        "TilefitError",
        "ToolchainError",
        "UnknownNameError",
        "WorkerError",
    ),
    "_explain": ("Explanation", "Finding", "explain"),
    "_footprint": ("Footprint", "footprint"),
    "_gemm": ("Budget", "BudgetRow", "budget", "max_stages"),
    "_limit": ("Limit",),
    "_memory": ("Evidence", "Memory", "Owner"),
    "_occupancy": ("Occupancy", "occupancy"),
    "_occupancy_arrays": ("OccupancyArrays", "occupancy_arrays"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("tilefit")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tilefit' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"tilefit.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
