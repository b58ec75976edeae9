"""A user's own devices and targets: ``[tool.tilefit]`` of pyproject.toml, and files with a base."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilefit._devices import config as _config
from tilefit._devices.names import Device, device, expand, user_devices
from tilefit._errors import InputError, UnknownNameError
from tilefit._kernel.memory import Memory
from tilefit.cli import main

KIB = 1024
SHARED = Memory.SHARED


def configure(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def own(folder: Path, text: str) -> Device:
    """Return the one device ``mine`` that a table describes."""
    configure(folder, f"[tool.tilefit.device.mine]\n{text}")
    (found,) = _config.devices(folder)
    return found


def nobody() -> tuple[str, ...]:
    raise AssertionError("nobody asked for what is attached")


# ---- a base and what differs ---------------------------------------------------------------


def test_a_base_alone_is_the_base_under_another_name(tmp_path: Path) -> None:
    mine, h100 = own(tmp_path, 'base = "h100"'), device("h100")
    assert (mine.name, mine.arch, mine.product) == ("mine", "sm_90", True)
    assert mine.title == "mine, from NVIDIA H100 SXM5 80GB"
    assert mine.aliases == ()
    for field in ("vendor", "cores", "pools", "conditions", "targets", "facts", "max_grid"):
        assert getattr(mine, field) == getattr(h100, field)


def test_a_base_may_be_an_architecture_or_an_alias(tmp_path: Path) -> None:
    assert own(tmp_path, 'base = "sm_90"').cores == ()
    assert own(tmp_path, 'base = "NVIDIA H100 80GB HBM3"').cores == (("SM", 132),)
    assert own(tmp_path, 'base = "910B1"').pool("ub").per_block_bytes == 192 * KIB - 256


def test_what_is_changed_is_the_users_and_the_rest_keeps_its_sources(tmp_path: Path) -> None:
    mine = own(
        tmp_path,
        'base = "h100"\ntitle = "H100 of the lab"\ncores = { SM = 60 }\n'
        "[tool.tilefit.device.mine.memories.shared]\nphysical_bytes = 240000\n"
        'per_block_bytes = [131072, "low", "our own runs"]\n'
        "granule_bytes = 1024\n"
        "[tool.tilefit.device.mine.launch]\nmax_blocks_per_core = 4\n",
    )
    pool = mine.pool(SHARED)
    assert (pool.per_block_bytes, pool.per_core_bytes) == (128 * KIB, 228 * KIB)
    assert (mine.max_blocks_per_core, mine.max_threads_per_block) == (4, 1024)
    assert (mine.title, mine.cores) == ("H100 of the lab", (("SM", 60),))
    facts, base = ({f.key: f for f in d.facts} for d in (mine, device("h100")))
    changed = {key for key in base if facts[key] != base[key]}
    assert changed == {
        "shared.physical_bytes",
        "shared.per_block_bytes",
        "shared.granule_bytes",
        "max_blocks_per_core",
        "cores.SM",
    }
    assert (facts["cores.SM"].source, facts["cores.SM"].value) == ("written in pyproject.toml", 60)
    assert facts["shared.per_block_bytes"].source == "our own runs"


def test_a_note_on_the_bases_number_does_not_stand_by_a_changed_one(tmp_path: Path) -> None:
    """The base's physical size has the note "L1 cache included"."""
    text = 'base = "h100"\n[tool.tilefit.device.mine.memories.shared]\nphysical_bytes = 300000\n'
    notes = {fact.key: fact.note for fact in own(tmp_path, text).facts}
    assert notes["shared.physical_bytes"] == ""
    assert notes["shared.default_per_block_bytes"] == "more needs an opt-in at launch"


