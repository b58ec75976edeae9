"""`devices --live` and `attached`: what a device says of itself beside our table.

The property sets in data/live were published by people who have the devices. Each says what of it
was printed there (``recorded``) and what was filled in from documents (``composed``).
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilefit._devices import probe as _live_probe
from tilefit._devices.attached import ask, attached_devices
from tilefit._devices.comparison import Answer, attached_names, read
from tilefit._devices.names import device
from tilefit._errors import InputError
from tilefit._render.live import live_dict, render_live
from tilefit.cli import main

KIB = 1024
DATA = Path(__file__).parent / "data" / "live"
SETS = sorted(path.stem for path in DATA.glob("*.json"))


def document(file: str, /, **properties: Any) -> dict[str, Any]:
    """Return a recorded answer, with some properties replaced."""
    found: dict[str, Any] = json.loads((DATA / f"{file}.json").read_text("utf-8"))["document"]
    found["devices"][0]["properties"] |= properties
    return found


def live(answer: Answer) -> dict[str, int]:
    (found,) = answer.devices
    return {line.limit: line.live for line in found.lines}


def differing(answer: Answer) -> dict[str, tuple[int, int | None]]:
    (found,) = answer.devices
    return {line.limit: (line.live, line.ours) for line in found.lines if line.differs}


# ---- recorded property sets ----------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_a_set_says_what_was_recorded_and_what_was_composed(name: str) -> None:
    table = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    assert set(table) == {"about", "recorded", "composed", "document"}
    assert table["recorded"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("h100_torch", "h100"),
        ("h200_cuda", "h200"),
        ("a100_torch", "a100"),
        ("a100_mig_torch", "a100"),
        ("rtx_4090_torch", "rtx-4090"),
        ("unlisted_card_torch", "sm_89"),
        ("mi300x_torch", "mi300x"),
        ("ascend_910b3_torch_npu", "ascend-910b3"),
        ("ascend_910_9382_torch_npu", "ascend-910_9382"),
    ],
)
def test_every_set_finds_its_device_in_the_table(name: str, ours: str) -> None:
    assert list(attached_names(read(document(name)))) == [ours]


def test_no_set_is_left_out() -> None:
    assert len(SETS) == 9


@pytest.mark.parametrize("name", [name for name in SETS if name != "a100_mig_torch"])
def test_whole_devices_agree_with_the_table(name: str) -> None:
    answer = read(document(name))
    assert len(live(answer)) >= 6
    assert differing(answer) == {}


def test_an_h100_names_these_limits() -> None:
    assert live(read(document("h100_torch"))) == {
        "shared.per_block_bytes": 227 * KIB,
        "shared.per_core_bytes": 228 * KIB,
        "shared.default_per_block_bytes": 48 * KIB,
        "max_threads_per_block": 1024,
        "warp_size": 32,
        "registers_per_core": 64 * 1024,
        "max_threads_per_core": 2048,
        "cores.SM": 132,
    }


def test_the_driver_names_more_than_torch_does() -> None:
    more = live(read(document("h200_cuda"))).keys() - live(read(document("h100_torch"))).keys()
    assert more == {
        "shared.reserved_per_block_bytes",
        "registers_per_block",
        "max_blocks_per_core",
        *(f"max_block.{axis}" for axis in "xyz"),
        *(f"max_grid.{axis}" for axis in "xyz"),
    }


def test_a_slice_of_a_card_has_the_cards_limits_and_fewer_cores() -> None:
    assert differing(read(document("a100_mig_torch"))) == {"cores.SM": (14, 108)}


def test_hip_counts_shared_memory_of_a_core_in_more_than_one_way_so_it_is_not_compared() -> None:
    values = live(read(document("mi300x_torch")))
    assert values["lds.per_block_bytes"] == 64 * KIB
    assert values["cores.CU"] == 8 * 38
    assert "lds.per_core_bytes" not in values


def test_rdna_counts_pairs_of_cus() -> None:
    card = document(
        "mi300x_torch",
        name="AMD Radeon RX 7900 XTX",
        gcnArchName="gfx1100",
        multi_processor_count=48,
        warp_size=32,
        regs_per_multiprocessor=1536 * 4 * 32,
        max_threads_per_multi_processor=16 * 4 * 32,
    )
    assert list(attached_names(read(card))) == ["rx-7900-xtx"]
    assert live(read(card))["cores.WGP"] == 96 // 2
    assert differing(read(card)) == {}


def test_ascend_sizes_are_what_get_core_mem_size_returns() -> None:
    """A 910B3 reads ub_size=196608 in its .ini and hands out 196352 (seen in a public log)."""
    answer = read(document("ascend_910b3_torch_npu"))
    assert live(answer) == {
        "ub.per_block_bytes": 196352,
        "l1.per_block_bytes": 512 * KIB - 256,
        "l0a.per_block_bytes": 64 * KIB,
        "l0b.per_block_bytes": 64 * KIB,
        "l0c.per_block_bytes": 128 * KIB,
        "bias.per_block_bytes": 1 * KIB,
        "fixpipe.per_block_bytes": (2 + 1 + 2 + 2) * KIB,
        "cores.AIC": 20,
        "cores.AIV": 40,
    }
    assert answer.devices[0].attached.note.endswith("Ascend910B3.ini")


@pytest.mark.parametrize(
    ("soc", "short", "ours", "ub_bytes", "cores"),
    [
        ("Ascend910B2C", "Ascend910B", "ascend-910b", 192 * KIB - 256, ("AIC", "AIV")),
        ("Ascend910B", "Ascend910", "ascend-910a", 192 * KIB, ("AI core", "vector")),
        ("Ascend310P3", "Ascend310P", "ascend-310p3", 192 * KIB, ("AI core", "vector")),
        ("Ascend950DT_9586", "Ascend950", "ascend-950", 192 * KIB, ("AIC", "AIV")),
        ("Ascend950PR_9599", "Ascend950", "ascend-950pr_9599", 192 * KIB, ("AIC", "AIV")),
    ],
)
def test_a_chip_that_is_no_product_of_ours_is_known_by_its_short_version(
    soc: str, short: str, ours: str, ub_bytes: int, cores: tuple[str, str]
) -> None:
    """The first 910 has a variant named Ascend910B: only A2 and A3 keep 256 B back."""
    chip = document("ascend_910b3_torch_npu", name=soc)
    chip["devices"][0]["platform"]["short_soc_version"] = short
    assert list(attached_names(read(chip))) == [ours]
    assert live(read(chip))["ub.per_block_bytes"] == ub_bytes
    assert {f"cores.{kind}" for kind in cores} <= live(read(chip)).keys()


def test_without_cann_files_a_chip_is_known_by_its_name_and_core_counts() -> None:
    chip = document("ascend_910b3_torch_npu")
    chip["devices"][0] |= {"platform": {}, "platform_file": ""}
    assert list(attached_names(read(chip))) == ["ascend-910b3"]
    assert live(read(chip)) == {"cores.AIC": 20, "cores.AIV": 40}


@pytest.mark.parametrize(
    ("reported", "ours"),
    [
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla V100-PCIE-32GB", "v100"),
        ("Tesla T4", "t4"),
        ("NVIDIA A100-PCIE-40GB", "a100"),
        ("NVIDIA A100 80GB PCIe", "a100"),
        ("NVIDIA RTX A6000", "a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("NVIDIA GB10", "gb10"),
    ],
)
def test_names_that_drivers_report_are_products(reported: str, ours: str) -> None:
    major, minor = divmod(int(device(ours).arch.removeprefix("sm_")), 10)
    card = document("h100_torch", name=reported, major=major, minor=minor)
    assert list(attached_names(read(card))) == [ours]


def test_a_name_of_another_architecture_is_not_believed() -> None:
    """The compute capability has the limits; a name may be a vendor's joke."""
    card = document("h100_torch", name="NVIDIA A100", major=9, minor=0)
    assert list(attached_names(read(card))) == ["sm_90"]


