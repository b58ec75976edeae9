"""What a toolchain can do: the facts about it that others ask for, as plain values.

Each frontend has one. Nothing outside a frontend tests for a toolchain by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefit._kernel.memory import Evidence, Memory

STAGE_PARAMETERS = (
    *("num_stages", "stages", "num_stage", "n_stages", "nstages", "stage"),
    "pipeline_stages",
)
"""Names that people give the parameter that sets the stages, the likeliest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Edits to try for one vendor's chips, beside those of a kernel's own parameters.

    Attributes:
        pass_configs: Compiler options that can make a kernel smaller, each with its value.
        all_stages: Whether every parameter that sets stages or versions counts, as a loop in a
            loop has its own, and not the first of them alone.
        unchecked: Compiler options under which it refuses nothing for want of memory, so that
            what it refused can be measured.
    """

    pass_configs: tuple[tuple[str, Any], ...] = ()
    all_stages: bool = False
    unchecked: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """One toolchain, or one way to read its kernels.

    Attributes:
        name: As it stands in answers and in the registry.
        title: As people write it.
        compiles: Whether what it hands over was compiled; it executes the user's file then.
            Otherwise the source alone is read, and nothing is executed.
        targets: Under which name the data of a device gives its target.
        vendors: Whose chips it reads kernels for.
        needs_target: Whether a device without such a target cannot be read for; otherwise its
            architecture is target enough.
        suffixes: What the names of its files end in.
        marks: Names of modules; a file that mentions one is written for it.
        estimated_by: The frontend that reads the source of its kernels alone, if there is one.
        packers: Which of our packers (see `tilefit._placement.compare`) lays out what memory by
            its rules; none for a memory where there is no layout to compare.
        edits: What to try for whose chips.
        stage_parameters: Names of the parameter that sets the stages, the likeliest first.
    """

    name: str
    title: str
    compiles: bool = True
    targets: str
    vendors: tuple[str, ...]
    needs_target: bool = True
    suffixes: tuple[str, ...] = (".py",)
    marks: tuple[str, ...] = ()
    estimated_by: str | None = None
    packers: Mapping[Memory, str] = field(default_factory=dict)
    edits: Mapping[str, Edits] = field(default_factory=dict)
    stage_parameters: tuple[str, ...] = STAGE_PARAMETERS

    @property
    def evidence(self) -> Evidence:
        """How what it hands over came to be known, at best."""
        return Evidence.COMPILED if self.compiles else Evidence.DECLARED

    def edits_for(self, vendor: str) -> Edits:
        """Return what to try for a vendor's chips."""
        return self.edits.get(vendor, Edits())
