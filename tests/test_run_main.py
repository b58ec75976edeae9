"""`plan FILE` runs the file's own main: nothing is compiled, and no device is needed.

A file's main changes the process that it runs in, so it runs in a worker; one worker serves all
files, each in a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.opened import Session, ask
from tilefit._devices.facts import facts_of
from tilefit._devices.names import device
from tilefit._errors import InputError, KernelError, RefusedError, WorkerError
from tilefit._frontends.protocol import Ran
from tilefit._reading.child import Limits

pytestmark = pytest.mark.tilelang

MAINS = Path(__file__).parent / "kernels" / "mains"
HALF = 2  # bytes of float16


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(MAINS, limits=Limits(seconds=60)) as opened:
        yield opened


@pytest.fixture
def run(session: Session) -> Callable[..., Ran]:
    def run_file(name: str, on: str = "h100") -> Ran:
        session.path = MAINS / name
        return session.run(facts_of(device(on)))

    return run_file


@pytest.fixture
def nbytes(session: Session) -> Callable[..., int | None]:
    """Dynamic shared bytes of a kernel of the file that ran last."""

    def read(kernel: str, target: str = "sm_90a", **params: Any) -> int | None:
        (found,) = session.read(ask(kernel, params, target))
        return found.staged.dynamic_bytes

    return read


def names(ran: Ran) -> list[str]:
    return [kernel.name for kernel in ran.kernels]


def arguments(ran: Ran, name: str) -> dict[str, Any]:
    found = next(kernel for kernel in ran.kernels if kernel.name == name)
    return {p.name: p.default for p in found.parameters}


def test_each_set_of_arguments_of_a_lazy_and_an_eager_kernel_is_a_kernel(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("lazy_and_eager.py")
    # the checks on results all hold, so main comes to its end
    assert (ran.ended, ran.unbuilt) == (None, ())
    # compiled with 128 rows, with 64 (from a table on the device), and with 128 again
    assert names(ran) == ["copy", "copy#2", "double"]
    assert arguments(ran, "copy") == {"rows": 128, "columns": 64, "dtype": "float16"}
    assert arguments(ran, "copy#2")["rows"] == 80 - 16
    # M and N come from the tensor that the kernel is called with
    assert arguments(ran, "double") == {"block": 32, "M": 256, "N": 512}
    assert [kernel.style for kernel in ran.kernels] == ["factory", "factory", "eager"]
    assert nbytes("copy") == 128 * 64 * HALF
    assert nbytes("copy#2") == 64 * 64 * HALF
    assert nbytes("double") == 32 * 512 * 4


def test_a_script_that_lowers_a_kernel_itself_compiles_nothing_else(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("lowers_itself.py")
    assert (ran.ended, names(ran)) == (None, ["copy"])
    # the architecture that it names is an example
    assert nbytes("copy", "sm_90a") == 64 * 80 * 4
    assert nbytes("copy", "sm_90a", width=96) == 64 * 96 * 4


def test_a_captured_kernel_is_built_again_with_other_arguments(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    run("lazy_and_eager.py")
    assert nbytes("copy#2", rows=32) == 32 * 64 * HALF
    assert nbytes("copy", dtype="float32") == 128 * 64 * 4
    assert nbytes("double", N=128, block=64) == 64 * 128 * 4
    with pytest.raises(InputError, match="columns"):
        nbytes("copy", column=128)


def test_code_that_asks_for_the_device_is_told_of_the_one_that_is_planned_for(
    run: Callable[..., Ran], nbytes: Callable[..., int | None], session: Session
) -> None:
    ran = run("asks_device.py")
    assert (ran.ended, ran.unbuilt) == (None, ())
    # the last two are each compiled twice
    assert names(ran) == ["build", "cached", "kernel"]
    assert arguments(ran, "build") == {"threads": 128}
    # capability 9.0: a tile of 16 x 9 rows; an H100 has 132 SMs
    assert nbytes("build") == 16 * 9 * 64 * HALF
    assert session.read(ask("build", {}, "sm_90a"))[0].launch.grid == (132, 1, 1)
    assert nbytes("cached") == 48 * 64 * HALF
    assert nbytes("kernel") == 16 * 64 * HALF
    run("asks_device.py", on="a100")
    assert nbytes("build", "sm_80") == 16 * 8 * 64 * HALF
    assert session.read(ask("build", {}, "sm_80"))[0].launch.grid == (108, 1, 1)


def test_an_autotuner_takes_complete_defaults_else_its_first_configuration(
    run: Callable[..., Ran], nbytes: Callable[..., int | None], session: Session
) -> None:
    ran = run("tuned.py")
    assert (ran.ended, ran.unbuilt) == (None, ())
    assert names(ran) == ["with_defaults", "without_defaults", "candidate"] or names(ran) == [
        *("with_defaults", "without_defaults", "body")
    ]
    assert arguments(ran, "with_defaults") == {"columns": 64, "rows": 32, "threads": 128}
    # the first of what its function of the sizes gives is the third of all: 48 rows
    assert arguments(ran, "without_defaults") == {"columns": 64, "rows": 48, "threads": 128}
    assert nbytes("with_defaults") == 32 * 64 * HALF
    assert nbytes("without_defaults") == 48 * 64 * HALF
    assert nbytes("without_defaults", rows=16) == 16 * 64 * HALF
    # the first of all: 96 rows of 128
    assert nbytes(names(ran)[2]) == 96 * 128 * HALF
    notes = session.read(ask("without_defaults", {}, "sm_90a"))[0].notes
    assert any("first configuration" in note and "rows=48" in note for note in notes)
    notes = session.read(ask("with_defaults", {}, "sm_90a"))[0].notes
    assert not any("configuration" in note for note in notes)


def test_a_named_autotuned_kernel_takes_its_own_defaults_first(root: Path) -> None:
    with Session(MAINS / "tuned.py", limits=Limits(seconds=60)) as opened:
        opened.load(facts_of(device("h100")))
        (own,) = opened.read(ask("with_defaults", {"columns": 64}, "sm_90a"))
        (first,) = opened.read(ask("without_defaults", {"columns": 64}, "sm_90a"))
    assert own.staged.dynamic_bytes == 32 * 64 * HALF  # rows=32 is in the signature
    assert own.notes == ()
    assert first.staged.dynamic_bytes == 48 * 64 * HALF  # CONFIGS[2] has 48 rows
    assert "first configuration" in first.notes[0]


def test_a_relative_import_of_a_neighbour_needs_no_package(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("package/main.py")
    assert (ran.ended, names(ran)) == (None, ["tile_of"])
    assert nbytes("tile_of") == 80 * 64 * HALF


def test_packages_that_are_not_installed_are_stood_in_for(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("optional.py")
    assert ran.ended is None
    # einops and triton may be installed; what a try expects to fail, fails
    assert "flash_attn_that_nobody_installs" in ran.stubbed
    assert "fast_path_that_nobody_installs" not in ran.stubbed
    # (4 x 8) rows of (16 x 64) / 16 columns
    assert arguments(ran, "copy") == {"rows": 4 * 8, "columns": 16 * 64 // 16}
    assert nbytes("copy") == 32 * 64 * HALF


def test_a_package_that_is_missed_only_where_it_is_used_is_stood_in_for_too(
    run: Callable[..., Ran],
) -> None:
    ran = run("guarded.py")
    assert names(ran) == ["copy"]
    assert arguments(ran, "copy")["rows"] == 32
    # a size that only the missing package knows is no size, and the reason says so
    (unbuilt,) = ran.unbuilt
    assert "rows comes from a package that is not installed here" in unbuilt.reason
    assert "reference_that_nobody_installs" in unbuilt.reason
    assert ran.ended is None


def test_tests_run_each_for_itself_where_main_is_tilelang_testing(run: Callable[..., Ran]) -> None:
    ran = run("tests_itself.py")
    rows = [arguments(ran, name)["rows"] for name in names(ran)]
    assert rows == [16, 32, 48]
    assert ran.ended is not None
    assert "the weather is bad" in ran.ended


def test_what_main_compiled_before_it_failed_counts_and_every_failure_has_a_reason(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("bad_config.py")
    assert names(ran) == ["copy"]
    assert arguments(ran, "copy")["rows"] == 32
    (unbuilt,) = ran.unbuilt
    assert (unbuilt.kernel, unbuilt.refused) == ("copy", False)
    assert "bad_config.py:11 raised AssertionError: rows must be a multiple of 16" in unbuilt.reason
    assert ran.ended == "bad_config.py exited with 3"
    assert len(ran.failures) == 2
    with pytest.raises(KernelError, match="rows must be a multiple of 16"):
        nbytes("copy", rows=24)


def test_a_main_that_compiles_nothing_leaves_the_kernels_that_need_no_value(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("needs_options.py")
    assert ran.ended == (
        "needs_options.py exited with 2: the following arguments are required: --rows"
    )
    assert names(ran) == ["complete"]
    assert nbytes("complete") == 32 * 64 * HALF
    (unbuilt,) = ran.unbuilt
    assert unbuilt.kernel == "incomplete"
    assert "needs_options.py::incomplete --set rows=VALUE" in unbuilt.reason


def test_a_main_without_end_is_ended_in_time_and_what_it_compiled_counts(
    session: Session, run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    run("needs_options.py")  # the toolchain is imported by then
    before, session.limits = session.limits, Limits(seconds=8)
    try:
        ran = run("endless.py")
    finally:
        session.limits = before
    assert names(ran) == ["copy"]
    # three quarters of the time: the rest is for the answer
    assert ran.ended == "endless.py was ended after 6 s"
    assert nbytes("copy") == 32 * 64 * HALF


def test_one_session_executes_a_file_again_after_it_failed(root: Path) -> None:
    with Session(root / "tests" / "hostile" / "raises.py") as session:
        with pytest.raises(KernelError, match="the weather is bad"):
            session.load()
        ran = session.run(facts_of(device("h100")))
        assert (ran.kernels, ran.unbuilt) == ((), ())
        assert "the weather is bad" in (ran.ended or "")
        session.path = root / "tests" / "hostile" / "segfaults.py"
        with pytest.raises(WorkerError, match="SIGSEGV"):
            session.run(facts_of(device("h100")))
        session.path = MAINS / "package" / "main.py"
        assert names(session.run(facts_of(device("h100")))) == ["tile_of"]


def test_a_kernel_for_another_device_is_refused_and_says_for_which(
    run: Callable[..., Ran], nbytes: Callable[..., int | None]
) -> None:
    ran = run("other_devices.py")
    assert names(ran) == ["for_amd", "for_sm_120", "tensor_memory"]
    for kernel, reason in (
        ("for_amd", "its author compiles it for hip, not for cuda"),
        ("for_sm_120", "its author compiles it for sm_120a, not for sm_90a"),
        ("tensor_memory", "Blackwell|tensor memory"),
    ):
        with pytest.raises(RefusedError, match=reason):
            nbytes(kernel)
    (unbuilt,) = ran.unbuilt
    assert (unbuilt.kernel, unbuilt.refused) == ("says_so", True)
    assert "requires compute capability 10.0" in unbuilt.reason
    assert ran.ended is None  # the exception that ended main is that kernel's


def test_a_main_that_is_for_another_device_refuses_its_kernels(run: Callable[..., Ran]) -> None:
    ran = run("only_blackwell.py")
    assert ran.kernels == ()
    (unbuilt,) = ran.unbuilt
    assert (unbuilt.kernel, unbuilt.refused) == ("copy", True)
    assert "only compute capability 10.0 and later" in unbuilt.reason
    ran = run("only_blackwell.py", on="b200")
    assert (names(ran), ran.unbuilt, ran.ended) == (["copy"], (), None)


# ---- FILE::KERNEL for a device, as libraries write kernels ------------------------------


@pytest.fixture(scope="module")
def library() -> Iterator[Session]:
    with Session(MAINS / "asks_device.py", limits=Limits(seconds=60)) as opened:
        opened.load(facts_of(device("h100")))
        yield opened


def test_kernels_of_a_library_are_listed_with_the_parameters_of_every_step(
    library: Session,
) -> None:
    found = {k.name: {p.name: p.required for p in k.parameters} for k in library.listings}
    assert found == {
        "Copier.build": {"columns": False, "threads": False},
        "cached": {"rows": True, "columns": False},
        "wrapped": {"rows": False, "columns": False},
        "two_steps": {"rows": True, "columns": True, "threads": False, "copies": False},
        "of_config": {"rows": True, "columns": True, "threads": False, "dtype": False},
    }


@pytest.mark.parametrize(
    ("kernel", "params", "expected"),
    [
        ("Copier.build", {"columns": 32}, 16 * 9 * 32 * HALF),
        ("cached", {"rows": 48}, 48 * 64 * HALF),
        ("wrapped", {"columns": 128}, 32 * 128 * HALF),
        ("two_steps", {"rows": 16, "columns": 64, "copies": 3}, 3 * 16 * 64 * HALF),
        ("of_config", {"rows": 16, "columns": 64, "dtype": "float32"}, 16 * 64 * 4),
    ],
)
def test_set_feeds_every_step_of_a_library_kernel(
    library: Session, kernel: str, params: dict[str, Any], expected: int
) -> None:
    assert library.read(ask(kernel, params, "sm_90a"))[0].staged.dynamic_bytes == expected


def test_a_class_asks_again_for_each_target(library: Session) -> None:
    # 16 rows for each major version: 8.0 and 9.0
    sizes = [
        library.read(ask("Copier.build", {}, t))[0].staged.dynamic_bytes
        for t in ("sm_80", "sm_90a")
    ]
    assert sizes == [16 * 8 * 64 * HALF, 16 * 9 * 64 * HALF]


def test_a_missing_value_of_either_step_is_named(library: Session) -> None:
    with pytest.raises(InputError, match="two_steps needs a value for columns"):
        library.read(ask("two_steps", {"rows": 16}, "sm_90a"))


# ---- code generation that fails --------------------------------------------------------


def test_bytes_are_reported_where_only_code_generation_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.lowering import source

    def fail(*_: Any) -> None:
        raise ValueError("Check failed: (false) is false: no code for this")

    gemm = source(root / "examples" / "gemm.py")
    (whole,) = gemm.read(ask("matmul", {}, "sm_90a"))
    lowering = sys.modules["tilelang.engine.lower"]  # its name in the package is a function
    monkeypatch.setattr(lowering, "device_codegen_without_compile", fail)
    (found,) = gemm.read(ask("matmul", {}, "sm_90a"))
    # 3 stages of A and B tiles of 128 x 64, and 2 x 3 barriers of 8 bytes
    assert found.staged.dynamic_bytes == 3 * (128 * 64 + 64 * 128) * HALF
    assert found.staged.static_bytes == 2 * 3 * 8
    assert found.staged.align_bytes == 1024
    assert (found.launch, found.roles) == (whole.launch, whole.roles)
    assert [b.offset for b in found.buffers] == [b.offset for b in whole.buffers]
    assert found.built == "cannot-assemble"
    assert "no code for this" in found.assembly.reason


def test_a_refusal_before_memory_is_laid_out_stays_a_refusal(root: Path) -> None:
    from tests.lowering import source

    # an MMA tile has rows in multiples of 16
    with pytest.raises(RefusedError, match="16"):
        source(root / "examples" / "gemm.py").read(ask("matmul", {"block_M": 100}, "sm_90a"))


# ---- the pieces -------------------------------------------------------------------------


def test_an_architecture_answers_with_the_cores_of_its_first_product() -> None:
    facts = facts_of(device("sm_90"))
    assert (facts["cores"], facts["capability"], facts["target"]) == (132, [9, 0], "sm_90a")
    # the usual 48 KiB, and 227 KiB with the opt-in
    assert (facts["default_shared_bytes"], facts["shared_bytes"]) == (48 * 1024, 227 * 1024)
    assert facts_of(device("mi300x"))["capability"] is None


def test_what_is_taken_apart_gives_as_many_unknown_values_as_are_wanted() -> None:
    from tilefit._frontends.stand_ins.unknown import Unknown

    one, two, three = Unknown("package.call()")
    assert all(isinstance(value, Unknown) for value in (one, two, three, one + two, 3 * two))
    assert [type(value) for value in Unknown("a loop")] == [Unknown]
    assert int(one) == 1

    @Unknown("pytest.mark.skipif")(True, reason="none")
    def decorated() -> int:
        return 3

    assert decorated() == 3


@pytest.mark.parametrize(
    ("pattern", "sizes", "shape"),
    [
        ("b s d -> (b s) d", {}, (2 * 3, 4)),
        ("b (s t) d -> b t s d", {"t": 3}, (2, 3, 1, 4)),
        ("b s ... -> (b s) ...", {}, (6, 4)),
        ("b ... -> b (...)", {}, (2, 12)),
        ("b s d -> b s (d g)", {"g": 5}, (2, 3, 20)),
        ("b s d -> b 1 s d", {}, (2, 1, 3, 4)),
    ],
)
def test_rearranging_axes_gives_the_shape_that_the_pattern_says(
    pattern: str, sizes: dict[str, int], shape: tuple[int, ...]
) -> None:
    import torch

    from tilefit._frontends.stand_ins.einops import einsum, rearrange

    x = torch.arange(24).reshape(2, 3, 4)
    assert tuple(rearrange(x, pattern, **sizes).shape) == shape
    assert torch.equal(rearrange(x, "b s d -> d (b s)"), x.reshape(6, 4).T)
    assert torch.equal(rearrange(x, "b s d -> b (s g) d", g=2), x.repeat_interleave(2, dim=1))
    y = x.float()
    assert torch.equal(einsum(y, y, "b row d, b column d -> b row column"), y @ y.mT)


def test_tensors_need_no_device_and_small_tables_keep_their_values() -> None:
    import torch

    from tilefit._frontends.stand_ins.torch import KNOWN_ELEMENTS, TensorsWithoutDevice

    with TensorsWithoutDevice():
        table = torch.tensor([3, 1, 2], device="cuda").cuda().sort().values
        large = torch.randn(1 << 20, 1 << 10, device="cuda", dtype=torch.float16)  # 2 GiB
        long = torch.arange(KNOWN_ELEMENTS + 1, device="cuda:0")
        assert table.tolist() == [1, 2, 3]
        assert table.max().item() == 3
        assert (large.is_meta, long.is_meta, large.is_cuda) == (True, True, True)
        assert (large @ large[:16].T).shape == (1 << 20, 16)
        assert large[large > 0].dim() == 1
        assert long.sum().item() > 10**9  # every comparison with what is not known holds
        assert torch.zeros(3, device=large.device).device == torch.device("cuda", 0)
        assert torch.device(0) == torch.device("cuda:0")
        table[0] = 7
        assert table.tolist() == [7, 2, 3]
    assert torch.zeros(1).device.type == "cpu"