def test_a_memory_and_a_target_may_be_added(tmp_path: Path) -> None:
    mine = own(
        tmp_path,
        'base = "sm_90"\nno_target = { cute = "never" }\naliases = ["ours"]\n'
        "[tool.tilefit.device.mine.memories.tensor]\nper_block_bytes = 262144\ncolumns = 512\n"
        '[tool.tilefit.device.mine.targets]\ntilelang = "sm_100a"\n',
    )
    assert mine.pool(Memory.TENSOR).columns == 512
    assert (mine.target("tilelang"), mine.target("triton")) == ("sm_100a", "sm_90a")
    assert mine.why_no_target("cute") == "never"
    assert expand(["OURS"], [mine]) == (mine,)


def test_a_file_may_have_a_base(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text('base = "a100"\n[launch]\nmax_threads_per_block = 256\n', encoding="utf-8")
    (mine,) = expand([str(path)])
    assert (mine.name, mine.arch, mine.max_threads_per_block) == ("lab", "sm_80", 256)
    path.write_text('base = "a101"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"lab\.toml: base: unknown device 'a101'; did you mean"):
        expand([str(path)])


def test_products_of_ones_own(tmp_path: Path) -> None:
    configure(
        tmp_path,
        '[tool.tilefit.device.mine]\nvendor = "nvidia"\nmemories.shared.per_block_bytes = 65536\n'
        "products.big.cores = { SM = 4 }\nproducts.small.cores = { SM = 2 }\n",
    )
    found = _config.devices(tmp_path)
    assert [(d.name, d.arch) for d in found] == [(n, "mine") for n in ("mine", "big", "small")]


# ---- what is refused, with the key and the rule --------------------------------------------

MEMORY = 'vendor = "nvidia"\n[tool.tilefit.device.mine.memories.shared]\n'
BASE = 'base = "h100"\n[tool.tilefit.device.mine.memories.shared]\n'
LAUNCH = 'base = "h100"\n[tool.tilefit.device.mine.launch]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base = 9", "base: 9 is not a text"),
        ('base = "h1000"', "base: unknown device 'h1000'; did you mean h100"),
        ('base = "blackwell"', "base: device 'blackwell' is refused: it names several"),
        ('base = "nvidia"', "base: 'nvidia' is a vendor, not one device"),
        ('base = "h100"\nlanch = 3', "lanch: unknown key; did you mean launch?"),
        ("", "vendor is missing"),
        ('vendor = "nvidia"', "mine has no memory"),
        (MEMORY, "memories.shared.per_block_bytes is missing"),
        (MEMORY + 'per_block_bytes = "64KiB"', "memories.shared.per_block_bytes: '64KiB' is not"),
        (BASE + "per_blok_bytes = 1", "memories.shared.per_blok_bytes: unknown key; did you mean"),
        ('base = "h100"\nmemories = 3', "memories is not a table"),
        ('base = "h100"\nmemories.shared = 3', "memories.shared is not a table"),
        ('base = "h100"\nmemories.smem = {}', "memories.smem: 'smem' is none of shared"),
        (
            BASE + "per_block_bytes = 233472",
            "shared: per_block_bytes 233472 + reserved_per_block_bytes 1024 = 234496 is above "
            "per_core_bytes 233472",
        ),
        (
            BASE + "per_block_bytes = 200000",
            "shared: per_block_bytes + reserved_per_block_bytes 201024 is no multiple of "
            "granule_bytes 128",
        ),
        (
            BASE + "per_core_bytes = 262145",
            "shared: per_core_bytes 262145 is above physical_bytes 262144",
        ),
        (
            BASE + "default_per_block_bytes = 240000",
            "shared: default_per_block_bytes 240000 is above per_block_bytes 232448",
        ),
        (BASE + "carveouts_bytes = [2, 1]", "shared: carveouts_bytes [2, 1] are not ascending"),
        (LAUNCH + "max_warp_per_core = 1", "launch.max_warp_per_core: unknown key; did you mean"),
        (
            LAUNCH + "max_threads_per_block = 4096",
            "max_threads_per_block 4096 is above max_threads_per_core 2048",
        ),
        (
            LAUNCH + "max_warps_per_core = 32",
            "max_warps_per_core 32 x warp_size 32 = 1024 is not max_threads_per_core 2048",
        ),
        (LAUNCH + "cluster_max = 4", "cluster_portable_max 8 is above cluster_max 4"),
        ('base = "h100"\ncores = { SM = 0 }', "cores.SM 0 is not above 0"),
        ('base = "h100"\nname = "h200"', "name 'h200' is taken by tilefit's own h200"),
        ('base = "h100"\naliases = ["sm90a"]', "name 'sm90a' is taken by tilefit's own sm_90"),
    ],
)
def test_a_bad_table_is_one_line_with_the_file_the_key_and_the_rule(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError) as error:
        own(tmp_path, text)
    where = f"{tmp_path / 'pyproject.toml'}: tool.tilefit.device.mine: "
    assert str(error.value).startswith(where + message)


