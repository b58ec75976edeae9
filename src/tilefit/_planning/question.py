"""What is asked of `plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefit._devices.names import Device
from tilefit._errors import InputError
from tilefit._planning.keep import conditions
from tilefit._planning.values import Values
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
        keep: Conditions that edits leave true, as ``--keep`` takes them.
        pass_configs: Compiler options by name, on top of the author's own.
        cache: Keep what was read in the user's cache folder, and use what is there.
        frontend: Name of the one that reads the files; None to recognise it by the file.
        progress: Called with a line before each slow step.
    """

    headroom_bytes: int = 0
    blocks: int | None = None
    assemble: bool = False
    suggest: bool | None = None
    ladder: str | None = None
    stages: bool = True
    estimate: bool = False
    keep: tuple[str, ...] = ()
    pass_configs: Mapping[str, Any] = field(default_factory=dict)
    cache: bool = True
    frontend: str | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if type(self.headroom_bytes) is not int or self.headroom_bytes < 0:
            raise InputError(
                f"headroom_bytes={self.headroom_bytes!r} is not a whole number of bytes from 0"
            )
        if self.blocks is not None and (type(self.blocks) is not int or self.blocks < 1):
            raise InputError(f"blocks={self.blocks!r} is not a whole number from 1")
        for name in ("assemble", "suggest", "stages", "estimate", "cache"):
            value = getattr(self, name)
            if type(value) is not bool and not (name == "suggest" and value is None):
                words = "True, False or None" if name == "suggest" else "True or False"
                raise InputError(f"{name}={value!r} is not {words}")
        for name in ("ladder", "frontend"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name}={value!r} is not a name")
        if type(self.keep) is not tuple or not all(isinstance(text, str) for text in self.keep):
            raise InputError(f"keep={self.keep!r} is no list of conditions, as in ('BM>=64',)")
        conditions(self.keep)
        if self.pass_configs and self.estimate:
            raise InputError("an estimate compiles nothing, so pass configs change nothing in it")
        if self.progress is not None and not callable(self.progress):
            raise InputError(f"progress={self.progress!r} cannot be called with a line")

    @property
    def policy(self) -> Policy:
        """What is asked beyond bare fitting."""
        return Policy(headroom_bytes=self.headroom_bytes, blocks=self.blocks)


def quiet(_: str) -> None:
    """Take a progress line and show nothing."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every file.

    Attributes:
        devices: For which devices.
        params: Parameters; a kernel takes those that it has.
        options: What is asked beyond the verdict.
        values: More parameters, of single kernels, in sets.
    """

    devices: tuple[Device, ...]
    params: Mapping[str, Any]
    options: Options
    values: Values | None = None
