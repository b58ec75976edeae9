"""The bytes of one tile: elements x bits / 8, rounded up to a byte, x copies.

Arithmetic on what the source says. It knows nothing of a compiler's alignment, padding,
barriers or reuse; that is what ``tilefit plan`` is for.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefit._devices.alike import tensor_memory
from tilefit._errors import InputError
from tilefit._kernel.dtype import DType, parse_dtype
from tilefit._kernel.memory import Memory
from tilefit._kernel.units import round_up
from tilefit._tiles.limit import MAX_BYTES, Limit, find_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tilefit._devices.names import Device


@dataclass(frozen=True, slots=True)
class Footprint:
    """One tile, how often it is kept, and optionally what it must fit into.

    Attributes:
        shape: Extent of every dimension, in elements.
        dtype: Element type.
        copies: Buffers of that tile (the depth of a multi-buffered pipeline).
        limit: What the tile must fit into, or None.
    """

    shape: tuple[int, ...]
    dtype: DType
    copies: int = 1
    limit: Limit | None = None

    def __post_init__(self) -> None:
        if not self.shape:
            raise InputError("a tile needs at least one dimension")
        for extent in self.shape:
            if extent < 1:
                raise InputError(f"tile {self.shape} has an extent of {extent}: write 1 or more")
        if self.copies < 1:
            raise InputError(f"copies {self.copies} is not 1 or more")
        if self.copies > MAX_BYTES or self.elements > MAX_BYTES or self.total_bytes > MAX_BYTES:
            raise InputError("the tile is larger than any memory: over 2**63 - 1 bytes")

    @property
    def elements(self) -> int:
        """Elements of one copy."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def bytes_per_copy(self) -> int:
        """Bytes of one copy, packed: sub-byte elements share bytes, the last byte is whole."""
        return self.dtype.nbytes(self.elements)

    @property
    def total_bytes(self) -> int:
        """Bytes of all copies, packed."""
        return self.bytes_per_copy * self.copies

    @property
    def container_bytes(self) -> int:
        """Bytes of all copies with each element in the container that tcgen05 f8f6f4 reads."""
        return self.dtype.container_nbytes(self.elements) * self.copies

    @property
    def padded_by_hardware(self) -> bool:
        """True for fp4 and fp6, which tcgen05 f8f6f4 reads from 8-bit containers."""
        return self.dtype.container_bits != self.dtype.bits

    @property
    def charged_as(self) -> str:
        """What the limit is compared with: ``packed``, ``containers`` or ``columns``."""
        if self.limit is not None and self.limit.memory is Memory.TENSOR:
            return "columns"
        if self.limit is not None and self.limit.padded and self.padded_by_hardware:
            return "containers"
        return "packed"

    @property
    def choice(self) -> bool:
        """True if there is more than one way to count this tile's bytes there."""
        return self.padded_by_hardware or self.charged_as != "packed"

    @property
    def tensor_columns(self) -> int:
        """Columns of tensor memory for all copies: a row a lane, further rows beside them."""
        pool = tensor_memory()
        lanes = pool.lanes or 1
        row = self.dtype.nbytes(self.shape[-1])
        bands = -(-(self.elements // self.shape[-1]) // lanes)
        columns = bands * -(-row // (pool.column_bytes // lanes))
        return round_up(columns, pool.column_step) * self.copies

    @property
    def charged_bytes(self) -> int:
        """Bytes that the limit is compared with (see `charged_as`)."""
        match self.charged_as:
            case "columns":
                return self.tensor_columns * tensor_memory().column_bytes
            case "containers":
                return self.container_bytes
            case _:
                return self.total_bytes

    @property
    def limit_bytes(self) -> int | None:
        """The limit in bytes, None without one."""
        return None if self.limit is None else self.limit.limit_bytes

    @property
    def margin_bytes(self) -> int | None:
        """What the tile leaves of the limit; negative if it is over, None without one."""
        return None if self.limit is None else self.limit.limit_bytes - self.charged_bytes

    @property
    def fits(self) -> bool | None:
        """True up to and including the limit; None without one."""
        return None if self.limit is None else self.charged_bytes <= self.limit.limit_bytes

    @property
    def fits_packed_only(self) -> bool:
        """True if fp4 is over the limit in containers, but not as the mxf4 kinds read it."""
        return (
            self.charged_as == "containers"
            and self.dtype.bits == 4
            and self.fits is False
            and self.limit is not None
            and self.total_bytes <= self.limit.limit_bytes
        )

    def smaller(self) -> Footprint | None:
        """Return the nearest smaller footprint that fits: fewer copies, else halved extents.

        None if there is no limit, or if not even single elements fit.
        """
        if self.limit is None:
            return None
        copies = self.limit.limit_bytes // replace(self, copies=1).charged_bytes
        if copies:
            return replace(self, copies=min(copies, self.copies))
        tile = self
        while not tile.fits:
            longest = max(range(len(tile.shape)), key=tile.shape.__getitem__)
            if tile.shape[longest] == 1:
                return None
            halved = list(tile.shape)
            halved[longest] //= 2
            tile = replace(tile, shape=tuple(halved))
        return tile

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: plain values, sizes in bytes."""
        return {
            "shape": list(self.shape),
            "dtype": self.dtype.name,
            "copies": self.copies,
            "elements": self.elements,
            "bytes_per_copy": self.bytes_per_copy,
            "total_bytes": self.total_bytes,
            "container_bytes": self.container_bytes,
            "charged_as": self.charged_as,
            "charged_bytes": self.charged_bytes,
            "limit_bytes": self.limit_bytes,
            "margin_bytes": self.margin_bytes,
            "fits": self.fits,
            "device": None if self.limit is None else self.limit.device,
            "limit_source": None if self.limit is None else self.limit.source,
            "memory": None if self.limit is None else self.limit.memory,
        }


def footprint(
    shape: Sequence[int],
    dtype: DType | str,
    copies: int = 1,
    *,
    capacity_bytes: int | None = None,
    device: Device | str | None = None,
    memory: str | None = None,
) -> Footprint:
    """Return the bytes of a tile and, if a limit is given, whether it fits.

    Args:
        shape: Extent of every dimension, in elements.
        dtype: Element type, by any of its names.
        copies: Buffers of the tile.
        capacity_bytes: A limit in bytes.
        device: A device, its name or a named capacity, in place of ``capacity_bytes``.
        memory: Which of the device's memories; needed where it has several for tiles.

    Raises:
        InputError: An extent or count below 1, an unknown name, or both kinds of limit.
    """
    return Footprint(
        shape=tuple(whole("tile extent", extent) for extent in shape),
        dtype=element_type(dtype),
        copies=whole("copies", copies),
        limit=find_limit(capacity_bytes, device, memory),
    )


def element_type(dtype: DType | str) -> DType:
    """Return the dtype itself, or the one of that name (toolchains' dtype objects included)."""
    return dtype if isinstance(dtype, DType) else parse_dtype(str(dtype))


def whole(what: str, value: int) -> int:
    """Return ``value`` as an int.

    Raises:
        InputError: Not a whole number.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{what} {value!r} is not a whole number") from None
