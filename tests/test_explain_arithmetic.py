"""The arithmetic behind the number in a message: real cases with the right numbers.

``data/does_not_fit_cases.json`` has the cases: what the tool said, the tile's parameters, and the
arithmetic that gives the number. A case is a rule that we know, or we say that we know none.
"""

from __future__ import annotations

import ast
import json
import operator
from pathlib import Path
from typing import Any

import pytest

from tilefit._explain import Finding, Sum, explain

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "does_not_fit_cases.json").read_text(encoding="utf-8")
)
# case -> the message that the tool of the case prints with such numbers
MESSAGES = {
    "Triton": "out of resource: shared memory, Required: {required}, Hardware limit: {limit}.",
    "torch": "No valid triton configs. OutOfMemoryError: out of resource: triton_mm "
    "Required: {required} Hardware limit:{limit} Reducing block sizes",
    "Helion/Triton": "out of resource: tensor memory, Required: {required}, "
    "Hardware limit: {limit}. Reducing",
    "TileLang": "Failed to set the allowed dynamic shared memory size to {required}",
    "triton-ascend,": "error: ub overflow, requires {required} bits while {limit} bits available!",
    "tilelang-ascend": "Memory allocation failed for: tmp_ub required: {required}, "
    "new memory available: {limit}",
    "MLX": "Threadgroup memory size ({required}) exceeds the maximum threadgroup memory "
    "allowed ({limit})",
    "CUTLASS": "launch shared memory exceeds current GPU arch sm_86 allowed. "
    "Allocated: {required} bytes. Max: {limit} bytes.",
    "CUDA": "CUDA error: too many resources requested for launch",
}
# case -> the rule that gives its number; None: kernels of their own, with no rule
RULES = {
    1: "stages",
    2: "stages-minus-one",
    3: "stages-minus-one",
    4: "attention-rounded",
    5: "tensor-memory",
    6: "kv-and-scratch",
    7: "mxfp4",
    8: None,
    9: "attention",
    10: "stages",
    11: "registers",
    12: "live-tiles",
    13: "pow",
    14: "mlx-attention",
}
DEVICES = {9: "rtx-4090", 11: "rtx-4090"}


def finding(case: dict[str, Any]) -> Finding:
    text = MESSAGES[case["toolchain"].split()[0]].format(**case)
    answer = explain(text, case["params"], DEVICES.get(case["case"]))
    assert len(answer.findings) == 1
    return answer.findings[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["case"]))
def test_a_real_case(case: dict[str, Any]) -> None:
    """The rule gives the number of the message, written so that anyone can reckon it."""
    found = finding(case)
    assert found.required == case["required"]
    if found.unit == "bytes" and case["case"] not in (8,):
        assert found.limit == case["limit"]
    wanted = RULES[case["case"]]
    if wanted is None:
        assert found.sums == ()
        assert "no known rule gives this number from the parameters given" in found.notes
        return
    assert found.sums[0].rule == wanted
    for total in found.sums:
        assert total.value == case["required"] == reckoned(total)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["case"]))
def test_the_arithmetic_of_the_case_is_right_itself(case: dict[str, Any]) -> None:
    assert value(ast.parse(case["arithmetic"], mode="eval").body) == case["required"]


@pytest.mark.parametrize(
    "case", [c for c in CASES if RULES[c["case"]]], ids=lambda c: str(c["case"])
)
def test_changes_fit_and_are_the_smallest(case: dict[str, Any]) -> None:
    """By the formula each change is within the limit, and a step less is not."""
    found = finding(case)
    assert found.limit is not None
    assert found.changes
    for change in found.changes:
        assert change.value == found.limit - change.margin
        assert 0 <= change.value <= found.limit
        assert all(new < old for _, old, new in change.steps)
        assert all(
            name in case["params"] or name in ("rows", "columns") for name, _, _ in change.steps
        )


def test_the_changes_of_one_case_by_hand() -> None:
    """(4 - 1) x (64x128 + 128x128) x 4 B is over 232,448 B; these are not."""
    found = finding(CASES[2])
    steps = {change.steps[0][0]: (change.steps[0][2], change.value) for change in found.changes}
    assert steps == {
        "num_stages": (3, (3 - 1) * (64 * 128 + 128 * 128) * 4),
        "BLOCK_K": (64, (4 - 1) * (64 * 64 + 64 * 128) * 4),
        "BLOCK_N": (64, (4 - 1) * (64 * 128 + 128 * 64) * 4),
        # BLOCK_M 32 leaves 3 x (32x128 + 128x128) x 4 = 245,760 B, and 16 leaves 221,184 B
        "BLOCK_M": (16, (4 - 1) * (16 * 128 + 128 * 128) * 4),
    }


