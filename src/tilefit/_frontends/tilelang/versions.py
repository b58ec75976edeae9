"""What a user's file asks of TileLang that the one here does not have."""

from __future__ import annotations

import re
import sys

_LACKS = re.compile(
    r"module 'tilelang[\w.]*' has no attribute"
    r"|cannot import name '\w+' from '(?:partially initialized module )?tilelang"
    r"|No module named 'tilelang\."
)


def with_version(message: str) -> str:
    """Add to the message of an error which TileLang this is, where it lacks what was asked for.

    Names come and go between its versions, and the user's file is often right for another one.
    """
    if not _LACKS.search(message):
        return message
    version = getattr(sys.modules.get("tilelang"), "__version__", None)
    if version is None:
        return message
    plain = str(version).split("+")[0]
    return f"{message}: this TileLang is {plain}; --python names an interpreter that has another"
