"""The table of messages: complete, each form found by its own template, and the page made of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilefit._explain import explain
from tilefit._explain.forms import Form, advice, advice_keys, forms, space, toolchain_title
from tilefit._explain.page import page
from tilefit._explain.pattern import compiled, plain
from tilefit._kernel.memory import Memory

ROOT = Path(__file__).parent.parent
BY_NAME = {form.name: form for form in forms()}
TEXTS = [(form, text) for form in forms() for text in form.texts]

# every row of the list that the project started from, by what its tools print
EXAMPLES = {
    "triton": "out of resource: tensor memory, Required: 544, Hardware limit: 512. Reducing block",
    "inductor": "out of resource: triton_mm Required: 7 Hardware limit:6 Reducing block sizes",
    "tilelang-cuda": "Failed to set the allowed dynamic shared memory size to 7",
    "tilelang-hip": "Failed to set the allowed dynamic shared memory size for k to 7",
    "tilelang-ascend": 'scope "shared.l0a" capacity 6 is insufficient for minimum buffer usage 7',
    "tilelang-ascend-negative": 'scope "shared" capacity is negative (-7)',
    "tilelang-ascend-sub-k": "Cannot fit any sub-K tile in L0: M=1, N=2, dtype=float16, "
    "L0 capacity=6",
    "tilelang-tmem": "This block allocates 7 TMEM columns across 2 tcgen05.alloc calls, but a CTA "
    "only has 6",
    "ptxas-shared": "Entry function 'f' uses too much shared data (0x7 bytes, 0x6 max)",
    "ptxas-c7600": "(C7600) Register allocation failed with register count of '6'",
    "ptxas-c7602": "(C7602) Insufficient registers (6) to compile, register target of 7 or higher",
    "cuda-resources": "too many resources requested for launch",
    "cuda-invalid": "CUDA_ERROR_INVALID_VALUE",
    "triton-invalid": "Triton Error [CUDA]: invalid argument",
    "cute-dsl": "launch shared memory exceeds current GPU arch sm_90 allowed\nAllocated: 7 bytes. "
    "Max: 6 bytes.",
    "cutlass-shared": "SMEM usage exceeded capacity",
    "cutlass-internal": "kErrorInternal",
    "tensorrt-llm": "requires 7 bytes shared memory but device supports 6",
    "warp": "Failed to configure kernel dynamic shared memory for this device, tried to configure "
    "k kernel for 7 bytes, but maximum available is 6",
    "iree": "Requested shared memory size of 7 larger than allowed size of 6",
    "bisheng": "ub overflow, requires 7 bits while 6 bits available",
    "pypto": "Right buffer usage (7 bytes) exceeds platform limit (6 bytes)",
    "cann-code": "error code is 507015",
    "cann-ub": "VEC instruction error: the ub address out of bounds",
    "adapter-planning": "Memory allocation failed for: b required: 7, new memory available: 6",
    "clang": "local memory (7) exceeds limit (6) in 'f'",
    "metal": "Threadgroup memory size (7) exceeds the maximum threadgroup memory allowed (6)",
    "mlx-threads": "Thread group size (7) is greater than the maximum allowed threads per "
    "threadgroup (6)",
    "xla-gpu": "Shared memory size limit exceeded: requested 7, available: 6",
    "xla-tpu": "Ran out of memory in memory space vmem ... Used 7.00M of 6.00M vmem. Exceeded "
    "vmem capacity by 1.00M",
    "xla-tpu-scoped": "Scoped allocation with size 7.00M and limit 6.00M exceeded scoped vmem "
    "limit by 1.00M",
    "tenstorrent": "Statically allocated circular buffers on core range [(x=0,y=0) - (x=7,y=7)] "
    "grow to 7 B which is beyond max L1 size of 6 B",
}
RARER = {"triton-no-numbers", "xla-tpu-no-numbers", "tilelang-ascend-tile-k", "tenstorrent-clash"}
RARER |= {"tilelang-ascend-launch"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_kind_of_message_is_found_as_that_kind(name: str) -> None:
    findings = explain(EXAMPLES[name]).findings
    assert [finding.form for finding in findings] == [name]


def test_there_is_an_example_of_every_form() -> None:
    assert set(EXAMPLES) | RARER == set(BY_NAME)


@pytest.mark.parametrize(("form", "text"), TEXTS, ids=lambda value: str(value)[:40])
def test_a_form_finds_its_own_template(form: Form, text: str) -> None:
    """Filled with a number larger than its limit, every template is found whole."""
    values = {"required": "0x7000", "limit": "0x6000", "over": "4096", "system": "0x0"}
    filled = re.sub(r"\{([a-z]+):hex\}", lambda m: values[m[1]], text)
    filled = re.sub(r"\{(required|limit|over)(?::size)?\}", number, filled)
    filled = re.sub(r"\{[a-z]+=([^|}]+)[^}]*\}|<([^|>]+)[^>]*>", lambda m: m[1] or m[2], filled)
    filled = re.sub(r"\{(?:scope):label\}", "shared", filled)
    filled = re.sub(r"\{[a-z]+:(?:word|label)\}|\{gap\}", "word", filled)
    filled = re.sub(r"\{[a-z]+\}", "64", filled).replace("[[", "").replace("]]", "")
    (finding,) = explain(filled).findings
    assert finding.form == form.name
    if "{required" in text and form.name != "xla-gpu":
        assert finding.required == 0x7000 == 28672
    if "{limit" in text:
        assert finding.limit == 0x6000 == 24576


def number(hole: re.Match[str]) -> str:
    return {"required": "28672", "limit": "24576", "over": "4096"}[hole[1]]


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.name)
def test_a_form_is_complete(form: Form) -> None:
    assert toolchain_title(form.toolchain)
    assert form.advice or form.causes
    assert form.source
    assert form.fatal in ("yes", "perhaps", "warning")
    assert set(form.follows) <= set(BY_NAME)
    has_numbers = any("{required" in text or "{limit" in text for text in form.texts)
    if not has_numbers and form.unit != "bytes":
        assert form.says
    for text in form.texts:
        assert text.count("[[") == text.count("]]")
        assert "{required:size}" not in text or form.numbers  # rounded, and said so


def test_all_advice_and_all_spaces_are_used() -> None:
    in_code = {"l1-tile", "l0", "l0c", "threads"}  # chosen by the memory or by what is counted
    assert {key for form in forms() for key in form.advice} | in_code == set(advice_keys())
    assert all(advice(key).endswith((".", ")")) for key in advice_keys())
    spaces = {
        word.lower()
        for name in ("bisheng", "pypto")
        for holes in re.findall(r"\{space=([^}]+)\}", BY_NAME[name].texts[0])
        for word in holes.split("|")
    }
    assert {space(word) for word in spaces} == {
        Memory.UB,
        Memory.L1,
        Memory.L0A,
        Memory.L0B,
        Memory.L0C,
        Memory.BIAS,
    }


def test_a_template_matches_across_lost_and_added_marks() -> None:
    """Letters and digits decide; everything between them may differ."""
    template = compiled("limit ({limit} bytes) [[of {name:word} ]]exceeded")
    assert template.pattern.fullmatch("limit42bytesexceeded")
    assert template.pattern.fullmatch("limit42bytesofaexceeded")
    assert not template.pattern.fullmatch("limitbytesexceeded")
    assert plain("{a=x|y} took {required} [[of {limit} ]]B[[ytes]]") == "x/y took N of M B"


def test_the_page_is_made_from_the_table() -> None:
    assert (ROOT / "docs" / "messages.md").read_text(encoding="utf-8") == page()


def test_the_page_has_every_form() -> None:
    shown = page()
    assert all(f"### {form.name}\n" in shown for form in forms())
    assert all(f"`{plain(text)}`" in shown for _, text in TEXTS)
