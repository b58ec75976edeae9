"""Which toolchain and target answer for a device, and a kernel read once for each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilefit._assembler.assemble import assembled
from tilefit._devices.facts import facts_of
from tilefit._devices.names import Device
from tilefit._errors import InputError, KernelError, RefusedError
from tilefit._frontends import registry
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.request import Request
from tilefit._kernel.toolchain import Toolchain
from tilefit._planning.question import Options, quiet


def target_of(device: Device, toolchain: Toolchain) -> str | None:
    """Return the target to read kernels for; None where a toolchain cannot for a device."""
    if device.vendor not in toolchain.vendors:
        return None
    return device.target(toolchain.targets) or (None if toolchain.needs_target else device.arch)


def way_to(device: Device, toolchain: Toolchain, options: Options) -> Toolchain:
    """Return what reads a file's kernels for a device.

    That is the toolchain that they are written for, unless an estimate is asked for or it does
    not compile for the device: then what reads their source alone, if there is that.

    Raises:
        InputError: An estimate is asked for, and nothing reads their source alone.
    """
    if not options.estimate and target_of(device, toolchain) is not None:
        return toolchain
    if not toolchain.compiles:
        return toolchain
    if toolchain.estimated_by is not None:
        return registry.frontend(toolchain.estimated_by).toolchain
    if options.estimate:
        raise InputError(f"--estimate: nothing reads the source of {toolchain.title} kernels alone")
    return toolchain


def told(devices: Sequence[Device], toolchain: Toolchain) -> list[dict[str, Any]]:
    """Return what user code is told of the devices: of each target the first."""
    alike = {target_of(one, toolchain): one for one in reversed(devices)}
    return [facts_of(one) for one in devices if alike[target_of(one, toolchain)] is one]


def why_unread(device: Device, toolchain: Toolchain) -> str:
    """Say in one line why `plan` cannot read kernels for a device."""
    if device.vendor in toolchain.vendors:
        alone = ": name the file, FILE::KERNEL, and its source is read"
        return (
            f"{toolchain.title} cannot lower for {device.name}"
            f"{alone if toolchain.estimated_by else ''}"
        )
    *most, last = (_TITLES.get(vendor, vendor) for vendor in toolchain.vendors)
    whose = f"{', '.join(most)} and {last}" if most else last
    return (
        f"plan reads kernels for {whose}, not for {device.vendor} yet: "
        "try `tilefit budget` or `tilefit footprint`"
    )


_TITLES = {"nvidia": "NVIDIA", "amd": "AMD", "ascend": "Ascend"}


class Reader:
    """Reads one kernel; each request is read once."""

    def __init__(
        self,
        read: Callable[[Request], tuple[Kernel, ...]],
        listing: Listing,
        toolchain: Toolchain,
        version: str,
        options: Options,
    ) -> None:
        self.read, self.listing = read, listing
        self.toolchain, self.version = toolchain, version
        self.kernel = listing.name
        self.assemble = options.assemble and toolchain.compiles
        self.pass_configs = dict(options.pass_configs) if toolchain.compiles else {}
        self.progress = options.progress or quiet
        self.prefix = ""
        self.done: dict[str, tuple[Kernel, ...] | RefusedError] = {}

    def say(self, line: str) -> None:
        """Report a slow step."""
        self.progress(f"{self.prefix}{line}")

    def __call__(
        self,
        params: Mapping[str, Any],
        target: str,
        pass_configs: Mapping[str, Any] | None = None,
    ) -> tuple[Kernel, ...]:
        request = Request(
            kernel=self.kernel,
            target=target,
            params=params,
            options={**self.pass_configs, **(pass_configs or {})},
            want_build=self.assemble,
        )
        if request.key not in self.done:
            word = "lowering" if self.toolchain.compiles else "reading"
            self.say(f"{word} {self.kernel} for {target}")
            try:
                self.done[request.key] = self._lowered(request)
            except RefusedError as refusal:
                self.done[request.key] = refusal
        found = self.done[request.key]
        if isinstance(found, RefusedError):
            raise found
        return found

    def _lowered(self, request: Request) -> tuple[Kernel, ...]:
        kernels = self.read(request)
        if not kernels:  # no kernel would be no misfit either
            raise KernelError(f"{self.toolchain.title} gave no kernel for {request.kernel}")
        if not self.assemble:
            return kernels
        self.say(f"assembling {self.kernel} for {request.target}")
        return assembled(kernels)
