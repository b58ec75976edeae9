"""What TileLang's refusals mean, where that is known: a plain line before the compiler's own."""

from __future__ import annotations

import re

# pattern in the compiler's text: what it means. Each was met with TileLang 0.1.15, and what helps
# was lowered.
_MEANINGS = (
    (
        re.compile(r"Downcast from tirx\.\w+ to ir\.IntImm failed"),
        "a pipelined loop has bounds that are known only at run time, and this TileLang wants a "
        "constant where it waits for their copies: num_stages=1 builds, and so do constant bounds",
    ),
    (
        re.compile(r"shared layout cannot be encoded for TMA"),
        "the tile's layout has no form that TMA can copy: --pass-config tl.disable_tma_lower=True "
        "with --pass-config tl.disable_warp_specialized=True lowers it without TMA",
    ),
    (re.compile(r"Divide by zero", re.IGNORECASE), "a size that the kernel divides by is 0"),
    (
        re.compile(r"KeyError: [\"']?dtype\('?(?P<word>\w+)'?\)"),
        "this TileLang has no form of {word} for {target}",
    ),
    (
        re.compile(r"Unsupported [ab]_dtype: (?P<word>\w+)"),
        "this TileLang has no matrix instruction of {target} for {word}",
    ),
    (
        re.compile(r"M must be divisible by (?P<word>\d+), but got (?P<got>\d+)"),
        "a T.gemm takes rows in steps of {word}, and its tile has {got}",
    ),
)


def in_words(text: str, target: str) -> str:
    """Return a refusal with what it means in front of it, where that is known.

    Args:
        text: The compiler's reason in one line.
        target: What it lowered for.
    """
    for pattern, meaning in _MEANINGS:
        found = pattern.search(text)
        if found:
            return f"{meaning.format(target=target, **found.groupdict())} (TileLang: {text})"
    return text
