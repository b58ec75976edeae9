"""What is wanted beyond fitting: blocks that one core holds, and bytes that stay free."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilefit
from tests.stand_in import use
from tests.test_plan_text import GEMM, RecordedSession
from tests.values import KIB, buffer, kernel, made
from tilefit._devices.names import Device, device
from tilefit._kernel.kernel import CannotAssemble, Kernel
from tilefit._placement.place import place
from tilefit._planning.wanted import with_blocks
from tilefit._verdict.judge import Check, Status, Verdict, judge
from tilefit.cli import main

H100 = device("h100")
# CUDA C++ Programming Guide, compute capability 9.0: an SM has 228 KiB of shared memory, of which
# the driver keeps 1 KiB a block, and 65,536 registers, which a warp takes in units of 256
SM_BYTES, DRIVER_BYTES, SM_REGISTERS = 228 * KIB, KIB, 65536


def found(value: Kernel, wanted: int | None, on: Device = H100) -> Verdict:
    return with_blocks(judge(value, place(value), on), value, on, wanted)


def of_blocks(verdict: Verdict) -> Check:
    (check,) = [c for c in verdict.limits if c.name == "blocks"]
    return check


def test_not_asked_is_no_check() -> None:
    one = kernel(dynamic_bytes=64 * KIB)
    assert found(one, None) == judge(one, place(one), H100)


@given(dynamic=st.integers(1, 227), wanted=st.integers(1, 40))
def test_a_bound_refutes_and_proves_nothing(dynamic: int, wanted: int) -> None:
    """Registers are not known: shared memory says how many at most, and 32 blocks are a limit."""
    most = min(SM_BYTES // (dynamic * KIB + DRIVER_BYTES), 32)
    verdict = found(kernel(dynamic_bytes=dynamic * KIB, threads=32), wanted)
    check = of_blocks(verdict)
    assert check.value is None
    assert check.limit == wanted
    assert check.status == ("does-not-fit" if most < wanted else "unknown")
    assert verdict.status == check.status
    assert verdict.reason == check.reason
    assert f"at most {most} by" in (check.reason or "")
    assert "--assemble" in (check.reason or "")


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_with_registers_the_count_is_known(wanted: int) -> None:
    """255 registers x 32 threads = 8,160, rounded up to 8,192; 4 warps; 65,536 / 32,768 = 2."""
    per_block = 4 * 8192
    assert SM_REGISTERS // per_block == 2
    one = replace(kernel(dynamic_bytes=KIB, threads=128), assembly=made(registers_per_thread=255))
    check = of_blocks(found(one, wanted))
    assert (check.value, check.status) == (2, "fits" if wanted <= 2 else "does-not-fit")
    assert (check.reason is None) == (wanted <= 2)


def test_what_could_not_be_assembled_says_so_in_place_of_the_flag() -> None:
    one = replace(kernel(dynamic_bytes=KIB), assembly=CannotAssemble("no such instruction"))
    reason = of_blocks(found(one, 1)).reason or ""
    assert "it could not be assembled" in reason
    assert "--assemble" not in reason


def test_a_block_that_does_not_fit_is_held_nowhere() -> None:
    one = kernel(dynamic_bytes=228 * KIB)
    verdict = found(one, 1)
    assert of_blocks(verdict).value == 0
    assert of_blocks(verdict).status is Status.DOES_NOT_FIT
    assert verdict.reason == judge(one, place(one), H100).reason  # the bytes come first


@pytest.mark.parametrize(("wanted", "status"), [(1, "fits"), (2, "does-not-fit")])
def test_a_core_of_an_ascend_chip_takes_one_block(wanted: int, status: str) -> None:
    check = of_blocks(found(kernel(), wanted, device("ascend-910b1")))
    assert (check.value, check.status) == (1, status)


def test_what_no_rule_counts_is_unknown() -> None:
    one = kernel(buffer("A_s", None), dynamic_bytes=None)
    assert of_blocks(found(one, 1)).status is Status.UNKNOWN


# ---- from Python and from the command line ----------------------------------------------------


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    use(monkeypatch, RecordedSession)
    monkeypatch.chdir(root)


# 3 stages of (128 x 64 + 64 x 128) float16, and the static part rounded up to 1,024
GEMM_BYTES = 3 * (128 * 64 + 64 * 128) * 2 + 1024


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("more", "status"), [(0, "fits"), (1, "does-not-fit")])
def test_headroom_flips_at_the_last_free_byte(
    more: int, status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    headroom = 227 * KIB - GEMM_BYTES + more
    options = tilefit.Options(headroom_bytes=headroom)
    (one,) = tilefit.plan(GEMM, "h100", options=options).results
    assert one.status == status
    code = main(["plan", GEMM, "-d", "h100", "--headroom", str(headroom), "--json", "--no-suggest"])
    (printed,) = json.loads(capsys.readouterr().out)["results"]
    assert code == more
    assert printed["verdict"] == status
    assert printed["memories"][0]["limit_bytes"] == 227 * KIB - headroom


# two stages on sm_80, which has no roles: 167,936 B of an SM, 1,024 B of them for each block
TWO_STAGES = 2 * (128 * 64 + 64 * 128) * 2


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("wanted", "status", "code"), [(2, "unknown", 2), (3, "does-not-fit", 1)])
def test_wanted_blocks(
    wanted: int, status: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 164 * KIB // (TWO_STAGES + DRIVER_BYTES) == 2
    options = tilefit.Options(blocks=wanted)
    (one,) = tilefit.plan(GEMM, "a100", options=options, num_stages=2).results
    assert one.status == status
    words = ("--set", "num_stages=2", "--blocks", str(wanted))
    assert main(["plan", GEMM, "-d", "a100", *words]) == code
    text = " ".join(capsys.readouterr().out.split())
    assert f"{wanted} blocks wanted: one SM holds at most 2 by shared" in text


@pytest.mark.usefixtures("recorded")
def test_what_the_roles_take_refutes_without_an_assembler(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A producer of 128 threads with 24 registers, a consumer of 128 with 240, of 65,536."""
    assert 65536 // (128 * 24 + 128 * 240) == 1
    assert SM_BYTES // (GEMM_BYTES + DRIVER_BYTES) == 2
    assert main(["plan", GEMM, "-d", "h100", "--blocks", "2"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "2 blocks wanted: one SM holds at most 1 by registers" in text


@pytest.mark.usefixtures("recorded")
def test_the_command_to_paste_asks_the_same() -> None:
    options = tilefit.Options(headroom_bytes=64 * KIB, blocks=3, suggest=False)
    (one,) = tilefit.plan(GEMM, "h100", options=options).results
    assert "--headroom 65536 --blocks 3" in (one.try_next or "")


@pytest.mark.usefixtures("recorded")
def test_headroom_that_leaves_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", GEMM, "-d", "h100", "--headroom", "227KiB"]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "headroom of 232,448 B leaves nothing of the 232,448 B of shared" in line


@pytest.mark.parametrize(
    "wrong", [{"blocks": 0}, {"blocks": True}, {"headroom_bytes": -1}, {"headroom_bytes": "1KiB"}]
)
def test_wrong_wishes_are_refused(wrong: dict[str, object]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(tilefit.InputError, match=f"{name}={value!r} is not a whole number"):
        tilefit.Options(**wrong)