@pytest.mark.parametrize(
    "name", ["h100", "RTX 4090", "Nvidia", "all", "attached", "blackwell", "h100-sm-shared-228kb"]
)
def test_a_name_that_means_something_already_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"dev.{name}: name '{name}' is taken by tilefit's own"):
        user_devices({name: {"base": "h100"}}, "here", "dev")


@pytest.mark.parametrize("name", [" ", "a,b", "lab.toml"])
def test_a_name_that_cannot_be_typed_after_d_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"is empty, has a comma or ends in \.toml"):
        user_devices({name: {"base": "h100"}}, "here", "dev")


def test_two_devices_of_ones_own_cannot_share_a_name() -> None:
    tables = {"lab-1": {"base": "h100"}, "LAB_1": {"base": "a100"}}
    with pytest.raises(InputError, match=r"dev\.LAB_1: name 'LAB_1' is taken by lab-1"):
        user_devices(tables, "here", "dev")


# ---- which pyproject.toml, and what is in it -----------------------------------------------


def test_the_nearest_file_that_configures_tilefit_is_read(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    configure(tmp_path, '[tool.tilefit]\ntargets = ["h100"]\n')
    configure(tmp_path / "a", '[tool.tilefit]\ntargets = ["a100"]\n')
    configure(tmp_path / "a" / "b", '[project]\nname = "another"\n')
    assert _config.targets(deep) == ("a100",)
    assert _config.targets(tmp_path) == ("h100",)


def test_no_configuration_is_no_targets_and_no_devices(tmp_path: Path) -> None:
    assert _config.targets(tmp_path) == _config.devices(tmp_path) == ()
    assert _config.resolve([], nobody, tmp_path) == ()


def test_the_file_is_read_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, '[tool.tilefit]\ntargets = ["h100"]\n')
    monkeypatch.chdir(tmp_path)
    assert _config.targets() == ("h100",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.tilefit\n", "configuration '.*pyproject.toml' is not TOML"),
        ("[tool]\ntilefit = 3\n", "pyproject.toml: tool.tilefit is not a table"),
        ("[tool.tilefit]\ntargts = []\n", "tool.tilefit.targts: unknown key; did you mean targets"),
        ("[tool.tilefit]\ntargets = 'h100'\n", "tool.tilefit.targets: 'h100' is not a list"),
        ("[tool.tilefit]\ntargets = [90]\n", r"tool.tilefit.targets: \[90\] is not a list"),
    ],
)
def test_a_bad_configuration_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    configure(tmp_path, text)
    with pytest.raises(InputError, match=message):
        _config.targets(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.tilefit]\ndevice = 3\n", "tool.tilefit.device is not a table"),
        ("[tool.tilefit.device]\nmine = 3\n", "tool.tilefit.device.mine: the device is not a tab"),
    ],
)
def test_devices_that_are_no_tables(tmp_path: Path, text: str, message: str) -> None:
    configure(tmp_path, text)
    with pytest.raises(InputError, match=message):
        _config.devices(tmp_path)


# ---- what -d means -------------------------------------------------------------------------

