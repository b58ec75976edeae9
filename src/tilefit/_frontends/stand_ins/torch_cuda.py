"""What torch and TileLang say about the device: the answers of the device that was asked for.

`answer_for` replaces functions of modules for as long as the process lives: it belongs in a child
that serves one file.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tilefit._frontends.ptx import version_of
from tilefit._frontends.stand_ins.unknown import Unknown

# what `tilelang.carver` asks the CUDA runtime for, by the runtime's own numbers
_MAX_THREADS_PER_BLOCK = 1
_MAX_REGISTERS_PER_BLOCK = 12
_MAX_SHARED_PER_CORE = 81


def capability_of(target: str) -> tuple[int, int] | None:
    """Return the compute capability that ``sm_90a`` stands for; None for another vendor's.

    >>> capability_of("sm_120a")
    (12, 0)
    """
    version = version_of(target)
    return None if version is None else divmod(version, 10)


class DeviceAnswers:
    """The facts that are answered with; see `tilefit._devices.facts.facts_of` for the keys."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)

    def aim_at(self, target: str) -> None:
        """Answer with another target's compute capability from now on."""
        capability = capability_of(target)
        if capability is not None:
            self.facts["capability"] = list(capability)

    def capability(self, *_: Any) -> tuple[int, int]:
        """Return major and minor compute capability."""
        major, minor = self.facts.get("capability") or (0, 0)
        return int(major), int(minor)

    def name(self, *_: Any) -> str:
        """Return the name that the vendor gives the device."""
        return str(self.facts.get("name", "unknown"))

    def properties(self, *_: Any) -> Any:
        """Return what torch.cuda.get_device_properties does, as far as it is known."""
        major, minor = self.capability()
        asked = {
            "multi_processor_count": "cores",
            "total_memory": "memory_bytes",
            "warp_size": "warp_size",
            "max_threads_per_block": "max_threads_per_block",
            "max_threads_per_multi_processor": "max_threads_per_core",
            "regs_per_multiprocessor": "registers_per_core",
            "shared_memory_per_block": "default_shared_bytes",
            "shared_memory_per_block_optin": "shared_bytes",
            "shared_memory_per_multiprocessor": "shared_per_core_bytes",
            "gcnArchName": "arch",
        }
        known = {ours: self.facts[key] for ours, key in asked.items() if self.facts.get(key)}
        return _Properties(name=self.name(), major=major, minor=minor, **known)

    def attribute(self, number: int, *_: Any) -> Any:
        """Return what cudaDeviceGetAttribute does, for the few that TileLang asks for."""
        key = {
            _MAX_THREADS_PER_BLOCK: "max_threads_per_block",
            _MAX_REGISTERS_PER_BLOCK: "registers_per_core",
            _MAX_SHARED_PER_CORE: "shared_per_core_bytes",
        }.get(number, "")
        return self.facts.get(key)

    def memory(self, *_: Any) -> tuple[int, int]:
        """Return free and total memory in bytes."""
        total = int(self.facts.get("memory_bytes") or 1 << 40)
        return total, total


class _Properties(SimpleNamespace):
    """Properties of a device; those that nobody recorded are unknown."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"device property {name}")


class _Event:
    """A CUDA event: everything takes a millisecond."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def elapsed_time(self, *_: Any) -> float:
        return 1.0

    def query(self) -> bool:
        return True

    def record(self, *_: Any) -> None:
        pass

    wait = synchronize = record


