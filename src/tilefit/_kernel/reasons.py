"""Why a buffer has as many copies as it has: a short, documented list of codes.

A code names the cause that the compiler's own passes show: what a pass multiplied, and what in
the source made it do so. `docs/reasons.md` is made from this table.
"""

from __future__ import annotations

from enum import StrEnum


class Why(StrEnum):
    """What copies, or bytes that are no buffer, come from; `REASONS` says it in words."""

    WS_PIPELINE = "ws-pipeline"
    PIPELINE = "pipeline"
    TWO_LOOPS = "two-loops"
    STORE_DRIVEN = "store-driven"
    GUARDED_LOAD = "guarded-load"
    EXPLICIT_ORDER = "explicit-order"
    NOT_PIPELINED = "not-pipelined"
    READ_ONLY = "read-only"
    SAME_STAGE = "same-stage"
    ONE_STAGE = "one-stage"
    STAGES_DROPPED = "stages-dropped"
    SCHEDULED = "scheduled"
    FEWER_SUFFICE = "fewer-suffice"
    FEWER_TAKEN = "fewer-taken"
    NO_ROOM = "no-room"
    FEWEST_VERSIONS = "fewest-versions"
    OUTLIVES_ITERATION = "outlives-iteration"
    FIXED_VERSIONS = "fixed-versions"
    MANUAL_VERSIONS = "manual-versions"
    SCHEDULE_OFF = "schedule-off"
    UNUSED = "unused"
    EMPTY_LOOP = "empty-loop"
    LAYOUT = "layout"
    BARRIER = "barrier"
    REDUCE_WORKSPACE = "reduce-workspace"
    NZ_SCRATCH = "nz-scratch"
    L1_GEMM_SLOTS = "l1-gemm-slots"
    TMEM_ADDRESS = "tmem-address"
    COMPILER_SCRATCH = "compiler-scratch"
    STATIC_ROUNDING = "static-rounding"
    ALIGNMENT_GAP = "alignment-gap"
    VERSION_ALIGNMENT = "version-alignment"
    ARENA_END = "arena-end"
    DEVICE_MEMORY = "device-memory"


class Align(StrEnum):
    """What asks for the alignment of a buffer; `ALIGNMENTS` says it in words."""

    LEAST = "least"
    TMA = "tma"
    TMA_SWIZZLE_32 = "tma-swizzle-32"
    TMA_SWIZZLE_64 = "tma-swizzle-64"
    TMA_SWIZZLE_128 = "tma-swizzle-128"
    DESCRIPTOR = "descriptor"
    DECLARED = "declared"
    UB = "ub"
    L1 = "l1"
    L0 = "l0"
    L0C = "l0c"


REASONS = {
    # more than one copy
    Why.WS_PIPELINE: "the warp-specialised pipeline keeps a copy a stage: a producer fills it "
    "ahead",
    Why.PIPELINE: "the software pipeline keeps a copy a stage: a T.copy fills it ahead",
    Why.TWO_LOOPS: "two passes multiply it, one for each of two pipelined loops: S x S copies",
    Why.STORE_DRIVEN: "a plain store that reads global memory, no T.copy, fills it a stage ahead",
    Why.GUARDED_LOAD: "a guarded element-wise load from global memory fills it a stage ahead",
    Why.EXPLICIT_ORDER: "the order= and stage= lists of the loop set its copies",
    # one copy
    Why.NOT_PIPELINED: "no pipelined loop writes it",
    Why.READ_ONLY: "a pipelined loop reads it but does not write it",
    Why.SAME_STAGE: "a pipelined loop writes and reads it in the same stage",
    Why.ONE_STAGE: "its pipelined loop has num_stages=1",
    Why.STAGES_DROPPED: "num_stages was asked for and removed by the compiler without a message",
    # Ascend: versions, which its scheduler chooses between 1 and num_stages
    Why.SCHEDULED: "the scheduler took every version that num_stages allows",
    Why.FEWER_SUFFICE: "the scheduler took fewer versions than num_stages: more would not start an "
    "iteration sooner",
    Why.FEWER_TAKEN: "the scheduler took fewer versions than num_stages; whether for want of room "
    "could not be asked",
    Why.NO_ROOM: "the scheduler took fewer versions than it wanted: more do not fit the memory, as "
    "it counts it",
    Why.FEWEST_VERSIONS: "an estimate counts one version, as those that num_stages asks for do not "
    "fit: the scheduler takes as many as do",
    Why.OUTLIVES_ITERATION: "what it holds outlives an iteration of the pipelined loop: it cannot "
    "take turns",
    Why.FIXED_VERSIONS: "T.annotate_buffer_versions fixes its versions, fit or not",
    Why.MANUAL_VERSIONS: "the author laid out its versions by hand: they are in its shape",
    Why.SCHEDULE_OFF: "the scheduler is turned off: one version, and nothing checks that it fits",
    # none, or not a whole number
    Why.UNUSED: "nothing uses it: lowering removed it",
    Why.EMPTY_LOOP: "its loop has no iterations at these sizes: lowering removed it",
    Why.LAYOUT: "lowering changed its layout: the bytes are no multiple of those declared",
    # what the author did not write
    Why.BARRIER: "mbarriers that order the pipeline",
    Why.REDUCE_WORKSPACE: "scratch of a reduction across threads",
    Why.NZ_SCRATCH: "scratch in UB that puts a tile into fractal order on its way to L1",
    Why.L1_GEMM_SLOTS: "where T.gemm puts slices of its L1 operands, from address 0 on: no "
    "allocation stands for it",
    Why.DEVICE_MEMORY: "it is in device memory, by a pointer parameter",
    Why.TMEM_ADDRESS: "holds the address of a TMEM allocation",
    Why.COMPILER_SCRATCH: "scratch that lowering added",
    Why.STATIC_ROUNDING: "the static part is rounded up to the alignment of the dynamic array",
    Why.ALIGNMENT_GAP: "bytes between buffers that alignment leaves free",
    Why.VERSION_ALIGNMENT: "what starting each version in UB at a multiple of 32 B leaves free",
    Why.ARENA_END: "the end of an Ascend memory with several buffers is aligned to 32 B",
}

# TileLang records the alignment of TMA endpoints (tl.smem_alignment_map); the bytes name the
# swizzle. What another descriptor (wgmma, tcgen05) reads is aligned to 1,024 B.
ALIGNMENTS = {
    Align.LEAST: "16 B: nothing asks for more",
    Align.TMA: "128 B: an endpoint of a TMA copy, not swizzled",
    Align.TMA_SWIZZLE_32: "256 B: an endpoint of a TMA copy with 32 B swizzle",
    Align.TMA_SWIZZLE_64: "512 B: an endpoint of a TMA copy with 64 B swizzle",
    Align.TMA_SWIZZLE_128: "1,024 B: an endpoint of a TMA copy with 128 B swizzle",
    Align.DESCRIPTOR: "1,024 B: a matrix instruction reads it through a descriptor",
    Align.DECLARED: "as the generated source declares it",
    Align.UB: "32 B: a block of UB, which each version of a buffer starts at too",
    Align.L1: "512 B: a fractal in L1",
    Align.L0: "512 B: a fractal in L0A or L0B",
    Align.L0C: "1,024 B: a fractal of accumulators in L0C",
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
