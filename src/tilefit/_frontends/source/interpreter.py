"""The whole interpreter: contexts, T.Kernel blocks, and kernels from their arguments on."""

from __future__ import annotations

import ast

from tilefit._frontends.source.control import Control
from tilefit._frontends.source.find import last_name, tensor_parameters
from tilefit._frontends.source.unknown import text_of
from tilefit._frontends.source.values import (
    Device,
    DTypeName,
    Launcher,
    PrimFunc,
    Scope,
    Tensor,
    Unknown,
    Value,
)


class Interpreter(Control):
    """Follows a file, and traces its kernels."""

    def _do_with(self, node: ast.With) -> None:
        launches, outer = 0, len(self.contexts)
        try:
            for item in node.items:
                value = self.evaluate(item.context_expr)
                self.contexts.append(last_name(item.context_expr) or "")
                if isinstance(value, Launcher):
                    value = self.enter(value, item.optional_vars)
                    launches += 1
                elif self.traced:
                    value = Device(text_of(item.context_expr))
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value)
            self.block(node.body)
        finally:
            del self.contexts[outer:]
            if self.trace is not None:
                for _ in range(launches):
                    self.trace.leave()

    def trace_kernel(self, kernel: PrimFunc) -> None:
        """Follow the body of a kernel; what it declares is in `trace` afterwards."""
        function = kernel.function
        scope = Scope({}, kernel.scope)
        tensors = tensor_parameters(function.node)
        outer, self.scope = self.scope, scope
        try:
            for place in function.parameters:
                name = place.arg
                passed = name in kernel.arguments and name not in tensors
                scope.vars[name] = kernel.arguments[name] if passed else self._argument(place)
        finally:
            self.scope = outer
        self.inside(function, scope, traced=True)

    def _argument(self, place: ast.arg) -> Value:
        """Return what stands for a run-time argument: a tensor, or a number."""
        kind = self.evaluate(place.annotation)
        if isinstance(kind, Tensor):
            return Tensor(place.arg, kind.shape, kind.dtype)
        if isinstance(kind, DTypeName):
            return self.open_size(place.arg)
        shape, dtype = (Unknown((), f"{place.arg}.{what}") for what in ("shape", "dtype"))
        return Tensor(place.arg, shape, dtype)