def test_where_no_single_change_fits_two_are_given() -> None:
    """256x256x128 fp16 in 98,304 B: neither one stage nor 16 along K is enough by itself."""
    required = 8 * (256 * 128 + 128 * 256) * 2
    assert 1 * (256 * 128 + 128 * 256) * 2 > 98304 < 8 * (256 * 16 + 16 * 256) * 2
    text = f"Failed to set the allowed dynamic shared memory size to {required}"
    params = {"block_M": 256, "block_N": 256, "block_K": 128, "num_stages": 8, "dtype": "float16"}
    found = explain(text, params, "v100").findings[0]
    assert found.limit_bytes == 96 * 1024
    assert all(len(change.steps) == 2 for change in found.changes)
    assert found.changes[0].steps == (("num_stages", 8, 6), ("block_K", 128, 16))
    assert found.changes[0].value == 6 * (256 * 16 + 16 * 256) * 2 == 98304


def test_the_naive_formula_is_not_believed() -> None:
    """Case 3: num_stages x (A + B) would be 393,216 B; the compiler said 294,912."""
    case = CASES[2]
    assert case["naive"] == 4 * (64 * 128 + 128 * 128) * 4 != case["required"]
    assert [total.rule for total in finding(case).sums] == ["stages-minus-one"]


def test_without_a_dtype_the_number_says_which() -> None:
    params = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4}
    required = 3 * (128 * 64 + 64 * 128) * 2
    text = f"out of resource: shared memory, Required: {required}, Hardware limit: 65536."
    sums = explain(text, params).findings[0].sums
    assert [(total.rule, total.assumed) for total in sums] == [
        ("stages-minus-one", "elements of 2 B: no dtype is given")
    ]


def test_two_readings_are_both_given() -> None:
    """At 2 stages, two copies of fp16 and one of fp32 take the same bytes."""
    params = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_stages": 2}
    required = 2 * (128 * 64 + 64 * 256) * 2
    assert required == 1 * (128 * 64 + 64 * 256) * 4
    text = f"out of resource: shared memory, Required: {required}, Hardware limit: 65536."
    sums = explain(text, params).findings[0].sums
    assert {total.rule for total in sums} == {"stages", "stages-minus-one"}


def test_the_configuration_in_the_log_is_used_and_what_is_set_wins() -> None:
    text = (
        "out of resource: triton_mm Required: 98304 Hardware limit:65536 Reducing block sizes or "
        "`num_stages` may help. for benchmark choice TritonTemplateCaller(/tmp/c.py, "
        "BLOCK_K=64, BLOCK_M=64, BLOCK_N=128, num_stages=5, num_warps=4)"
    )
    found = explain(text).findings[0]
    assert dict(found.params)["BLOCK_N"] == 128
    assert [total.written for total in found.sums] == ["(5 - 1) x (64x64 + 64x128) x 2 B"]
    assert (5 - 1) * (64 * 64 + 64 * 128) * 2 == 98304
    other = explain(text, {"BLOCK_N": 48}).findings[0]
    assert dict(other.params)["BLOCK_N"] == 48
    assert other.sums == ()


def test_another_candidates_configuration_is_not_taken() -> None:
    """The line after an autotuner's message belongs to another candidate."""
    text = (
        "out of resource: triton_mm Required: 98304 Hardware limit:65536 Reducing block sizes\n"
        "  triton_mm_4 0.11 ms 100.0% BLOCK_K=64, BLOCK_M=64, BLOCK_N=128, num_stages=5\n"
    )
    assert explain(text).findings[0].params == ()


def test_mlx_writes_the_parameters_into_the_kernels_name() -> None:
    """Case 14, from the name alone."""
    case = CASES[13]
    text = (
        "Unable to load kernel steel_attention_float32_bq32_bk16_bd256_wm4_wn1_maskfloat32: "
        + MESSAGES["MLX"].format(**case)
    )
    found = explain(text).findings[0]
    assert [total.rule for total in found.sums] == ["mlx-attention"]
    assert found.sums[0].value == case["required"]


def test_registers_round_up_to_eight_and_threads_to_warps() -> None:
    found = explain(
        "too many resources requested for launch", {"regs": 129, "threads": 500}
    ).findings[0]
    assert found.required == 136 * 512
    assert found.limit == 65536
    assert found.over == 136 * 512 - 65536
    assert found.required_bytes is None
    assert found.command.startswith("tilefit occupancy -d ")


def test_the_sub_k_message_gives_its_own_sum() -> None:
    text = "Cannot fit any sub-K tile in L0: M=64, N=2048, dtype=float16, L0 capacity=65536"
    found = explain(text).findings[0]
    assert found.memory == "l0b"
    assert found.sums[0].value == 2 * 2048 * 32 == reckoned(found.sums[0])


# ------------------------------------------------------------------ reckoning what is written
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def reckoned(total: Sum) -> float:
    """Return what the written arithmetic comes to, units left out."""
    words = total.written.replace("x", "*").replace("ma*(", "max(")
    for unit in (" B", " bits"):
        words = words.replace(unit, "")
    return value(ast.parse(words, mode="eval").body)


def value(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](value(node.left), value(node.right))  # type: ignore[no-any-return]
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        assert node.func.id == "max"
        return max(map(value, node.args))
    assert isinstance(node, ast.Constant)
    return node.value  # type: ignore[return-value]
