"""Bytes in, bytes out: the one place that parses and prints sizes.

Inside tilefit every size is an integer of bytes. KiB appears only here, at the edge.
"""

from __future__ import annotations

from tilefit._errors import InputError

KIB = 1024
_UNITS = {"b": 1, "kib": KIB, "mib": KIB**2, "gib": KIB**3}
_AMBIGUOUS = {"k": "KiB", "kb": "KiB", "m": "MiB", "mb": "MiB", "g": "GiB", "gb": "GiB"}


def parse_bytes(text: str) -> int:
    """Parse a size: plain bytes, ``0x20000`` or ``48KiB``.

    ``48K`` and ``48KB`` are refused: some read them as 48,000 and others as 49,152.

    Raises:
        InputError: Not a size, not a whole number of bytes, or negative.
    """
    raw = text.strip().replace("_", "").replace(",", "")
    digits = raw
    unit = ""
    if not raw.lower().startswith("0x"):
        digits = raw.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = raw[len(digits) :].lower()
        digits = digits.strip()
    if unit in _AMBIGUOUS:
        power = {"k": 1, "m": 2, "g": 3}[unit[0]]
        try:
            number = int(digits)
        except ValueError:
            raise InputError(_not_a_size(text)) from None
        raise InputError(
            f"size {text!r} is ambiguous: write {number * 1000**power} for decimal units "
            f"or {number}{_AMBIGUOUS[unit]} for {number * 1024**power} bytes"
        )
    if unit and unit not in _UNITS:
        raise InputError(_not_a_size(text))
    try:
        number = int(digits, 16) if digits.lower().startswith("0x") else int(digits, 10)
    except ValueError:
        raise InputError(_not_a_size(text)) from None
    if number < 0:
        raise InputError(f"size {text!r} is negative: sizes are whole numbers of bytes from 0")
    return number * _UNITS.get(unit, 1)


def _not_a_size(text: str) -> str:
    return f"size {text!r} is not a size: write bytes (49152), hex (0xC000) or KiB (48KiB)"


def human(n_bytes: int) -> str:
    """Return the size in the largest binary unit that it reaches: ``512 B``, ``64 KiB``.

    Exact: a size that is no whole multiple keeps its decimals (``1.5 KiB``).
    """
    if n_bytes < KIB:
        return f"{n_bytes:g} B"
    if n_bytes < KIB**2:
        return f"{_decimal(n_bytes, KIB)} KiB"
    return f"{_decimal(n_bytes, KIB**2)} MiB"


def _decimal(n_bytes: int, unit: int) -> str:
    # at most ten decimals divide a KiB exactly, twenty a MiB: repr of the quotient is exact
    # for every size below 2**53
    value = n_bytes / unit
    return f"{value:.0f}" if value.is_integer() else repr(value)


def percent(part: int, whole: int) -> int:
    """Return ``part`` as a whole percentage of ``whole``, rounded to nearest."""
    return round(100 * part / whole) if whole else 0


def round_up(value: int, granule: int) -> int:
    """Return the smallest multiple of ``granule`` that is at least ``value``."""
    return -(-value // granule) * granule
