"""Why a buffer has as many copies as it has: a short, documented list of codes.

A code names the cause that the compiler's own passes show: what a pass multiplied, and what in
the source made it do so. `docs/reasons.md` is made from this table.
"""

from __future__ import annotations

REASONS = {
    # more than one copy
    "ws-pipeline": "the warp-specialised pipeline keeps a copy a stage: a producer fills it ahead",
    "pipeline": "the software pipeline keeps a copy a stage: a T.copy fills it ahead",
    "two-loops": "two passes multiply it, one for each of two pipelined loops: S x S copies",
    "store-driven": "a plain store that reads global memory, no T.copy, fills it a stage ahead",
    "guarded-load": "a guarded element-wise load from global memory fills it a stage ahead",
    "explicit-order": "the order= and stage= lists of the loop set its copies",
    # one copy
    "not-pipelined": "no pipelined loop writes it",
    "read-only": "a pipelined loop reads it but does not write it",
    "same-stage": "a pipelined loop writes and reads it in the same stage",
    "one-stage": "its pipelined loop has num_stages=1",
    "stages-dropped": "num_stages was asked for and removed by the compiler without a message",
    # Ascend: versions, which its scheduler chooses between 1 and num_stages
    "scheduled": "the scheduler took every version that num_stages allows",
    "fewer-suffice": "the scheduler took fewer versions than num_stages: more would not start an "
    "iteration sooner",
    "fewer-taken": "the scheduler took fewer versions than num_stages; whether for want of room "
    "could not be asked",
    "no-room": "the scheduler took fewer versions than it wanted: more do not fit the memory, as "
    "it counts it",
    "fewest-versions": "an estimate counts one version, as those that num_stages asks for do not "
    "fit: the scheduler takes as many as do",
    "outlives-iteration": "what it holds outlives an iteration of the pipelined loop: it cannot "
    "take turns",
    "fixed-versions": "T.annotate_buffer_versions fixes its versions, fit or not",
    "manual-versions": "the author laid out its versions by hand: they are in its shape",
    "schedule-off": "the scheduler is turned off: one version, and nothing checks that it fits",
    # none, or not a whole number
    "unused": "nothing uses it: lowering removed it",
    "empty-loop": "its loop has no iterations at these sizes: lowering removed it",
    "layout": "lowering changed its layout: the bytes are no multiple of those declared",
    # what the author did not write
    "barrier": "mbarriers that order the pipeline",
    "reduce-workspace": "scratch of a reduction across threads",
    "nz-scratch": "scratch in UB that puts a tile into fractal order on its way to L1",
    "l1-gemm-slots": "where T.gemm puts slices of its L1 operands, from address 0 on: no "
    "allocation stands for it",
    "tmem-address": "holds the address of a TMEM allocation",
    "compiler-scratch": "scratch that lowering added",
    "static-rounding": "the static part is rounded up to the alignment of the dynamic array",
    "alignment-gap": "bytes between buffers that alignment leaves free",
    "version-alignment": "what starting each version in UB at a multiple of 32 B leaves free",
    "arena-end": "the end of an Ascend memory with several buffers is aligned to 32 B",
}

# TileLang records the alignment of TMA endpoints (tl.smem_alignment_map); the bytes name the
# swizzle. What another descriptor (wgmma, tcgen05) reads is aligned to 1,024 B.
ALIGNMENTS = {
    "least": "16 B: nothing asks for more",
    "tma": "128 B: an endpoint of a TMA copy, not swizzled",
    "tma-swizzle-32": "256 B: an endpoint of a TMA copy with 32 B swizzle",
    "tma-swizzle-64": "512 B: an endpoint of a TMA copy with 64 B swizzle",
    "tma-swizzle-128": "1,024 B: an endpoint of a TMA copy with 128 B swizzle",
    "descriptor": "1,024 B: a matrix instruction reads it through a descriptor",
    "declared": "as the generated source declares it",
    "ub": "32 B: a block of UB, which each version of a buffer starts at too",
    "l1": "512 B: a fractal in L1",
    "l0": "512 B: a fractal in L0A or L0B",
    "l0c": "1,024 B: a fractal of accumulators in L0C",
}


def page() -> str:
    """Return docs/reasons.md; ``python -m tilefit._kernel.reasons > docs/reasons.md`` writes it."""
    lines = [
        "# Why a buffer has its copies",
        "",
        "Made by `python -m tilefit._kernel.reasons`: the codes of `why` in what `plan` prints.",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| `{code}` | {sentence} |" for code, sentence in REASONS.items()),
        "",
        "The codes of `align_why`:",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| `{code}` | {sentence} |" for code, sentence in ALIGNMENTS.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