MINE = (
    '[tool.tilefit]\ntargets = ["a100, mine", "chips/lab.toml"]\n'
    '[tool.tilefit.device.mine]\nbase = "h100"\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure(tmp_path, MINE)
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "lab.toml").write_text('base = "sm_75"\n', encoding="utf-8")
    (tmp_path / "deep").mkdir()
    return tmp_path


def names(folder: Path, *specs: str, attached: tuple[str, ...] | None = None) -> list[str]:
    ask = nobody if attached is None else lambda: attached
    return [found.name for found in _config.resolve(specs, ask, folder)]


def test_without_d_the_targets_are_meant_and_files_are_beside_pyproject(folder: Path) -> None:
    assert names(folder / "deep") == ["a100", "mine", "lab"]


def test_d_takes_ones_own_names_beside_tilefits(folder: Path) -> None:
    assert names(folder, "MINE,h100", "t4") == ["mine", "h100", "t4"]


def test_attached_is_asked_for_where_it_stands(folder: Path) -> None:
    found = names(folder, "t4,Attached", "attached, mine", attached=("h200", "a100"))
    assert found == ["t4", "h200", "a100", "mine"]


def test_an_unknown_name_is_near_to_ones_own(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown device 'mime'; did you mean mine"):
        names(folder, "mime")


def test_a_function_that_takes_one_name_gets_what_it_understands(folder: Path) -> None:
    for spec in ("h100", "h100,a100", "chips/lab.toml", "H100-SM-shared-228KB", "blackwell"):
        assert _config.resolve_one(spec, nobody, folder) == spec
    mine = _config.resolve_one("Mine", nobody, folder)
    assert isinstance(mine, Device)
    assert mine.name == "mine"
    assert _config.resolve_one("attached", lambda: ("h200", "a100"), folder) == "h200,a100"
    with pytest.raises(InputError, match="'mine,h100' names 2 devices, not one"):
        _config.resolve_one("mine,h100", nobody, folder)
    with pytest.raises(UnknownNameError, match="did you mean mine"):
        _config.resolve_one("mime", nobody, folder)
    (folder / "pyproject.toml").unlink()
    assert _config.resolve_one("mine", nobody, folder) == "mine"  # the function will refuse it


def test_a_bad_table_is_no_trouble_to_who_names_another_device(tmp_path: Path) -> None:
    configure(tmp_path, "[tool.tilefit.device.mine]\nbase = 3\n")
    assert names(tmp_path, "h100") == ["h100"]
    configure(tmp_path, "[tool.tilefit\n")
    assert names(tmp_path, "h100") == ["h100"]


def test_python_functions_take_ones_own_devices_as_values_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a function answers does not depend on the current folder."""
    monkeypatch.chdir(folder)
    with pytest.raises(UnknownNameError):
        device("mine")
    assert device("mine", _config.devices()).name == "mine"


# ---- the command ---------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["devices", *args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_lists_ones_own_devices_after_tilefits(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, out, _ = run(capsys)
    assert code == 0
    assert "NVIDIA, your own: shared memory that one block may use, of KiB a core has" in out
    (line,) = (line for line in out.splitlines() if line.split()[:1] == ["mine"])
    assert line.split() == ["mine", "sm_90", f"{227 * KIB:,}", "227", "228", "132", "SM"]
    _, out, _ = run(capsys, "--json")
    assert json.loads(out)["devices"][-1]["name"] == "mine"
    _, out, _ = run(capsys, "--vendor", "amd")
    assert "your own" not in out


def test_the_command_shows_one_of_ones_own(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    configure(folder, MINE + "cores = { SM = 7 }\n")
    code, out, _ = run(capsys, "mine")
    assert code == 0
    assert out.startswith("mine   mine, from NVIDIA H100 SXM5 80GB\narch     sm_90, cores: 7 SM\n")
    assert "written in pyproject.toml" in out


def test_the_command_says_what_is_wrong_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, '[tool.tilefit.device.mine]\nbase = "h100"\nlaunch.warp_size = 64\n')
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "mine")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "max_warps_per_core 64 x warp_size 64 = 4096 is not max_threads_per_core 2048" in err
