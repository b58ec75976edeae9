"""The stand-in for a compiled kernel: a call allocates its outputs, and takes a millisecond."""

from __future__ import annotations

from typing import Any

from tilefit._frontends.stand_ins.torch import empty
from tilefit._frontends.stand_ins.unknown import Unknown

_BYTE_BITS = 8
_TEXTS = ("get_kernel_source", "get_host_source")


class FakeKernel:
    """What a file gets instead of a compiled kernel.

    Attributes:
        prim_func: The kernel that was to be compiled.
        out_idx: Positions of its outputs among its parameters.
        latency: Milliseconds of a call, as an autotuner reports it.
    """

    def __init__(self, prim_func: Any, out_idx: Any) -> None:
        self.prim_func = prim_func
        count = len(prim_func.params)
        given = [out_idx] if isinstance(out_idx, int) else list(out_idx or ())
        self.out_idx = [int(i) % count for i in given] if count else []
        self.latency = self.ref_latency = 1.0
        self.config: dict[str, Any] = {}
        self.kernel_source = self.host_source = ""

    def __call__(self, *args: Any, **_: Any) -> Any:
        outputs = [self._output(i, args) for i in self.out_idx]
        return outputs[0] if len(outputs) == 1 else outputs or None

    def __getattr__(self, name: str) -> Any:
        if name in _TEXTS:
            return lambda *_, **__: ""
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"kernel.{name}")

    def get_profiler(self, *_: Any, **__: Any) -> FakeProfiler:
        """Return a profiler that measures nothing."""
        return FakeProfiler(self)

    def update_tuner_result(self, *_: Any, **__: Any) -> FakeKernel:
        """Take no result."""
        return self

    @property
    def params(self) -> list[Any]:
        """TileLang's description of each parameter."""
        from tilelang.engine.lower import extrac_params

        return list(extrac_params(self.prim_func))

    def _output(self, position: int, args: tuple[Any, ...]) -> Any:
        """Return a tensor in the shape of an output, its open sizes taken from the arguments."""
        from tilelang import tvm

        parameter = self.params[position]
        sizes = self._open_sizes(args)
        try:
            shape = [int(sizes.get(str(extent), extent)) for extent in parameter.shape]
            bits = int(tvm.DataType(str(parameter.dtype)).bits)
            if bits < _BYTE_BITS and shape and not parameter.is_boolean():
                shape[-1] = -(-shape[-1] * bits // _BYTE_BITS)  # torch packs them
            return empty(tuple(shape), parameter.torch_dtype())
        except Exception:  # a size that only the device knows, or a type that torch lacks
            return Unknown("kernel output")

    def _open_sizes(self, args: tuple[Any, ...]) -> dict[str, int]:
        inputs = [i for i in range(len(self.prim_func.params)) if i not in self.out_idx]
        found: dict[str, int] = {}
        for position, argument in zip(inputs, args, strict=False):
            variable = self.prim_func.params[position]
            buffer = self.prim_func.buffer_map.get(variable)
            if buffer is None:
                if isinstance(argument, int):
                    found[str(variable)] = argument
                continue
            for extent, size in zip(buffer.shape, getattr(argument, "shape", ()), strict=False):
                if type(extent).__name__ in ("Var", "SizeVar"):
                    found[str(extent)] = int(size)
        return found


class FakeProfiler:
    """Answers every question of a benchmark with a millisecond."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel = self.func = kernel

    def do_bench(self, func: Any = None, *_: Any, **__: Any) -> float:
        """Call what is to be timed once, where it is not the kernel itself."""
        if callable(func) and func is not self.kernel:
            func(*self._get_inputs()) if _takes_arguments(func) else func()
        return 1.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def run_once(self, func: Any = None) -> Any:
        """Call the kernel with inputs of its shapes."""
        return (func or self.kernel)(*self._get_inputs())

    def _get_inputs(self, *_: Any, with_output: bool = False, **__: Any) -> list[Any]:
        """Return a tensor for each input; the author's own code asks for them too."""
        out = [] if with_output else self.kernel.out_idx
        return [self.kernel._output(i, ()) for i in range(len(self.kernel.params)) if i not in out]


def _takes_arguments(func: Any) -> bool:
    import inspect

    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)
