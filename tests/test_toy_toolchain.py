"""A toolchain from outside the package: registered by an entry point and planned with.

Its language is a line for each tile; its compiler puts one tile behind the other, each at a
multiple of 256 B. It is installed into a folder of its own, as pip would do it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilefit._devices.names import device
from tilefit._errors import UnknownNameError
from tilefit._frontends import registry

TOY = """
import json
from pathlib import Path

from tilefit._errors import KernelError, RefusedError, UnknownNameError
from tilefit._kernel.kernel import Buffer, Kernel, Launch, Listing, Loop, MemoryUse, Parameter
from tilefit._kernel.memory import Memory, Owner
from tilefit._kernel.reasons import Why
from tilefit._kernel.toolchain import Toolchain
from tilefit._kernel.units import round_up

TOY = Toolchain(
    name="toy", title="Toy", targets="tilelang", vendors=("nvidia",), suffixes=(".toy",),
    marks=("toylang 1",), stage_parameters=("depth",),
)


class Frontend:
    toolchain = TOY
    name = TOY.name

    def version(self):
        return "1.0"

    def load(self, path, device_facts=None):
        return Source(path)

    def prepare_run(self):
        pass

    def run(self, path, device_facts, seconds):
        return Source(path)


class Source:
    unbuilt, ended, stubbed, notes, compiled_nothing = (), None, (), (), False

    def __init__(self, path):
        self.path = path
        first, *self.tiles = path.read_text().splitlines()
        if first != "toylang 1":
            raise KernelError(f"{path.name}:1 is not toylang 1")

    def kernels(self):
        depth = Parameter(name="depth", default=2, required=False)
        return (Listing(name="main", style="toy", line=1, parameters=(depth,)),)

    def read(self, request):
        for name in request.params:
            if name != "depth":
                raise UnknownNameError("parameter of main", name, ["depth"])
        depth = {"depth": 2, **request.params}["depth"]
        if depth > 8:
            raise RefusedError("toylang has at most 8 deep tiles")
        end, buffers = 0, []
        for line, text in enumerate(self.tiles, 2):
            name, n_bytes = text.split()
            start = round_up(end, 256)
            end = start + depth * int(n_bytes)
            buffers.append(Buffer(
                name=name, scope="tile", memory=Memory.SHARED, owner=Owner.BLOCK,
                shape=(int(n_bytes),), dtype="int8", copies=depth, why=Why.PIPELINE,
                bytes=depth * int(n_bytes), offset=start, line=line,
            ))
        names = tuple(one.name for one in buffers)
        use = MemoryUse(memory=Memory.SHARED, owner=Owner.BLOCK, dynamic_bytes=end)
        return (Kernel(
            name="main", function="main", toolchain="toy", toolchain_version="1.0",
            target=request.target, params=(("depth", depth),),
            launch=Launch(threads_declared=64, threads=64, grid=None),
            buffers=tuple(buffers), memories=(use,), complete=True,
            loops=(Loop(variable="t", extent=8, num_stages=depth, buffers=names, copied=names),),
        ),)
