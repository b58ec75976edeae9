"""One kernel of a file with parameters: call its factories, trace it, say what it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilefit._errors import KernelError
from tilefit._frontends.source.classes import bound_to, instantiate
from tilefit._frontends.source.find import kernels_among, parameters_of, parameters_of_class
from tilefit._frontends.source.functions import bind, build, run
from tilefit._frontends.source.interpreter import trace_kernel
from tilefit._frontends.source.kernel import Origin, kernels_of
from tilefit._frontends.source.machine import (
    MAX_STEPS,
    MAX_STEPS_OF_A_STATEMENT,
    Exhausted,
    Machine,
    RaisedError,
)
from tilefit._frontends.source.trace import Trace
from tilefit._frontends.source.unknown import known
from tilefit._frontends.source.values import (
    Arguments,
    DTypeName,
    Function,
    PrimFunc,
    TorchDType,
    Unknown,
    Value,
)
from tilefit._kernel.kernel import Kernel, Parameter

# factories that return factories, as deep as libraries write them
_MAX_LEVELS = 4


class Factory:
    """What builds one kernel of a module, with the parameters that were given.

    Attributes:
        machine: The module.
        name: The kernel, a method as ``Class.method``.
        params: Its parameters, as far as they are known.
        notes: What was chosen or is missing before it could be traced.
        unread: Those of them that say why there may be more than was traced.
        tuned: What the first configuration of its autotuner gives.
        complete: Whether all of it was followed.
    """

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine = machine
        self.name = name
        self.params: dict[str, Any] = {}
        self.notes: list[str] = []
        self.unread: list[str] = []
        self.tuned: dict[str, Any] = {}
        self.complete = True

    def names(self) -> list[str]:
        """Return the names that ``--set`` may give."""
        return [*self.params, *self.machine.taken]

    def kernels(self, target: str) -> tuple[Kernel, ...]:
        """Build the kernel, trace it, and say what it declares."""
        machine = self.machine
        trace, function, options = Trace(), self.name, None
        machine.limit(MAX_STEPS)
        try:
            built = self._built()
            if isinstance(built, PrimFunc):
                function = built.function.name
                machine.trace = trace
                machine.limit(MAX_STEPS)
                trace_kernel(machine, built)
                options = built.options
            else:
                self._unbuilt(built)
        except Exhausted:
            trace.gap("the file does more than an estimate can follow")
        except RecursionError:
            trace.gap("the file is nested too deeply for an estimate")
        finally:
            machine.trace = None
        self.complete = self.complete and not trace.gaps
        if self.tuned:
            shown = ", ".join(f"{name}={value}" for name, value in self.tuned.items())
            self.notes.append(
                f"autotuned: this is its first configuration ({shown}); --set takes another"
            )
        origin = Origin(
            name=self.name,
            function=function,
            params={
                **self.params,
                **{k: v for k, v in machine.given.items() if k in machine.taken},
            },
            target=target,
            notes=self.notes,
            unread=self.unread,
            options=options,
            sizes=tuple(machine.open_sizes.values()),
        )
        return kernels_of(trace, origin)

    def _built(self) -> Value:
        """Call factories until there is a kernel."""
        names = self.machine.scope.vars
        value = kernels_among(self.machine.scope)[self.name]
        if "." in self.name and isinstance(value, Function) and not value.static:
            owner = names[self.name.partition(".")[0]]
            given = self._taken(parameters_of_class(owner))
            value = bound_to(instantiate(self.machine, owner, Arguments(names=given)), value)
        for _ in range(_MAX_LEVELS):
            if not isinstance(value, Function):
                break
            function = value
            arguments = self._arguments(function)
            value = build(self.machine, function, arguments)
            if value is None and function.kind == "jit":  # a launch behind a macro
                return PrimFunc(function, function.scope.snapshot(), arguments, function.options)
        return value

    def _unbuilt(self, value: Value) -> None:
        """Note why there is no kernel.

        Raises:
            KernelError: What was built is none.
        """
        self.complete = False
        if isinstance(value, Unknown):
            needs = " ".join(f"--set {name}=VALUE" for name in value.names)
            line = f"which kernel it builds is not known{f': add {needs}' if needs else ''}"
            self.notes.append(line)
            self.unread.append(line)
            return
        kind = type(value).__name__ if known(value) else "value"
        raise KernelError(f"{self.machine.file}: calling {self.name} gives a {kind}, no kernel")

    def _taken(
        self,
        parameters: Sequence[Parameter],
        defaults: Mapping[str, Value] | None = None,
        tuned: Mapping[str, Value] | None = None,
    ) -> dict[str, Value]:
        """Return the parameters that are given, tuned or missing; defaults are left alone."""
        machine = self.machine
        tuned = tuned or {}
        found: dict[str, Value] = {}
        for parameter in parameters:
            name = parameter.name
            if name in machine.given:
                machine.taken.add(name)
                found[name] = _like(machine.given[name], (defaults or {}).get(name))
                self.params[name] = found[name]
            elif name in tuned and parameter.default is None:
                found[name] = self.params[name] = self.tuned[name] = tuned[name]
            elif parameter.required:
                found[name] = Unknown((name,), name)
            else:
                self.params[name] = parameter.default
        return found

    def _arguments(self, function: Function) -> dict[str, Value]:
        """Return what the parameters of a factory are: given, default, tuned, or unknown."""
        machine = self.machine
        own = [p for p in parameters_of(function) if p.name not in function.bound]
        bound = bind(function, Arguments())
        passed = {**function.defaults, **machine.given}
        tuned = first_config(function, machine, passed)
        bound |= self._taken(own, function.defaults, tuned)
        rest = function.node.args
        if rest.vararg is not None and rest.vararg.arg not in machine.given:
            bound[rest.vararg.arg] = machine.missing(rest.vararg.arg)
        if rest.kwarg is not None:
            free = {k: v for k, v in machine.given.items() if k not in machine.taken}
            machine.taken.update(free)
            bound[rest.kwarg.arg] = free
        return bound


def first_config(
    function: Value, machine: Machine, known_values: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """Return the first configuration of an autotuner, empty if the source does not give it.

    Args:
        function: The kernel.
        machine: The module.
        known_values: The kernel's arguments, for configurations that depend on them.
    """
    configs = function.configs if isinstance(function, Function) else None
    if isinstance(configs, Function):
        wanted = {place.arg for place in configs.parameters}
        passed = {k: v for k, v in (known_values or {}).items() if k in wanted}
        if wanted - set(configs.defaults) - set(passed):
            return {}
        machine.limit(MAX_STEPS_OF_A_STATEMENT)
        try:
            configs = run(machine, configs, bind(configs, Arguments(names=passed)))
        except (RaisedError, Exhausted, RecursionError):
            return {}
    first = configs[0] if isinstance(configs, (list, tuple)) and configs else None
    return first if isinstance(first, dict) else {}


def _like(value: Any, default: Value) -> Value:
    """Return a dtype that is given as text as the kind of object that its default is."""
    if isinstance(value, str) and isinstance(default, DTypeName):
        return DTypeName(value)
    if isinstance(value, str) and isinstance(default, TorchDType):
        return TorchDType(value)
    return value
