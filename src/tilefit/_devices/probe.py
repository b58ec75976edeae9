"""Asks the attached devices about themselves and prints one JSON document.

Run as a script in a process of its own, by whichever interpreter has the vendors' bindings::

    python .../tilefit/_live_probe.py

It imports nothing of tilefit. A driver that is missing, that prints or that crashes is kept away
from the process that asked. The document is ``{"asked": [[BINDING, ANSWER] ...], "devices":
[{"kind", "through", "index", "properties", "platform"} ...]}``: names and values are the vendors'
own (see `tilefit._devices.comparison` for what they mean), and ``kind`` is ``cuda``, ``hip`` or
``npu``.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NOT_INSTALLED = "not installed"
_NO_DEVICE = "no device"
# whose they are and where they sit are nobody's business
_PRIVATE = ("uuid", "pci", "serial", "luid")
_CUDA_ATTRIBUTE = "CU_DEVICE_ATTRIBUTE_"
_CANN_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_CANN_DEFAULT = "/usr/local/Ascend/ascend-toolkit/latest"

Device = dict[str, Any]


def main() -> None:
    """Ask, and print the document to what standard output was at the start."""
    # a script's own folder comes first in its path: no module there is meant by an import below
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    answer = os.dup(1)
    os.dup2(2, 1)  # what drivers and toolkits print is no answer
    asked: list[tuple[str, str]] = []
    devices: list[Device] = []
    for binding, package, ask in (
        ("cuda-bindings", "cuda.bindings", _cuda),
        ("acl", "acl", _acl),
        ("torch", "torch", _torch),
        ("torch_npu", "torch_npu", _torch_npu),
    ):
        if devices and binding.startswith("torch"):
            break  # importing torch takes seconds, and would find the same devices again
        devices += _ask(binding, package, ask, asked)
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump({"asked": asked, "devices": devices}, out)


def _ask(
    binding: str, package: str, ask: Callable[[], list[Device]], asked: list[tuple[str, str]]
) -> list[Device]:
    """Return the devices that a binding sees; note what it said."""
    if not _installed(package):
        asked.append((binding, _NOT_INSTALLED))
        return []
    through = binding
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        through = f"{binding} {importlib.metadata.version(binding)}"
    try:
        found = ask()
    except (Exception, SystemExit) as error:
        line = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        asked.append((through, f"failed: {line}"))
        return []
    for device in found:
        device["through"] = through
    asked.append((through, f"{len(found)} found" if found else _NO_DEVICE))
    return found


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # no parent package; a half-made module
        return False


def _cuda() -> list[Device]:
    """Ask the CUDA driver through cuda-bindings (which cuda-core brings along)."""
    from cuda.bindings import driver

    def call(function: str, *arguments: Any) -> Any:
        status, *values = getattr(driver, function)(*arguments)
        if int(status) != 0:
            raise RuntimeError(f"{function}: {getattr(status, 'name', status)}")
        return values[0] if values else None

    if int(driver.cuInit(0)[0]) == 100:  # CUDA_ERROR_NO_DEVICE
        return []
    call("cuInit", 0)
    devices = []
    for index in range(call("cuDeviceGetCount")):
        handle = call("cuDeviceGet", index)
        name = call("cuDeviceGetName", 128, handle)
        properties: dict[str, Any] = {"name": name.decode(errors="replace").rstrip("\0")}
        for attribute in driver.CUdevice_attribute:
            key = attribute.name.removeprefix(_CUDA_ATTRIBUTE).lower()
            if _private(key):
                continue
            with contextlib.suppress(Exception):  # one that this driver does not know
                properties[key] = int(call("cuDeviceGetAttribute", attribute, handle))
        devices.append({"kind": "cuda", "index": index, "properties": properties})
    return devices


def _torch() -> list[Device]:
    import torch

    kind = "hip" if getattr(torch.version, "hip", None) else "cuda"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if not available and said:  # a driver that is too old, say
        raise RuntimeError(str(said[0].message))
    if not available:
        return []
    return [
        {"kind": kind, "index": i, "properties": _plain(torch.cuda.get_device_properties(i))}
        for i in range(torch.cuda.device_count())
    ]


def _torch_npu() -> list[Device]:
    from torch_npu import npu

    return [_npu(i, _plain(npu.get_device_properties(i))) for i in range(npu.device_count())]


def _acl() -> list[Device]:
    """Ask the Ascend runtime through CANN's own Python module."""
    import acl

    acl.init()
    try:
        count, status = acl.rt.get_device_count()
        if status != 0:
            raise RuntimeError(f"get_device_count: error {status}")
        devices = []
        for index in range(count):
            properties: dict[str, Any] = {"name": acl.get_soc_name()}
            for number, key in enumerate(("cube_core_num", "vector_core_num")):
                value, status = acl.get_device_capability(index, number)
                if status == 0:
                    properties[key] = int(value)
            devices.append(_npu(index, properties))
        return devices
    finally:
        acl.finalize()


def _plain(properties: Any) -> dict[str, Any]:
    """Return the numbers and texts of a properties object."""
    names = (name for name in dir(properties) if not name.startswith("_") and not _private(name))
    found = {name: getattr(properties, name, None) for name in names}
    return {name: v for name, v in found.items() if isinstance(v, (int, str))}


def _private(name: str) -> bool:
    return any(word in name for word in _PRIVATE)


def _npu(index: int, properties: dict[str, Any]) -> Device:
    platform, path = _platform(str(properties.get("name", "")))
    return {
        "kind": "npu",
        "index": index,
        "properties": properties,
        "platform": platform,
        "platform_file": path,
    }


def _platform(soc: str) -> tuple[dict[str, str], str]:
    """Return what CANN's platform configuration says of a chip, and the file that says it."""
    import configparser

    homes = [os.environ[name] for name in _CANN_HOMES if os.environ.get(name)]
    for home in (*homes, _CANN_DEFAULT):
        for folder in ("compiler/data", "*-linux/data", "data"):
            for path in sorted(Path(home).glob(f"{folder}/platform_config/*.ini")):
                if path.stem != soc:
                    continue
                parser = configparser.ConfigParser(strict=False, interpolation=None)
                parser.read_string(path.read_text(encoding="utf-8", errors="replace"))
                sections = [parser[name] for name in parser.sections()]
                return {k: v for section in sections for k, v in section.items()}, str(path)
    return {}, ""


if __name__ == "__main__":
    main()
