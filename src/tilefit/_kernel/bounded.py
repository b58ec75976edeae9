"""Files that a user names, read whole: never more than fits, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefit._errors import InputError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

MOST_BYTES = 64 * 2**20
"""More than any log, table or list that people write; a device file may have no end."""


def read_whole(stream: BinaryIO, what: str) -> bytes:
    """Read a stream to its end.

    Args:
        stream: Any: a file, a pipe, a device.
        what: What it is, in a complaint.

    Raises:
        InputError: It has more than `MOST_BYTES`.
    """
    parts, size = [], 0
    while part := stream.read(min(1 << 20, MOST_BYTES + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            most = MOST_BYTES // 2**20
            raise InputError(
                f"{what} has more than {most} MiB, or no end: give the part that counts"
            )
    return b"".join(parts)


def read_text(path: Path, what: str) -> str:
    """Read a file of UTF-8, with or without a byte order mark.

    Raises:
        InputError: It is too long, or no UTF-8.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        data = read_whole(file, what)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{what} is no UTF-8 text: byte {error.start:,} is {data[error.start]:#04x}"
        ) from None