def answer_for(facts: Mapping[str, Any]) -> DeviceAnswers:
    """Make torch, TVM and TileLang describe a device that is not there.

    Args:
        facts: The device, as `tilefit._devices.facts.facts_of` gives it.
    """
    import torch

    answers = DeviceAnswers(facts)
    known = {
        "is_available": _always(True),
        "is_initialized": _always(True),
        "device_count": _always(1),
        "current_device": _always(0),
        "is_bf16_supported": _always(True),
        "is_current_stream_capturing": _always(False),
        "get_device_capability": answers.capability,
        "get_device_name": answers.name,
        "get_device_properties": answers.properties,
        "get_arch_list": lambda: ["sm_{}{}".format(*answers.capability())],
        "mem_get_info": answers.memory,
        **dict.fromkeys(
            ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
            _always(0),
        ),
        "Event": _Event,
        **{name: Unknown(f"torch.cuda.{name}") for name in ("nvtx", "cudart", "profiler")},
    }
    cuda: Any = torch.cuda
    for name in {*getattr(cuda, "__all__", ()), *known}:
        value = getattr(cuda, name, None)
        if name in known:
            setattr(cuda, name, known[name])
        elif not name.startswith("_") and callable(value):
            setattr(cuda, name, _nothing(name))
    cuda._lazy_init = _always(None)
    torch.version.cuda = torch.version.cuda or "13.0"  # type: ignore[attr-defined, unused-ignore]
    _answer_torch(torch)
    _answer_tvm(answers)
    return answers


def _always(value: Any) -> Any:
    return lambda *_, **__: value


def _nothing(name: str) -> Any:
    """Return what stands for a function or class of torch.cuda that only acts on the device."""
    return Unknown(f"torch.cuda.{name}")


def _answer_torch(torch: Any) -> None:
    """Replace what would reach for the device by another way than a tensor's call."""
    context: Any = importlib.import_module("torch.utils._device").DeviceContext
    init = context.__init__

    def on_cpu(self: Any, device: Any) -> None:
        init(self, "cpu" if torch.device(device).type == "cuda" else device)

    context.__init__ = on_cpu
    generator = torch.Generator
    on_cpu_too = {"__new__": lambda *_, **__: generator("cpu")}
    torch.Generator = type("Generator", (generator,), on_cpu_too)
    torch.compile = _plain
    torch.profiler.profile = Unknown("torch.profiler.profile")
    torch.testing.assert_close = _always(None)


def _plain(function: Any = None, **_: Any) -> Any:
    """Stand for a decorator, with or without arguments, that changes nothing."""
    return function if function is not None else _plain


def _answer_tvm(answers: DeviceAnswers) -> None:
    import tilelang.utils.device
    import tvm
    from tilelang.carver.arch.driver import cuda_driver

    class Device(SimpleNamespace):
        """The first CUDA device, as TVM describes one."""

        exist = True
        device_type = 2  # kDLCUDA

        @property
        def compute_version(self) -> str:
            return "{}.{}".format(*answers.capability())

        def __getattr__(self, name: str) -> Any:
            asked = {
                "multi_processor_count": "cores",
                "warp_size": "warp_size",
                "max_threads_per_block": "max_threads_per_block",
                "max_shared_memory_per_block": "default_shared_bytes",
            }
            return answers.facts.get(asked.get(name, ""))

    for module in (tvm, tvm.runtime):
        module.cuda = lambda *_: Device()
    cuda_driver.get_device_attribute = lambda number, *_: answers.attribute(number)
    cuda_driver.get_cuda_device_properties = answers.properties
    utils = tilelang.utils.device
    utils.IS_CUDA, utils.Event = True, _Event
    _answer_tests()


def _answer_tests() -> None:
    """Let TileLang's benchmark helper call what it times once, and its comparison hold."""
    import tilelang.profiler
    import tilelang.utils.tensor

    def do_bench(function: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
        function()
        return 1.0 if not quantiles or len(quantiles) == 1 else [1.0] * len(quantiles)

    new: dict[str, tuple[Any, Any]] = {
        "do_bench": (tilelang.profiler.do_bench, do_bench),
        "torch_assert_close": (tilelang.utils.tensor.torch_assert_close, _always(None)),
    }
    for module_name, module in list(sys.modules.items()):
        for name, (original, replacement) in new.items():
            if module_name.startswith("tilelang.") and vars(module).get(name) is original:
                setattr(module, name, replacement)
