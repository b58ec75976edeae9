"""A process in which a user's file finds a device, every package, and a compiler at rest.

What is replaced in modules stays replaced: a sandbox belongs in a child that serves one file.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tilefit._frontends.stand_ins.torch import TensorsWithoutDevice
from tilefit._frontends.stand_ins.torch_cuda import answer_for
from tilefit._frontends.stand_ins.unknown import MissingModules, Unknown
from tilefit._frontends.tilelang.lower import tvm_target
from tilefit._frontends.tilelang.main.capture import Recorder
from tilefit._frontends.tilelang.main.hooks import install
from tilefit._frontends.tilelang.sizes import noting_names


class Sandbox:
    """Puts everything in place when it is made; as a context, tensors need no device.

    Attributes:
        recorder: What was compiled.
        missing: Packages that are not installed and were stood in for.
    """

    def __init__(self, path: Path, device_facts: Mapping[str, Any]) -> None:
        self._tensors = TensorsWithoutDevice()
        self._target = device_facts.get("target")
        self._stack = ExitStack()
        self.recorder = Recorder(path)
        _ask_torch_about_triton()
        self._answers = answer_for(device_facts)
        install(self.recorder)
        self.missing = MissingModules(never=("tilelang", "tvm", "torch", "tilefit"))
        sys.meta_path.append(self.missing)
        _change_after_import()
        _open_known_files()

    def __enter__(self) -> Sandbox:
        if self._target:
            self._stack.enter_context(tvm_target(self._target))
        self._stack.enter_context(self._tensors)
        self._stack.enter_context(noting_names())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextmanager
    def aimed_at(self, target: str) -> Iterator[None]:
        """Build for a target: user code that asks is told of it."""
        self._answers.aim_at(target)
        with self._tensors:
            yield


def _ask_torch_about_triton() -> None:
    """Let torch find out, and remember, that Triton is not there before a stand-in is."""
    if importlib.util.find_spec("triton") is not None:
        return
    from torch.utils import _triton

    for name in ("has_triton_package", "has_triton"):
        function = getattr(_triton, name, None)
        if function is not None:
            function()


def _open_known_files() -> None:
    """Let nothing unknown be opened: an `Unknown` passes as a number, and so as a descriptor."""
    original = builtins.open

    def open_known(file: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, Unknown):
            raise FileNotFoundError(f"{file!r} names no file")
        return original(file, *args, **kwargs)

    builtins.open = io.open = open_known


# ---- packages that are installed and would use a device -----------------------------------


def _stop_launching(*classes: str) -> Callable[[Any], None]:
    """Make Triton's launches do nothing: references use them, and there is no driver."""

    def stop(module: Any) -> None:
        for name in classes:
            found = getattr(module, name, None)
            if found is not None:
                found.run = lambda *_, **__: None

    return stop


class _TritonDriver:
    """Triton's driver, as far as code asks it what device there is."""

    def get_current_target(self) -> Any:
        import torch

        major, minor = torch.cuda.get_device_capability()  # the answer of the sandbox
        found: Any = torch.cuda.get_device_properties(0)
        backend, arch = ("cuda", 10 * major + minor) if major else ("hip", found.gcnArchName)
        return SimpleNamespace(backend=backend, arch=arch, warp_size=found.warp_size)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"triton's driver.{name}")


def _stand_in_for_driver(module: Any) -> None:
    """Answer for Triton's driver, which would look for that of the device."""
    module.driver.set_active(_TritonDriver())


def _build_no_extension(module: Any) -> None:
    """Make torch build no C++ or CUDA extension: there is no compiler to build it with."""
    module.load = module.load_inline = Unknown("extension")


_AFTER_IMPORT: dict[str, Callable[[Any], None]] = {
    "triton.runtime.jit": _stop_launching("JITFunction"),
    "triton.runtime.driver": _stand_in_for_driver,
    "triton.runtime.autotuner": _stop_launching("Autotuner", "Heuristics"),
    "torch.utils.cpp_extension": _build_no_extension,
}


def _change_after_import() -> None:
    """Change those modules now where they are imported, else as soon as they are."""
    sys.meta_path.insert(0, _AfterImport())
    for name, change in _AFTER_IMPORT.items():
        if name in sys.modules:
            change(sys.modules[name])


class _AfterImport:
    """Finds a module as it is installed, and changes it once it was executed."""

    def find_spec(self, name: str, path: Any = None, *_: Any) -> ModuleSpec | None:
        """Answer for the modules that are to be changed."""
        spec = PathFinder.find_spec(name, path) if name in _AFTER_IMPORT else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _AFTER_IMPORT[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