def test_properties_that_a_binding_lacks_are_left_out() -> None:
    card = document("h100_torch")
    for gone in ("shared_memory_per_block_optin", "warp_size", "major"):
        del card["devices"][0]["properties"][gone]
    values = live(read(card))
    assert "shared.per_block_bytes" not in values
    assert values["shared.per_core_bytes"] == 228 * KIB
    assert list(attached_names(read(card))) == ["h100"]


# ---- differences ---------------------------------------------------------------------------


def test_a_difference_is_a_warning_with_both_numbers_and_the_table_decides() -> None:
    answer = read(document("h100_torch", shared_memory_per_block_optin=200 * KIB))
    assert differing(answer) == {"shared.per_block_bytes": (200 * KIB, 227 * KIB)}
    text = " ".join(render_live(answer).split())
    assert (
        "warning: shared.per_block_bytes: the device says 204,800 B and our table 232,448 B; "
        "verdicts use the table's" in text
    )
    assert text.count("differs") == text.count("warning") == 1
    (warning,) = live_dict(answer)["warnings"]
    assert "204,800 B" in warning
    assert "232,448 B" in warning


def test_an_architecture_that_no_table_has_shows_what_the_device_says() -> None:
    answer = read(document("h100_torch", name="NVIDIA X1", major=99, minor=0))
    assert "not in our table" in render_live(answer)
    (found,) = live_dict(answer)["attached"]
    assert found["device"] is None
    assert {limit["same"] for limit in found["limits"]} == {None}
    with pytest.raises(InputError, match=r"no table has NVIDIA X1 \(sm_990\).*file of your own"):
        list(attached_names(answer))


