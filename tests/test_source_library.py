"""Kernels as libraries write them, by their source alone; and with the base install alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.opened import ask
from tests.test_source_frontend import factory, load, notes, read
from tilefit._kernel.memory import Memory

CLASSES = """
import abc


class Base(abc.ABC):
    def __init__(self, columns=64):
        self.columns = columns

    @property
    @abc.abstractmethod
    def rows(self):
        pass

    def build(self, copies=1):
        rows, columns = self.rows, self.columns

        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((copies, rows, columns), "float16")
                T.copy(A[0, 0], tile)

        return main


class Fixed(Base):
    rows = 16


class Scaled(Base):
    def __init__(self, factor, **rest):
        super().__init__(**rest)
        self.factor = factor

    @property
    def rows(self):
        return 16 * self.factor


class Doubled(Scaled):
    def __init__(self, **rest):
        super().__init__(factor=2, columns=32)

    def build(self, copies=1):
        return super().build(copies=2 * copies)
"""


def test_a_method_is_inherited_and_an_abstract_class_makes_nothing(tmp_path: Path) -> None:
    source = load(tmp_path, CLASSES)
    assert [(k.name, [p.name for p in k.parameters]) for k in source.kernels()] == [
        ("Fixed.build", ["columns", "copies"]),
        ("Scaled.build", ["factor", "copies"]),
    ]
    (fixed,) = source.read(ask("Fixed.build", {"copies": 3, "columns": 32}, "sm_90a"))
    assert fixed.staged.dynamic_bytes == 3 * 16 * 32 * 2


def test_super_reaches_the_class_above(tmp_path: Path) -> None:
    (scaled,) = load(tmp_path, CLASSES).read(ask("Scaled.build", {"factor": 3}, "sm_90a"))
    assert scaled.staged.dynamic_bytes == 16 * 3 * 64 * 2
    # Doubled holds no kernel of its own: its attribute is asked for here
    text = CLASSES + factory("x = Doubled().build\nx = Doubled().rows")
    assert read(tmp_path, text).staged.dynamic_bytes == 16 * 2 * 64 * 2


def test_what_a_partial_passes_by_name_may_be_set_again(tmp_path: Path) -> None:
    text = (
        "import functools\n"
        + factory("x = rows", args="rows, columns=64", shape="(x, columns)")
        + "\nnarrow = functools.partial(kernel, columns=32)\n"
        + "short = functools.partial(kernel, 8)\n"
    )
    source = load(tmp_path, text)
    listed = {
        k.name: [(p.name, p.required, p.default) for p in k.parameters] for k in source.kernels()
    }
    assert listed["narrow"] == [("rows", True, None), ("columns", False, 32)]
    assert listed["short"] == [("columns", False, 64)]
    (narrow,) = source.read(ask("narrow", {"rows": 8}, "sm_90a"))
    assert narrow.staged.dynamic_bytes == 8 * 32 * 2
    (wide,) = source.read(ask("narrow", {"rows": 8, "columns": 128}, "sm_90a"))
    assert wide.staged.dynamic_bytes == 8 * 128 * 2
    (short,) = source.read(ask("short", {}, "sm_90a"))
    assert short.staged.dynamic_bytes == 8 * 64 * 2


def test_sizes_that_come_as_one_tuple(tmp_path: Path) -> None:
    text = factory("rows, columns = shape\nx = rows", args="*shape")
    source = load(tmp_path, text)
    assert [(p.name, p.required) for p in source.kernels()[0].parameters] == [("shape", False)]
    (given,) = source.read(ask("kernel", {"shape": (24, 64)}, "sm_90a"))
    assert given.staged.dynamic_bytes == 24 * 64 * 2
    (unknown,) = source.read(ask("kernel", {}, "sm_90a"))
    assert unknown.staged.dynamic_bytes is None
    assert "--set shape=VALUE" in notes(unknown)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (
            'T.PersistentTileScheduler(4, 4, name="s")',
            ["s_m_idx", "s_n_idx", "s_linear_idx", "s_current_iter"],
        ),
        ("T.PersistentTileScheduler(4, 4)", ["", "", "", ""]),
        ("T.PersistentTileScheduler(4, 4, stateful=False)", []),
    ],
)
def test_a_tile_scheduler_keeps_its_state_in_variables(
    tmp_path: Path, call: str, names: list[str]
) -> None:
    text = f"""
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((8, 8), "float16")
            scheduler = {call}
    """
    kernel = read(tmp_path, text)
    state = [b for b in kernel.buffers if b.name != "tile"]
    assert [b.name for b in state] == names
    assert {(b.memory, b.dtype, b.bytes) for b in state} <= {(Memory.REGISTERS, "int32", 4)}
    assert kernel.staged.dynamic_bytes == 8 * 8 * 2


def test_a_scheduler_or_emitter_that_we_do_not_know_may_allocate(tmp_path: Path) -> None:
    for call in ("T.OtherTileScheduler(4)", "T.TensorCoreIntrinEmitter(a_dtype='float16')"):
        text = f"""
        @T.prim_func
        def kernel(A: T.Tensor((512, 512), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((8, 8), "float16")
                made = {call}
        """
        kernel = read(tmp_path, text)
        assert kernel.staged.dynamic_bytes is None
        assert "allocates is not known" in notes(kernel)


def test_im2col_fills_a_tile_from_global_memory_as_a_copy_does(root: Path) -> None:
    from tilefit._frontends.source.frontend import SourceFrontend

    path = root / "tests" / "kernels" / "corpus" / "convolution.py"
    (kernel,) = SourceFrontend().load(path).read(ask("by_im2col", {}, "sm_90a"))
    stages = kernel.loops[0].num_stages
    assert {b.name: b.copies for b in kernel.buffers if b.name in ("x", "w")} == {
        "x": stages,
        "w": stages,
    }


def test_a_factory_may_hold_a_generator(tmp_path: Path) -> None:
    before = "def sizes():\n    yield 8\nx = 8"
    assert read(tmp_path, factory(before)).staged.dynamic_bytes == 8 * 64 * 2
    (unknown,) = load(tmp_path, factory(f"{before}\nx = next(sizes())")).read(
        ask("kernel", {}, "sm_90a")
    )
    assert unknown.staged.dynamic_bytes is None


# ---- the base install ------------------------------------------------------------------------

NOTHING_ELSE = """
import importlib.abc
import sys


class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "tilefit"}:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return None


sys.meta_path.insert(0, Refuse())
from pathlib import Path

from tilefit._errors import TilefitError
from tilefit._frontends.source.frontend import SourceFrontend

from tilefit._kernel.request import Request
read = 0
for name in sys.argv[1:]:
    source = SourceFrontend().load(Path(name))
    for kernel in source.kernels():
        for target in ("sm_90a", "gfx942", "ascend", "ascend-910b"):
            try:
                read += len(source.read(Request(kernel=kernel.name, target=target)))
            except TilefitError as error:
                print(error, file=sys.stderr)
print(read)
"""


def test_every_kernel_is_read_with_the_base_install_alone(root: Path) -> None:
    files = sorted((root / "tests" / "kernels").rglob("*.py")) + sorted(
        (root / "examples").rglob("*.py")
    )
    done = subprocess.run(
        [sys.executable, "-c", NOTHING_ELSE, *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 300
