"""TileLang: find the kernels of a file, build their PrimFuncs, lower them.

Runs in the child process, or in the caller's own for a kernel object that it already holds.
What lowering produced is read in `_tilelang_ir`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilefit._errors import (
    InputError,
    KernelError,
    RefusedError,
    ToolchainError,
    UnknownNameError,
)
from tilefit._kernel import Kernel, Listing
from tilefit.frontends._tilelang_build import nvcc_flags
from tilefit.frontends._tilelang_find import kernel_style, listing, match_dtype_objects
from tilefit.frontends._user_code import describe, load_module, one_line


class TileLangFrontend:
    """TileLang 0.1.15 and its neighbours."""

    name = "tilelang"

    def version(self) -> str:
        """Import TileLang and return its version.

        Raises:
            ToolchainError: It is not installed, or importing it failed.
        """
        # source lines of buffers: read by TileLang when it builds a kernel
        os.environ.setdefault("TILELANG_ENABLE_IR_SPAN", "1")
        try:
            import tilelang
        except ModuleNotFoundError as error:
            raise ToolchainError(
                f"TileLang is not installed here ({error}): pip install 'tilefit[tilelang]'"
            ) from error
        except Exception as error:
            raise ToolchainError(f"importing TileLang failed: {one_line(str(error))}") from error
        return str(tilelang.__version__).split("+")[0]

    def load(self, path: Path) -> TileLangSource:
        """Execute a file; see `Frontend.load`."""
        version = self.version()
        module = load_module(path)
        found = {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("__") and kernel_style(value, module.__name__)
        }
        return TileLangSource(path, found, version)

    def wrap(self, kernel: Any) -> TileLangSource:
        """Return a source that offers one kernel object of the running process.

        Raises:
            InputError: It is no PrimFunc, jit object or factory.
        """
        version = self.version()
        home = getattr(kernel, "__module__", "")
        if kernel_style(kernel, home) is None:
            raise InputError(
                f"a {type(kernel).__name__} is no TileLang kernel: give 'file.py::kernel', a "
                "PrimFunc, a @tilelang.jit object or a function that returns one"
            )
        found = listing("kernel", kernel, home)
        attrs = getattr(kernel, "attrs", None)
        name = str(dict(attrs)["global_symbol"]) if attrs and "global_symbol" in attrs else None
        name = name or getattr(getattr(kernel, "func", kernel), "__name__", found.name)
        return TileLangSource(Path("<this process>"), {str(name): kernel}, version)


class TileLangSource:
    """Some kernels: those of one executed file, or one object."""

    def __init__(self, path: Path, found: Mapping[str, Any], version: str) -> None:
        self.path = path
        self.version = version
        self._found = dict(found)

    def kernels(self) -> tuple[Listing, ...]:
        """List the kernels in the order in which the file defines them."""
        return tuple(self._listing(name) for name in self._found)

    def _listing(self, name: str) -> Listing:
        value = self._found[name]
        return listing(name, value, getattr(value, "__module__", ""))

    def read(
        self,
        kernel: str,
        params: Mapping[str, Any],
        target: str,
        *,
        pass_configs: Mapping[str, Any] | None = None,
        want_build: bool = False,
    ) -> tuple[Kernel, ...]:
        """Build a kernel and lower it; see `Source.read`."""
        if kernel not in self._found:
            raise UnknownNameError("kernel", kernel, self._found)
        known = self._listing(kernel).parameters
        names = [p.name for p in known]
        given = {k: v for k, v in params.items() if k in names}
        # what the factory does not take may be a size that is open until run time
        sizes = {k: v for k, v in params.items() if k not in names}
        missing = [p.name for p in known if p.required and p.name not in given]
        if missing:
            add = " ".join(f"--set {name}=VALUE" for name in missing)
            raise InputError(f"{kernel} needs a value for {', '.join(missing)}: add {add}")
        prim_func, configs, flags = self._build(self._found[kernel], dict(given), target)
        open_sizes = _open_sizes(prim_func)
        for name, value in sizes.items():
            if name not in open_sizes:
                raise UnknownNameError(f"parameter of {kernel}", name, [*names, *open_sizes])
            if not isinstance(value, int):
                raise InputError(f"--set {name}={value!r}: a size is a whole number")
        defaults = {p.name: p.default for p in known if not p.required}
        return lower(
            prim_func,
            name=kernel,
            params={**defaults, **params},
            sizes=sizes,
            target=target,
            version=self.version,
            pass_configs={**configs, **(pass_configs or {})},
            compile_flags=flags,
            want_build=want_build,
        )

    def _build(
        self, value: Any, params: dict[str, Any], target: str
    ) -> tuple[Any, dict[str, Any], list[str]]:
        """Return the PrimFunc, and the pass configs and compiler flags of its author."""
        from tilelang import tvm

        prim_func_type = tvm.tirx.PrimFunc
        built = value
        if not isinstance(value, prim_func_type):
            match_dtype_objects(value, params)
            try:
                with tvm_target(target):
                    built = value.get_tir(**params) if _is_jit(value) else value(**params)
                    if _is_jit(built):  # a plain factory around a jit object
                        value, built = built, built.get_tir()
            except (Exception, SystemExit) as error:
                raise KernelError(describe(error, self.path)) from error
        if not isinstance(built, prim_func_type):
            raise KernelError(
                f"{self.path.name}: calling it gave a {type(built).__name__}, not a TileLang kernel"
            )
        attrs = dict(built.attrs or {})
        configs = {
            **dict(attrs.get("tilelang_pass_configs", {})),
            **(getattr(value, "pass_configs", None) or {}),
        }
        own = getattr(value, "compile_flags", None) or []
        flags = [
            *attrs.get("tilelang_compile_flags", []),
            *([own] if isinstance(own, str) else own),
        ]
        return built, configs, [str(flag) for flag in flags]


def _is_jit(value: Any) -> bool:
    return hasattr(value, "get_tir")


def lower(
    prim_func: Any,
    *,
    name: str,
    params: Mapping[str, Any],
    sizes: Mapping[str, int],
    target: str,
    version: str,
    pass_configs: Mapping[str, Any],
    compile_flags: Sequence[str] = (),
    want_build: bool = False,
) -> tuple[Kernel, ...]:
    """Lower a PrimFunc through TileLang's own pipeline and read what came out.

    Args:
        prim_func: The kernel.
        name: What the user calls it.
        params: Its parameters, for the record.
        sizes: Values for sizes that the PrimFunc leaves open.
        target: ``sm_90a`` ...
        version: TileLang's version, for the record.
        pass_configs: The author's pass configs.
        compile_flags: The author's flags for the device compiler.
        want_build: Whether what it takes to assemble it is kept.

    Raises:
        RefusedError: The compiler refused.
    """
    import tilelang
    from tilelang import tvm

    from tilefit.frontends._tilelang_ir import Capture, kernels_of

    capture = Capture()
    configs = {str(getattr(key, "value", key)): value for key, value in pass_configs.items()}
    with (
        tvm_target(target) as lowered_for,
        tvm.transform.PassContext(
            opt_level=3, config=configs, instruments=[capture.instrument(tvm)]
        ),
    ):
        try:
            artifact = tilelang.lower(prim_func, target=lowered_for)
        except Exception as error:
            raise RefusedError(refusal(error)) from error
    return kernels_of(
        prim_func,
        capture,
        artifact,
        name=name,
        params=params,
        sizes=sizes,
        target=target,
        version=version,
        configs=configs,
        build_flags=nvcc_flags(configs, compile_flags) if want_build else None,
    )


def tvm_target(target: str) -> Any:
    """Return the TVM target object for ``sm_90a``, ``gfx942`` or ``ascend``."""
    from tilelang import tvm

    if target.startswith("sm_"):
        return tvm.target.Target({"kind": "cuda", "arch": target})
    if target.startswith("gfx"):
        return tvm.target.Target({"kind": "hip", "mcpu": target})
    return tvm.target.Target({"kind": target})


def refusal(error: BaseException) -> str:
    """Return the compiler's reason in one line, without its stack."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if "Check failed:" in line:
            text = line.split("Check failed:", 1)[1]
            break
    if ") is false: " in text:
        text = text.split(") is false: ", 1)[1]
    return one_line(text, limit=300) or type(error).__name__


def _open_sizes(prim_func: Any) -> list[str]:
    """Return the names of the sizes that a PrimFunc leaves open until run time."""
    from tvm.tirx.stmt_functor import post_order_visit

    names: dict[str, None] = {}

    def visit(node: Any) -> None:
        if type(node).__name__ in ("Var", "SizeVar"):
            names[str(node.name)] = None

    for buffer in prim_func.buffer_map.values():
        for extent in (*buffer.shape, *(buffer.strides or ())):
            post_order_visit(extent, visit)
    for parameter in prim_func.params:
        if parameter not in prim_func.buffer_map:
            names[str(parameter.name)] = None
    return list(names)
