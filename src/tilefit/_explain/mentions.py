"""Which devices and vendors a text speaks of, for messages that do not say whose they are."""

from __future__ import annotations

from functools import cache

from tilefit._devices.names import Device, device, device_names
from tilefit._explain.pasted import Pasted

_VENDOR_WORDS = {
    "nvidia": {"nvidia", "cuda", "geforce", "rtx", "gtx", "tesla", "cublas", "cudnn", "ptxas"},
    "amd": {"amd", "rocm", "hip", "radeon", "instinct", "amdgpu", "rdna", "cdna", "miopen"},
}
_LONGEST_NAME = 3  # words: rtx 6000 ada


class Mentions:
    """What a text names, looked for once and only if somebody asks."""

    def __init__(self, pasted: Pasted) -> None:
        self._pasted = pasted
        self._found: tuple[tuple[Device, ...], frozenset[str]] | None = None

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that the text names; a product stands for its architecture."""
        return self._look()[0]

    @property
    def vendors(self) -> frozenset[str]:
        """The vendors whose words stand in the text."""
        return self._look()[1]

    def _look(self) -> tuple[tuple[Device, ...], frozenset[str]]:
        if self._found is None:
            words = self._pasted.words()
            names = _names()
            found: dict[str, Device] = {}
            for i in range(len(words)):
                joined = ""
                for word in words[i : i + _LONGEST_NAME]:
                    joined += word
                    if joined in names:
                        found[names[joined].name] = names[joined]
            products = {one.arch for one in found.values() if one.product}
            kept = (one for one in found.values() if one.product or one.arch not in products)
            said = frozenset(words)
            vendors = frozenset(vendor for vendor, known in _VENDOR_WORDS.items() if said & known)
            self._found = tuple(kept), vendors
        return self._found


@cache
def _names() -> dict[str, Device]:
    """Return devices by folded name and alias; only names that no ordinary word or number is."""
    found: dict[str, Device] = {}
    for one in map(device, device_names()):
        for name in (one.name, *one.aliases):
            folded = "".join(c for c in name.casefold() if c.isalnum())
            if len(folded) >= 4 and not folded.isdecimal() and not folded.isalpha():
                found.setdefault(folded, one)
    return found
