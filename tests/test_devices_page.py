"""docs/devices.md is made from the device data and compared here, and what it advises works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilefit._devices import config as _config
from tilefit._devices.names import device, device_names
from tilefit._kernel.memory import Memory
from tilefit._render.devices_page import page


@pytest.fixture
def text(root: Path) -> str:
    return (root / "docs" / "devices.md").read_text(encoding="utf-8")


def test_the_page_is_made_from_the_data(text: str) -> None:
    """Remake it with `python -m tilefit._render.devices_page > docs/devices.md`."""
    assert text == page()


def test_every_device_has_a_row(text: str) -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(device_names())


@pytest.mark.parametrize(
    ("row", "cell"),
    [
        ("sm_90", f"{227 * 1024:,} B = 227 KiB"),
        ("sm_75", f"{64 * 1024:,} B = 64 KiB"),
        ("gfx950", f"{160 * 1024:,} B = 160 KiB"),
        ("ascend-910b", f"{192 * 1024 - 256:,} B = 191.75 KiB"),
        ("h100", "132 SM"),
        ("ascend-910b3", "20 AIC, 40 AIV"),
        ("rtx-4060", "not known here"),
    ],
)
def test_a_row_has_the_vendors_number(text: str, row: str, cell: str) -> None:
    (line,) = (line for line in text.splitlines() if line.startswith(f"| `{row}` |"))
    assert cell in line.split(" | ")


def test_every_table_is_whole(text: str) -> None:
    """Each row has as many cells as the header above it."""
    width = 0
    for line in text.splitlines():
        if line.startswith("|---"):
            width = line.count("|")
        elif line.startswith("| `"):
            assert line.count(" | ") + 2 == width, line


def test_every_number_of_less_than_high_confidence_is_listed(text: str) -> None:
    doubted = text[text.index("## Numbers to doubt") : text.index("## Sources")]
    for name in device_names():
        for fact in device(name).facts:
            own = not device(name).product or fact.key.startswith("cores.")
            listed = any(
                line.startswith(f"| {fact.key} |") and f"| {fact.confidence} |" in line
                for line in doubted.splitlines()
                if f"`{name}`" in line
            )
            assert listed == (own and fact.confidence != "high"), (name, fact)


def test_the_pages_own_devices_work_as_written(text: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(example, encoding="utf-8")
    card, chip = _config.devices(tmp_path)
    assert (card.name, card.cores, card.max_threads_per_block) == ("lab-card", (("SM", 96),), 512)
    assert card.pool(Memory.SHARED).per_block_bytes == 99 * 1024
    assert chip.pool(Memory.SHARED).per_core_bytes == 130048 + 1024
    assert chip.target("tilelang") == "sm_90a"
    assert _config.targets(tmp_path) == ("h100", "lab-card")
