"""What is asked of `plan`, which target answers for a device, and a kernel read once for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilefit._assembler.assemble import assembled
from tilefit._devices.names import Device
from tilefit._errors import InputError, RefusedError
from tilefit._kernel.kernel import Kernel, Listing
from tilefit._kernel.toolchain import Toolchain
from tilefit._verdict.judge import Policy

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is asked beyond the verdict.

    Attributes:
        headroom_bytes: Shared memory of a block, or UB, that has to stay free.
        blocks: Blocks that one core has to hold at once; None if any number will do.
        assemble: Run the assembler too, for registers and spills.
        suggest: Look for edits: True always, None when it does not fit, False never.
        ladder: A parameter to step up, as ``--ladder`` takes it.
        stages: Look for the largest stage count; left out where many kernels are planned.
        estimate: Read the source alone; nothing is executed or compiled.
        cache: Keep what was read in the user's cache folder, and use what is there.
        progress: Called with a line before each slow step.
    """

    headroom_bytes: int = 0
    blocks: int | None = None
    assemble: bool = False
    suggest: bool | None = None
    ladder: str | None = None
    stages: bool = True
    estimate: bool = False
    cache: bool = True
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if type(self.headroom_bytes) is not int or self.headroom_bytes < 0:
            raise InputError(
                f"headroom_bytes={self.headroom_bytes!r} is not a whole number of bytes from 0"
            )
        if self.blocks is not None and (type(self.blocks) is not int or self.blocks < 1):
            raise InputError(f"blocks={self.blocks!r} is not a whole number from 1")

    @property
    def policy(self) -> Policy:
        """What is asked beyond bare fitting."""
        return Policy(headroom_bytes=self.headroom_bytes, blocks=self.blocks)


def toolchain_named(name: str | Toolchain) -> Toolchain:
    """Return what the toolchain of that name can do."""
    if isinstance(name, Toolchain):
        return name
    from tilefit._frontends.source.frontend import SOURCE
    from tilefit._frontends.tilelang.frontend import TILELANG

    return {one.name: one for one in (SOURCE, TILELANG)}[name]


def quiet(_: str) -> None:
    """Take a progress line and show nothing."""


def target_of(device: Device, *, estimate: bool = False) -> str | None:
    """Return the target to read kernels for, None where `plan` cannot read them for a device.

    Args:
        device: The device.
        estimate: Whether the source alone is read: then the architecture is target enough.
    """
    if device.vendor not in ("nvidia", "amd", "ascend"):
        return None
    return device.target("tilelang") or (device.arch if estimate else None)


def from_source(device: Device, options: Options) -> bool:
    """Say whether the source alone is read: it is asked for, or no toolchain lowers for it."""
    return options.estimate or target_of(device) is None


def why_unread(device: Device) -> str:
    """Say in one line why `plan` cannot read kernels for a device."""
    if target_of(device, estimate=True) is not None:
        return (
            f"TileLang cannot lower for {device.name}: name the file, FILE::KERNEL, and its "
            "source is read"
        )
    return (
        f"plan reads kernels for NVIDIA, AMD and Ascend, not for {device.vendor} yet: "
        "try `tilefit budget` or `tilefit footprint`"
    )


class Reader:
    """Reads one kernel; each (target, parameters, pass configs) is lowered once."""

    def __init__(
        self,
        read: Callable[..., tuple[Kernel, ...]],
        listing: Listing,
        toolchain: Toolchain,
        version: str,
        options: Options,
        *,
        estimate: bool = False,
    ) -> None:
        self.read, self.listing = read, listing
        self.toolchain, self.version = toolchain, version
        self.kernel = listing.name
        self.estimate = estimate
        self.assemble = options.assemble
        self.progress = options.progress or quiet
        self.prefix = ""
        self.done: dict[tuple[str, str, str], tuple[Kernel, ...] | RefusedError] = {}

    def say(self, line: str) -> None:
        """Report a slow step."""
        self.progress(f"{self.prefix}{line}")

    def __call__(
        self,
        params: Mapping[str, Any],
        target: str,
        pass_configs: Mapping[str, Any] | None = None,
    ) -> tuple[Kernel, ...]:
        configs = dict(pass_configs or {})
        key = (target, repr(sorted(params.items())), repr(sorted(configs.items())))
        if key not in self.done:
            self.say(f"{'reading' if self.estimate else 'lowering'} {self.kernel} for {target}")
            try:
                self.done[key] = self._lowered(params, target, configs)
            except RefusedError as refusal:
                self.done[key] = refusal
        found = self.done[key]
        if isinstance(found, RefusedError):
            raise found
        return found

    def _lowered(
        self, params: Mapping[str, Any], target: str, configs: Mapping[str, Any]
    ) -> tuple[Kernel, ...]:
        kernels = self.read(
            self.kernel, params, target, pass_configs=configs, want_build=self.assemble
        )
        if not self.assemble or self.estimate:
            return kernels
        self.say(f"assembling {self.kernel} for {target}")
        return assembled(kernels)
