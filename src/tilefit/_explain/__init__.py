"""Error messages that people paste, explained: which memory, by how much, whose limit.

`explain` takes any text. The messages known are one table, ``data/messages.toml``.
"""

from __future__ import annotations

from tilefit._explain.driver import explain
from tilefit._explain.values import Cause, Change, Explanation, Finding, Room, Sum, Whose

__all__ = ["Cause", "Change", "Explanation", "Finding", "Room", "Sum", "Whose", "explain"]
