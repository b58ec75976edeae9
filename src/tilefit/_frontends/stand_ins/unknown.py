"""Values of packages that are not installed, and of results that nobody computed.

A file's main may use packages for its reference only (einops, triton, flash_attn ...). A name that
is missing becomes a module whose every attribute is an `Unknown`: anything can be done with it, and
what comes out is unknown again. Only imports that the user's own code makes are answered that way:
a package that asks whether another is installed gets the truth, and so does an import in a
``try`` that expects to fail.
"""

from __future__ import annotations

import ast
import dis
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from tilefit._frontends.stand_ins.einops import einsum, rearrange
from tilefit._home import PACKAGE

_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"),
    *("lshift", "rshift"),
)
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
# what decorates a device function of another language: the result is launched as f[grid](...)
_LAUNCHED = ("triton.", "numba.cuda.", "cupy.")


class Unknown:
    """A value of which only the name is known."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __repr__(self) -> str:
        return f"<unknown {self._name}>"

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0"
        if name == "_name":  # of a copy that is being made
            return "value"
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self._name}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._name in _KNOWN:
            return _KNOWN[self._name](*args, **kwargs)
        decorates = len(args) == 1 and not kwargs and isinstance(args[0], (FunctionType, type))
        if decorates and not self._name.startswith(_LAUNCHED):
            return args[0]
        return Unknown(f"{self._name}()")

    def __getitem__(self, key: Any) -> Any:
        return Unknown(f"{self._name}[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __contains__(self, item: Any) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        # `a, b = unknown` says how many it wants; a loop over it runs once
        return iter([Unknown(f"{self._name}[]")] * _wanted_by_caller(sys._getframe(1)))

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, spec: str) -> str:
        return "?"

    def __hash__(self) -> int:
        return 0

    def _combined(self, *_: Any) -> Any:
        return Unknown(self._name)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _combined
    __neg__ = __abs__ = __invert__ = __round__ = _combined

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """Be one base for all that are unknown: the last, and none that a known one has already.

        A class that is known and made by a metaclass of its own stays as it is without it.
        """
        last = [base for base in bases if isinstance(base, Unknown)][-1] is self
        known = [base for base in bases if isinstance(base, type)]
        enough = any(type(base) is not type for base in known)
        return (_UnknownBase,) if last and not enough else ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Unknown(getattr(func, "__name__", "torch"))


for _op in _BINARY:
    setattr(Unknown, f"__{_op}__", Unknown._combined)
    setattr(Unknown, f"__r{_op}__", Unknown._combined)


class _UnknownType(type):
    """The class of `_UnknownBase`: a class attribute that it lacks is unknown."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{cls.__name__}.{name}")


class _UnknownBase(metaclass=_UnknownType):
    """What a class inherits instead of a base that is not installed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)


def _once(function: Any, *_: Any, **__: Any) -> float:
    function()
    return 1.0


def _parametrize(names: Any, values: Any, **_: Any) -> Callable[[Any], Any]:
    """Mark a test with its parameters, the way pytest does."""

    def decorate(test: Any) -> Any:
        mark = SimpleNamespace(name="parametrize", args=(names, values))
        test.pytestmark = [*getattr(test, "pytestmark", ()), mark]
        return test

    return decorate


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function unless one of its operands is unknown."""

    def called(*args: Any, **kwargs: Any) -> Any:
        unknown = any(isinstance(value, Unknown) for value in (*args, *kwargs.values()))
        return Unknown(function.__name__) if unknown else function(*args, **kwargs)

    return called


# helpers of the host whose results have the sizes that kernels are made for
_KNOWN: dict[str, Callable[..., Any]] = {
    "einops.rearrange": _of_tensors(rearrange),
    "einops.repeat": _of_tensors(rearrange),
    "einops.einsum": _of_tensors(einsum),
    "pytest.mark.parametrize": _parametrize,
    "pytest.param": lambda *values, **_: SimpleNamespace(values=values),
    "triton.cdiv": lambda a, b: -(-a // b),
    "triton.next_power_of_2": lambda n: 1 << max(0, int(n) - 1).bit_length(),
    "triton.testing.do_bench": _once,
}


def _wanted_by_caller(frame: FrameType) -> int:
    """Return how many values the instruction that iterates takes apart; 1 if it is a loop."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
            return int(instruction.arg or 0)
    return 1


# ---- modules that are not installed ----------------------------------------------------


class MissingModule(ModuleType):
    """Stands for a package that is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__all__: list[str] = []
        self.__version__ = "0"
        self.__file__ = f"<{name} is not installed>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self.__name__}.{name}")


class MissingModules:
    """An import finder, asked last, that answers for packages which are not there.

    Attributes:
        names: The top-level packages that it stood in for, in order.
        left_out: Those that a ``try`` asked for and was told are not there.
        also_in_try: Whether they are stood in for all the same.
    """

    def __init__(self, never: Sequence[str] = ()) -> None:
        self.names: list[str] = []
        self.left_out: list[str] = []
        self.also_in_try = False
        self._never = frozenset(never)

    def needed_after_all(self, error: str) -> bool:
        """Say whether a file used a package that it had gone on without; from now on it has it."""
        if self.also_in_try or not self.left_out or "raised NameError" not in error:
            return False
        self.also_in_try = True
        return True

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Answer an import that every other finder gave up on."""
        package, dot, _rest = name.partition(".")
        if dot:
            parent = sys.modules.get(name.rpartition(".")[0])
            if not isinstance(parent, MissingModule):
                return None
        elif package in self._never:
            return None
        else:
            line = _line_of_user_code()
            if line is None:
                return None
            if line[1] in _guarded_lines(line[0]) and not self.also_in_try:
                self.left_out.append(package)
                return None
        if package not in self.names:
            self.names.append(package)
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        return MissingModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def _line_of_user_code() -> tuple[str, int] | None:
    """Return file and line of the import that is going on; None if it is not the user's own."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        if frame.f_globals.get("__name__") == "importlib.util":
            return None  # importlib.util.find_spec asks whether it is there
        frame = frame.f_back
    if frame is None or is_installed(frame.f_code.co_filename):
        return None
    return frame.f_code.co_filename, frame.f_lineno


def is_installed(file: str) -> bool:
    """Say whether a source file belongs to Python, to an installed package or to tilefit."""
    if file.startswith("<") or "site-packages" in file or "dist-packages" in file:
        return True
    return file.startswith((sysconfig.get_path("stdlib"), PACKAGE))


@cache
def _guarded_lines(file: str) -> frozenset[int]:
    """Return the lines of a file in a ``try`` that goes on without the package."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_catches_import(h) for h in node.handlers):
            first, last = node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
            lines.update(range(first, last + 1))
    return frozenset(lines)


def _catches_import(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(n, ast.Name) and n.id in _IMPORT_ERRORS for n in named)
