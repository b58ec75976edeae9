"""Lower a TileLang PrimFunc through the compiler's own pipeline, without a device.

What lowering produced is read in `ir`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from tilefit._errors import Cause, InputError, KernelError, RefusedError, UnknownNameError
from tilefit._frontends.tilelang.build import nvcc_flags
from tilefit._frontends.tilelang.declared import launches
from tilefit._frontends.tilelang.factory import Built, wrong_target
from tilefit._frontends.tilelang.sizes import Sizes, sizes_of
from tilefit._frontends.tilelang.target import foreign_instructions
from tilefit._frontends.tilelang.words import in_words
from tilefit._frontends.user_code import one_line
from tilefit._kernel.kernel import CannotAssemble, Kernel, MemoryUse
from tilefit._kernel.memory import STAGING, Memory
from tilefit._kernel.request import Request

_DYNAMIC_ALIGN_BYTES = 1024
# a target as TVM prints it, with all its attributes; its architecture says the same
_TARGET = re.compile(r'\{"kind":"\w+","tag":.*?"(?:arch|mcpu)":"(\w+)"[^{}]*\}')


def lower_built(
    built: Built,
    request: Request,
    *,
    known: Mapping[str, Any],
    names: Sequence[str],
    version: str,
) -> tuple[Kernel, ...]:
    """Lower a kernel that was built from parameters.

    Args:
        built: The PrimFunc and what its author asks for.
        request: What is asked of it.
        known: Its parameters' defaults, for the record.
        names: All its parameters; others that are given are sizes open until run time.
        version: TileLang's version, for the record.

    Raises:
        InputError: A parameter is neither the factory's nor an open size.
        KernelError: It launches nothing.
        RefusedError: The kernel is for another target, or the compiler refused it.
    """
    sizes = _with_values(sizes_of(built.prim_func), request, names)
    _refuse_unknown_configs(request.options)
    refused = wrong_target(built.target, request.target)
    if refused:
        raise RefusedError(refused, cause=Cause.OTHER_DEVICE)
    kernels = lower(
        built.prim_func,
        name=request.kernel,
        params={**known, **request.params},
        sizes=sizes,
        target=request.target,
        version=version,
        pass_configs={**built.pass_configs, **request.options},
        compile_flags=built.compile_flags,
        want_build=request.want_build,
    )
    return tuple(replace(k, notes=(*built.notes, *k.notes)) for k in kernels)


def _refuse_unknown_configs(options: Mapping[str, Any]) -> None:
    """Refuse a pass config that this TileLang does not have.

    Raises:
        UnknownNameError: There is one.
    """
    if not options:
        return
    from tilelang import tvm

    known = [str(name) for name in tvm.transform.PassContext.list_configs()]
    for name in options:
        if name not in known:
            raise UnknownNameError("pass config", name, known)


def _with_values(sizes: Sizes, request: Request, names: Sequence[str]) -> Sizes:
    """Return the open sizes with the values that are given.

    A parameter of the factory binds an open size of the same name too.

    Raises:
        InputError: A value is given for neither, or is no whole number.
    """
    known = {*sizes.names, *sizes.names.values()}
    values: dict[str, int] = {}
    for name, value in request.params.items():
        if name not in known and name not in names:
            shown = [*names, *dict.fromkeys(sizes.names.values())]
            raise UnknownNameError(f"parameter of {request.kernel}", name, shown)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if name in known and whole:
            values[sizes.names.get(name, name)] = value
        elif name not in names:
            raise InputError(f"--set {name}={value!r}: a size is a whole number")
    return replace(sizes, values=values)


def lower(
    prim_func: Any,
    *,
    name: str,
    params: Mapping[str, Any],
    sizes: Sizes,
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
        sizes: The sizes that the PrimFunc leaves open.
        target: ``sm_90a`` ...
        version: TileLang's version, for the record.
        pass_configs: The author's pass configs.
        compile_flags: The author's flags for the device compiler.
        want_build: Whether what it takes to assemble it is kept.

    Raises:
        KernelError: It launches nothing.
        RefusedError: The compiler refused.
    """
    if not launches(prim_func):  # TileLang would lower it to a launch of one thread
        raise KernelError(f"{name} launches no kernel: it has no T.Kernel")
    from tilelang import tvm
    from tilelang.engine.lower import lower as lower_by_tilelang

    from tilefit._frontends.tilelang.ascend.ir import AscendCapture
    from tilefit._frontends.tilelang.ascend.kernels import kernels_of as ascend_kernels_of
    from tilefit._frontends.tilelang.ir import Capture, kernels_of

    capture = AscendCapture() if target == "ascend" else Capture()
    failed = None
    configs = {str(getattr(key, "value", key)): value for key, value in pass_configs.items()}
    drawn = [key for key in configs if key.startswith("tl.layout_visualization")]
    for key in drawn:
        del configs[key]  # it draws pictures into the user's folder
    with (
        tvm_target(target) as lowered_for,
        tvm.transform.PassContext(
            opt_level=3, config=configs, instruments=[capture.instrument(tvm)]
        ),
    ):
        try:
            artifact = lower_by_tilelang(prim_func, target=lowered_for)
        except Exception as error:
            # memory is laid out before code is generated: without the code it is known all the same
            artifact, failed = capture.artifact(), in_words(refusal(error), target)
            if artifact is None:
                foreign = foreign_instructions(prim_func, None, target)
                reason = f"{foreign} ({failed})" if foreign else failed
                raise RefusedError(reason, cause=Cause.CHIP_LACKS if foreign else None) from error
    foreign = foreign_instructions(prim_func, artifact.device_mod, target)
    if foreign:
        raise RefusedError(foreign, cause=Cause.CHIP_LACKS)
    read: Any = ascend_kernels_of if target == "ascend" else kernels_of
    kernels = read(
        prim_func,
        capture,
        artifact,
        name=name,
        params=params,
        sizes=sizes,
        target=target,
        version=version,
        configs=configs,
        build_flags=nvcc_flags(configs, compile_flags) if want_build and not failed else None,
    )
    arguments = _arguments(prim_func)
    if failed is None:
        code = sha256(str(artifact.kernel_source).encode()).hexdigest()[:16]
        return tuple(replace(k, code=code, arguments=arguments) for k in kernels)
    if any(b.memory is Memory.TENSOR for k in kernels for b in k.buffers):
        raise RefusedError(failed)  # its columns are read from the code
    reason = f"TileLang laid out its memory and then failed to generate code: {failed}"
    return tuple(
        replace(
            k,
            arguments=arguments,
            memories=tuple(map(_as_generated, k.memories)),
            assembly=CannotAssemble(reason),
        )
        for k in kernels
    )


def _as_generated(use: MemoryUse) -> MemoryUse:
    """Return a use with the alignment that TileLang would declare in the code that it generates."""
    dynamic = use.memory in STAGING and use.dynamic_bytes
    return replace(use, align_bytes=_DYNAMIC_ALIGN_BYTES) if dynamic else use


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
    text = re.sub(r" ?\(0x[0-9a-f]+ vs\. 0x[0-9a-f]+\) ?", "", text)  # addresses say nothing
    if ") is false: " in text:
        text = text.split(") is false: ", 1)[1]
    text = _TARGET.sub(r"\1", text)
    text = one_line(text, limit=300)
    # a bare key, as of a table that lacks a dtype, says nothing without its kind
    return text if " " in text else f"{type(error).__name__}{f': {text}' if text else ''}"


def _arguments(prim_func: Any) -> tuple[str, ...]:
    """Return type and shape of each tensor that a PrimFunc is called with."""
    tensors = [prim_func.buffer_map[p] for p in prim_func.params if p in prim_func.buffer_map]
    return tuple(f"{one.dtype} {'x'.join(map(str, one.shape))}" for one in tensors)