def test_a_number_that_our_table_lacks_is_no_difference() -> None:
    """An architecture has no core count."""
    answer = read(document("unlisted_card_torch"))
    (line,) = (line for line in answer.devices[0].lines if line.limit == "cores.SM")
    assert (line.live, line.ours, line.differs) == (24, None, False)
    assert "its architecture (not this product)" in render_live(answer)


def test_text_is_plain_and_80_columns_wide() -> None:
    for name in SETS:
        lines = render_live(read(document(name))).splitlines()
        assert [line for line in lines if len(line) > 80] == [], name


def test_json_has_a_line_for_every_limit() -> None:
    (found,) = live_dict(read(document("h100_torch")))["attached"]
    assert (found["index"], found["vendor"], found["arch"]) == (0, "nvidia", "sm_90")
    assert found["limits"][0] == {
        "limit": "shared.per_block_bytes",
        "unit": "bytes",
        "live": 227 * KIB,
        "ours": 227 * KIB,
        "same": True,
    }


def several(*names: str) -> Answer:
    devices = [document(name)["devices"][0] for name in names]
    devices = [entry | {"index": index} for index, entry in enumerate(devices)]
    return read({"asked": [], "devices": devices})


def test_several_devices_are_shown_once_for_each_kind() -> None:
    text = render_live(several("h100_torch", "a100_torch", "h100_torch"))
    heads = [line for line in text.splitlines() if "NVIDIA" in line]
    assert heads == ["0, 2  NVIDIA H100 80GB HBM3, sm_90", "1  NVIDIA A100-SXM4-80GB, sm_80"]


# ---- asking, with stand-ins for the vendors' modules ---------------------------------------

