"""What an answer rests on: it holds for as long as all of that is as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rests:
    """All that an answer rests on.

    Attributes:
        files: Files by their content, folders by the names in them.
        absent: Paths that were looked for and not there.
        present: Folders that were looked for and there.
        environment: Variables that were read, with their values; None for one that was not set.
        installed: Files of installed packages, by size and time: there are thousands.
        unkept: Why the answer may be another one the next time; None if it may not.
    """

    files: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    installed: tuple[str, ...] = ()
    unkept: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rests:
        """Rebuild it from JSON."""
        return cls(
            **{
                **data,
                **{key: tuple(data[key]) for key in ("files", "absent", "present", "installed")},
            }
        )