"""
PROGRAM = "toylang 1\na 30000\nb 20000\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder in which the toy's package lies with its metadata."""
    home = tmp_path / "packages"
    info = home / "toylang-1.0.dist-info"
    info.mkdir(parents=True)
    (home / "toylang_tilefit.py").write_text(TOY, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toylang\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{registry.GROUP}]\ntoy = toylang_tilefit:Frontend\nbroken = no_such_module:Frontend\n"
    )
    return home


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "tiles.toy"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def tilefit(home: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(Path(words[1]).parent / "cache")}
    if home is not None:
        environment["PYTHONPATH"] = str(home)
    return subprocess.run(
        [sys.executable, "-m", "tilefit", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.stderr == ""
    (result,) = json.loads(done.stdout)["results"]
    found: dict[str, object] = result
    return found


def test_a_file_is_planned_by_the_toolchain_that_it_names(installed: Path, program: Path) -> None:
    done = tilefit(installed, "plan", f"{program}::main", "-d", "h100", "--json")
    result = answer(done)
    assert done.returncode == 0
    assert (result["toolchain"], result["verdict"]) == ({"name": "toy", "version": "1.0"}, "fits")
    # two copies of a, up to the next multiple of 256, two of b
    total = -(-2 * 30000 // 256) * 256 + 2 * 20000
    (memory,) = result["memories"]  # type: ignore[misc]
    assert (memory["total_bytes"], memory["evidence"]) == (total, "compiled")
    limit = device("h100").pool("shared").per_block_bytes
    # a copy more of both costs 50,000 B: 4 of them, with a gap below 256 B, and not 5
    assert 4 * 50000 + 256 <= limit < 5 * 50000
    assert result["max_stages"] == 4
    # no launch is given in this language
    verdicts = {one["name"]: one["verdict"] for one in result["limits"]}  # type: ignore[attr-defined]
    assert verdicts == {"threads": "fits", "grid": "not-asked"}


def test_it_may_be_named_and_main_runs_and_text_is_shown(installed: Path, program: Path) -> None:
    done = tilefit(installed, "plan", str(program), "-d", "h100", "--frontend", "toy")
    assert (done.returncode, done.stderr) == (0, "")
    assert "toy 1.0" in done.stdout
    assert "grid not asked" in done.stdout
    again = tilefit(installed, "plan", str(program), "-d", "h100", "--frontend", "toy")
    assert again.stdout == done.stdout


def test_what_does_not_fit_names_an_edit_of_its_own_parameter(
    installed: Path, program: Path
) -> None:
    # 3 x 50,000 are more than 101,376, and 2 x 50,000 with a gap below 256 are not
    words = ("plan", f"{program}::main", "-d", "rtx-4090", "--set", "depth=3")
    done = tilefit(installed, *words)
    assert (done.returncode, done.stderr) == (1, "")
    assert "DOES NOT FIT" in done.stdout
    command = f"  tilefit plan {program}::main -d rtx-4090 --set depth=2"
    assert done.stdout.rstrip().endswith(command)
    assert tilefit(installed, *command.split()[1:]).returncode == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "depth=9"), "toylang has at most 8 deep tiles"),
        (("--estimate",), "--estimate: nothing reads the source of Toy kernels alone"),
        (("-d", "mi300x"), "plan reads kernels for NVIDIA, not for amd yet"),
        (("--frontend", "toi"), "unknown frontend 'toi'; did you mean toy?"),
        (("--frontend", "broken"), "the frontend no_such_module:Frontend cannot be imported"),
        (("--set", "deep=3"), "deep"),
    ],
)
def test_what_goes_wrong_is_one_line(
    installed: Path, program: Path, flags: tuple[str, ...], said: str
) -> None:
    on = () if "-d" in flags else ("-d", "h100")
    done = tilefit(installed, "plan", f"{program}::main", *on, *flags)
    refused = "CANNOT LOWER" in done.stdout
    assert done.returncode == (1 if refused else 2), done.stdout + done.stderr
    assert said in (done.stdout if refused else done.stderr)
    assert refused or len(done.stderr.splitlines()) == 1


def test_a_folder_holds_files_of_every_toolchain(installed: Path, program: Path) -> None:
    folder = program.parent / "kernels"
    folder.mkdir()
    (folder / "one.toy").write_text(PROGRAM, encoding="utf-8")
    (folder / "two.toy").write_text(PROGRAM, encoding="utf-8")
    (folder / "notes.txt").write_text("toylang 1, in words", encoding="utf-8")
    for _ in range(2):  # no answer is kept that another .toy file would change
        done = tilefit(installed, "plan", str(folder), "-d", "h100", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        seen = json.loads(done.stdout)["seen"]
        assert (seen["seen"], seen["planned"]) == (2, 2)
    (folder / "three.toy").write_text(PROGRAM, encoding="utf-8")
    done = tilefit(installed, "plan", str(folder), "-d", "h100", "--json")
    assert json.loads(done.stdout)["seen"]["planned"] == 3


@pytest.mark.parametrize(
    ("answer_of_read", "said"),
    [
        ("return ()", "Toy gave no kernel for main"),
        ("return ({},)", "the frontend gave a dict, where a Kernel is right"),
        ("raise ValueError('no')", "no"),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--json",), ("--ladder", "depth"), ("--format", "csv")])
def test_an_answer_that_is_no_kernel_is_one_line(
    installed: Path, program: Path, answer_of_read: str, said: str, flags: tuple[str, ...]
) -> None:
    module = installed / "toylang_tilefit.py"
    text = module.read_text(encoding="utf-8")
    start = "    def read(self, request):\n"
    module.write_text(text.replace(start, f"{start}        {answer_of_read}\n"), encoding="utf-8")
    done = tilefit(installed, "plan", f"{program}::main", "-d", "h100", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_its_package_it_is_unknown(program: Path) -> None:
    done = tilefit(None, "plan", f"{program}::main", "-d", "h100", "--frontend", "toy")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tilefit: unknown frontend 'toy'; known: source, tilelang\n"


def test_our_own_are_known_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "references", lambda: pytest.fail("metadata was read"))
    for name in registry.OWN:
        assert registry.frontend(name).name == name
    with pytest.raises(pytest.fail.Exception):
        registry.reference("another")


def test_the_metadata_says_what_the_registry_says() -> None:
    from importlib.metadata import entry_points

    ours = {one.name: one.value for one in entry_points(group=registry.GROUP)}
    assert {name: ours.get(name) for name in registry.OWN} == registry.OWN
    with pytest.raises(UnknownNameError, match="did you mean tilelang"):
        registry.frontend("tilelan")