TORCH = """
import json, os, pathlib, types
print("a driver talks")
_all = json.loads(pathlib.Path(os.environ["FAKE"]).read_text())["document"]["devices"] * 2
version = types.SimpleNamespace(hip=None, cuda="13.0")
cuda = types.SimpleNamespace(
    is_available=lambda: True,
    device_count=lambda: len(_all),
    get_device_properties=lambda i: types.SimpleNamespace(**_all[i]["properties"], uuid="secret"),
)
"""
DRIVER = """
import enum
class CUdevice_attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33
    CU_DEVICE_ATTRIBUTE_LATER_THAN_THE_DRIVER = 999
_known = {10: 32, 75: 9, 76: 0, 97: 232448, 33: 7}
def cuInit(flags): return (0,)
def cuDeviceGetCount(): return (0, 1)
def cuDeviceGet(index): return (0, index)
def cuDeviceGetName(length, handle): return (0, b"NVIDIA H100 PCIe\\0\\0")
def cuDeviceGetAttribute(attribute, handle):
    return (0, _known[int(attribute)]) if int(attribute) in _known else (1, None)
"""
ACL = """
import types
def init(): return 0
def finalize(): return 0
def get_soc_name(): return "Ascend910B3"
def get_device_capability(index, kind): return ((20, 40)[kind], 0)
rt = types.SimpleNamespace(get_device_count=lambda: (1, 0))
"""
NOTHING = "raise ImportError('not here')"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put modules in front of all others in the child; those not given cannot be imported."""

    def install(**sources: str) -> None:
        given = dict.fromkeys(("cuda", "acl", "torch", "torch_npu"), NOTHING) | sources
        for name, source in given.items():
            package = tmp_path / "fake" / name
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").write_text(source, encoding="utf-8")
        if "driver" in sources:
            (tmp_path / "fake" / "cuda" / "__init__.py").write_text("", encoding="utf-8")
            (tmp_path / "fake" / "cuda" / "bindings").mkdir()
            (tmp_path / "fake" / "cuda" / "bindings" / "__init__.py").touch()
            driver = tmp_path / "fake" / "cuda" / "bindings" / "driver.py"
            driver.write_text(sources["driver"], encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
        for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
            monkeypatch.delenv(name, raising=False)

    return install


def test_torch_answers_with_every_device(
    stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(torch=TORCH)
    monkeypatch.setenv("FAKE", str(DATA / "h100_torch.json"))
    answer = ask()
    assert [one.attached.index for one in answer.devices] == [0, 1]
    assert {one.device.name for one in answer.devices if one.device} == {"h100"}
    assert answer.devices[0].attached.through.startswith("torch")
    assert differing(Answer(answer.devices[:1], ())) == {}
    assert attached_devices() == ("h100",)


@pytest.mark.parametrize("sources", [{"torch": TORCH}, {"driver": DRIVER}])
def test_what_a_driver_prints_and_what_is_private_is_in_no_answer(
    stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch, sources: dict[str, str]
) -> None:
    stand_in(**sources)
    monkeypatch.setenv("FAKE", str(DATA / "h100_torch.json"))
    done = subprocess.run([sys.executable, _live_probe.__file__], capture_output=True, text=True)
    (properties, *_) = (entry["properties"] for entry in json.loads(done.stdout)["devices"])
    assert "NVIDIA H100" in properties["name"]
    assert not {"uuid", "pci_bus_id"} & properties.keys()


def test_the_driver_answers_through_cuda_bindings_before_torch(
    stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(driver=DRIVER, torch=TORCH)
    monkeypatch.setenv("FAKE", str(DATA / "a100_torch.json"))
    answer = ask()
    assert attached_devices() == ("h100-pcie",)
    assert live(answer) == {"shared.per_block_bytes": 227 * KIB, "warp_size": 32}


@pytest.mark.parametrize("folder", ["compiler/data", "aarch64-linux/data", "data"])
@pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
def test_ascend_answers_through_acl_and_canns_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stand_in: Callable[..., None],
    folder: str,
    variable: str,
) -> None:
    stand_in(acl=ACL)
    config = tmp_path / "cann" / folder / "platform_config"
    config.mkdir(parents=True)
    for name, short, size in (
        ("Ascend910B3", "Ascend910B", 196608),
        ("Ascend910B3-1", "Ascend910B", 7),  # a longer name that begins alike
    ):
        (config / f"{name}.ini").write_text(
            f"#*** [Platform Info configuration begin]\n[version]\nShort_SoC_version={short}\n"
            f"[SoCInfo]\nai_core_cnt=20\n[AICoreSpec]\nub_size={size}\nl1_size=524288\n",
            encoding="utf-8",
        )
    monkeypatch.setenv(variable, str(tmp_path / "cann"))
    answer = ask()
    assert attached_devices() == ("ascend-910b3",)
    assert live(answer) == {
        "ub.per_block_bytes": 192 * KIB - 256,
        "l1.per_block_bytes": 512 * KIB - 256,
        "cores.AIC": 20,
        "cores.AIV": 40,
    }


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({}, "failed: not here"),
        ({"driver": "def cuInit(flags): raise RuntimeError('no libcuda.so.1\\nmore')"}, "libcuda"),
        ({"driver": "def cuInit(flags): return (100,)"}, ": no device"),
        ({"driver": "def cuInit(flags): return (803,)"}, "failed: cuInit: 803"),
        (
            {
                "torch": "import types, warnings\n"
                "version = types.SimpleNamespace(hip=None)\n"
                "def _no(): warnings.warn('the driver is too old'); return False\n"
                "cuda = types.SimpleNamespace(is_available=_no)\n"
            },
            "failed: the driver is too old",
        ),
        ({"torch": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"}, "crashed (SIGSEGV)"),
        ({"torch": "import sys; sys.exit('no licence')"}, "failed: no licence"),
        ({"torch": "import os; os._exit(3)"}, "failed: exit code 3"),
        ({"acl": ACL.replace("(1, 0)", "(0, 507033)")}, "get_device_count: error 507033"),
    ],
)
def test_no_device_or_a_broken_driver_is_one_calm_line(
    capfd: pytest.CaptureFixture[str],
    stand_in: Callable[..., None],
    sources: dict[str, str],
    said: str,
) -> None:
    stand_in(**sources)
    assert main(["devices", "--live"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("no device is attached, or none that answers (")
    assert said in out
    assert (out.count("\n"), err) == (1, "")
    assert main(["devices", "--live", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["attached"] == []


def test_an_interpreter_without_any_binding_says_so(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n', encoding="utf-8")
    bare.chmod(bare.stat().st_mode | stat.S_IXUSR)
    assert "cuda-bindings, acl, torch, torch_npu: not installed" in ask(str(bare)).nothing_attached


def test_a_hung_driver_is_given_up(stand_in: Callable[..., None]) -> None:
    stand_in(torch="import time; time.sleep(60)")
    assert "no answer in 0.5 s" in ask(seconds=0.5).nothing_attached


@pytest.mark.parametrize(
    ("python", "message"),
    [("no/such/python", "cannot be run: No such file"), ("/", "cannot be run: Permission denied")],
)
def test_an_interpreter_that_is_none_is_bad_input(
    capsys: pytest.CaptureFixture[str], python: str, message: str
) -> None:
    assert main(["devices", "--live", "--python", python]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_program_that_is_no_python_is_told_from_one() -> None:
    assert "failed: exit code 1" in ask("/bin/false").nothing_attached


# ---- the command ---------------------------------------------------------------------------


def test_the_command_shows_line_by_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stand_in: Callable[..., None],
) -> None:
    stand_in(torch=TORCH)
    monkeypatch.setenv("FAKE", str(DATA / "h100_torch.json"))
    assert main(["devices", "--live"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("0, 1  NVIDIA H100 80GB HBM3, sm_90\n")
    (line,) = (line for line in out.splitlines() if "shared.per_block_bytes" in line)
    assert line.split() == ["shared.per_block_bytes", "232,448", "B", "232,448", "B", "same"]


def test_attached_is_a_name_of_a_device(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stand_in: Callable[..., None],
) -> None:
    stand_in(torch=TORCH)
    monkeypatch.setenv("FAKE", str(DATA / "h100_torch.json"))
    assert main(["devices", "Attached, a100", "--json"]) == 0
    names = [entry["name"] for entry in json.loads(capsys.readouterr().out)["devices"]]
    assert names == ["h100", "a100"]


def test_attached_without_a_device_is_one_line(
    capsys: pytest.CaptureFixture[str], stand_in: Callable[..., None]
) -> None:
    stand_in()
    assert main(["devices", "attached"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("tilefit: attached: no device is attached, or none that answers (")
    assert err.count("\n") == 1


def test_attached_is_for_the_command_line_only() -> None:
    """A function of tilefit does not depend on the machine that it runs on."""
    with pytest.raises(InputError, match="'attached' is asked of this machine by the command line"):
        device("attached")


def test_live_takes_no_names_or_filters(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["h100"], ["--vendor", "amd"], ["--memory", "tensor"]):
        assert main(["devices", "--live", *more]) == 2
        assert "name and filter nothing" in capsys.readouterr().err


# ---- a real device -------------------------------------------------------------------------


@pytest.mark.gpu
def test_the_attached_device_is_as_the_table_says() -> None:
    answer = ask()
    assert answer.devices, answer.nothing_attached
    for found in answer.devices:
        assert found.device is not None, found.attached
        assert [line for line in found.lines if line.differs] == []
        assert len(found.lines) >= 6


def test_the_test_above_is_deselected_unless_it_is_asked_for(root: Path) -> None:
    """It is not skipped: a skip would count as a toolchain that is missing."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-m",
        "gpu",
        "-o",
        "addopts=",
    ]
    for wanted in ("0", "1"):
        done = subprocess.run(
            [*command, __file__],
            cwd=root,
            env={**os.environ, "TILEFIT_LIVE": wanted},
            capture_output=True,
            text=True,
        )
        assert ("as_the_table_says" in done.stdout) == (wanted == "1"), done.stdout
