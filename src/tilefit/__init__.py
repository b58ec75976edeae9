"""Does this tile, with this many stages, fit this chip? Answered before a GPU or NPU is touched.

Every public name is loaded on first use, so that importing tilefit costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilefit._devices.names import Device, device
    from tilefit._errors import (
        InputError,
        KernelError,
        RefusedError,
        TilefitError,
        ToolchainError,
        UnknownNameError,
        WorkerError,
    )
    from tilefit._explain import Explanation, Finding, explain
    from tilefit._kernel.dtype import DType, parse_dtype
    from tilefit._kernel.memory import Evidence, Memory, Owner
    from tilefit._occupancy.arrays import OccupancyArrays, occupancy_arrays
    from tilefit._occupancy.occupancy import Occupancy, occupancy
    from tilefit._planning.question import Options
    from tilefit._planning.report import Result
    from tilefit._public import Report, limit, plan
    from tilefit._reading.child import Limits
    from tilefit._tiles.footprint import Footprint, footprint
    from tilefit._tiles.gemm import Budget, BudgetRow, budget, max_stages
    from tilefit._tiles.limit import Limit
    from tilefit._verdict.check import Status

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
    "Limits",
    "Memory",
    "Occupancy",
    "OccupancyArrays",
    "Options",
    "Owner",
    "RefusedError",
    "Report",
    "Result",
    "Status",
    "TilefitError",
    "ToolchainError",
    "UnknownNameError",
    "WorkerError",
    "budget",
    "device",
    "explain",
    "footprint",
    "limit",
    "max_stages",
    "occupancy",
    "occupancy_arrays",
    "parse_dtype",
    "plan",
]

_MODULES = {
    "_public": ("Report", "limit", "plan"),
    "_planning.question": ("Options",),
    "_planning.report": ("Result",),
    "_reading.child": ("Limits",),
    "_verdict.check": ("Status",),
    "_devices.names": ("Device", "device"),
    "_kernel.dtype": ("DType", "parse_dtype"),
    "_errors": (
        "InputError",
        "KernelError",
        "RefusedError",
        "TilefitError",
        "ToolchainError",
        "UnknownNameError",
        "WorkerError",
    ),
    "_explain": ("Explanation", "Finding", "explain"),
    "_tiles.footprint": ("Footprint", "footprint"),
    "_tiles.gemm": ("Budget", "BudgetRow", "budget", "max_stages"),
    "_tiles.limit": ("Limit",),
    "_kernel.memory": ("Evidence", "Memory", "Owner"),
    "_occupancy.occupancy": ("Occupancy", "occupancy"),
    "_occupancy.arrays": ("OccupancyArrays", "occupancy_arrays"),
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
