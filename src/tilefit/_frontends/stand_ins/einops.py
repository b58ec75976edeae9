"""What a file's reference needs of einops where it is not installed: rearrange, repeat, einsum.

The results have the right shapes, and the right values where there are values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any


def rearrange(tensor: Any, pattern: str, **sizes: int) -> Any:
    """Reorder, split, merge and repeat axes, as ``"b (h g) d -> b h g d"`` says.

    Args:
        tensor: A tensor.
        pattern: Axes before and after; ``...`` stands for any number of them.
        sizes: Lengths that the tensor's shape does not give.
    """
    before, after = (_axes(side, tensor.dim(), pattern) for side in pattern.split("->"))
    lengths: dict[str, int] = {name: int(size) for name, size in sizes.items()}
    for group, extent in zip(before, tensor.shape, strict=True):
        open_ones = [name for name in group if name not in lengths]
        known = math.prod(lengths[name] for name in group if name in lengths)
        for name in open_ones[:1]:
            lengths[name] = int(extent) // known
    order = [name for group in before for name in group]
    result = tensor.reshape([lengths[name] for name in order])
    wanted = [name for group in after for name in group]
    result = result.permute([order.index(name) for name in wanted if name in order])
    for position, name in enumerate(wanted):
        if name not in order:
            result = result.unsqueeze(position)
    result = result.expand([lengths[name] for name in wanted])
    return result.reshape([math.prod(lengths[name] for name in group) for group in after])


def einsum(*operands: Any) -> Any:
    """Multiply and sum over named axes: tensors, then ``"b h d, b s d -> b h s"``."""
    import torch

    *tensors, pattern = operands
    letters: dict[str, str] = {}
    written = re.sub(
        r"[A-Za-z_]\w*",
        lambda name: letters.setdefault(name.group(), chr(ord("a") + len(letters))),
        pattern,
    )
    return torch.einsum(written.replace(" ", ""), *tensors)


def _axes(side: str, dims: int, pattern: str) -> Sequence[list[str]]:
    """Return the groups of axis names of one side of a pattern."""
    left = re.sub(r"\([^)]*\)", "group", pattern.split("->")[0].replace("(...)", "..."))
    hidden = [f"...{i}" for i in range(dims - len(re.findall(r"\w+", left)))]
    groups: list[list[str]] = []
    for token in re.findall(r"\([^)]*\)|\.\.\.|\w+", side):
        if token == "...":
            groups += [[name] for name in hidden]
            continue
        names = re.findall(r"\.\.\.|\w+", token)
        parts = [hidden if name == "..." else [name] for name in names if name != "1"]
        groups.append([name for part in parts for name in part])
    return groups
