"""What dotted names of other modules mean; the modules themselves are never imported."""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Mapping
from typing import Any

from tilefit._frontends.source.language import dialect_of, named_dtype
from tilefit._frontends.source.values import Path, TorchDType, Value

_ARRAY_LIBRARIES = ("torch", "numpy", "jax", "ml_dtypes")
# modules that allocate nothing in a kernel, and whose names are no constants of the author's
LIBRARIES = frozenset(sys.stdlib_module_names) | {*_ARRAY_LIBRARIES, "tvm", "einops"}
_BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_"))
# what the file reads of the device, and the fact that answers it
_FACTS = {
    "torch.cuda.get_device_properties().multi_processor_count": "cores",
    "torch.cuda.get_device_properties().warp_size": "warp_size",
    "torch.cuda.get_device_properties().name": "name",
}
# what it calls for one
_ASKS = {
    "torch.cuda.get_device_capability": "capability",
    "torch.cuda.get_device_name": "name",
    "tilelang.carver.arch.driver.get_num_sms": "cores",
}
_PROPERTIES = "torch.cuda.get_device_properties"
# what `from ... import *` brings besides the names of a language module
_STARRED = frozenset(("tilelang.jit", "tilelang.autotune", "tilelang.autotuner.autotune"))


def builtin(name: str) -> Path | None:
    """Return a name of Python itself, None if it is none."""
    return Path(f"builtins.{name}") if name in _BUILTINS else None


def is_starred(path: str) -> bool:
    """Return whether ``import *`` from its module binds a name."""
    return dialect_of(path) is not None or path in _STARRED


def member(owner: Path, name: str, facts: Mapping[str, Any]) -> Value:
    """Return ``owner.name``: a constant, a fact about the device, or another dotted name."""
    path = f"{owner.path}.{name}"
    fact = facts.get(_FACTS.get(path, ""))
    if fact is not None:
        return fact
    found = dialect_of(path)
    if found is not None:
        return named_dtype(found[1]) or Path(path)
    if owner.path.partition(".")[0] in _ARRAY_LIBRARIES:
        dtype = named_dtype(name)
        return Path(path) if dtype is None else TorchDType(str(dtype))
    if owner.path == "math" and isinstance(constant := getattr(math, name, None), float):
        return constant
    return False if path == "typing.TYPE_CHECKING" else Path(path)


def asked(path: str, facts: Mapping[str, Any]) -> Value:
    """Return what a call says of the device, None if it is no such call or no fact answers it."""
    fact = facts.get(_ASKS.get(path, ""))
    if fact is not None:
        return tuple(fact) if isinstance(fact, list) else fact
    return Path(f"{path}()") if path == _PROPERTIES and facts else None
