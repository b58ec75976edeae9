"""Ninety pasted texts, each with what must be found in it; both were written before the patterns.

``data/pasted/expected.toml`` says what its keys mean and which may be left out.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tilefit._devices.names import device
from tilefit._explain import Finding, explain

PASTED = Path(__file__).parent / "data" / "pasted"
EXPECTED: dict[str, Any] = tomllib.loads((PASTED / "expected.toml").read_text(encoding="utf-8"))


def test_every_text_is_expected_and_there_are_many() -> None:
    assert {path.stem for path in PASTED.glob("*.txt")} == set(EXPECTED)
    assert sum(bool(entry["findings"]) for entry in EXPECTED.values()) >= 60


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_pasted_text(name: str) -> None:
    text = (PASTED / f"{name}.txt").read_bytes().decode("utf-8")
    findings = explain(text).findings
    wanted = EXPECTED[name]["findings"]
    assert [one.toolchain for one in findings] == [entry["toolchain"] for entry in wanted]
    for finding, entry in zip(findings, wanted, strict=True):
        assert summary(finding) == {
            "memory": entry.get("memory"),
            "required_bytes": entry.get("required_bytes"),
            "limit_bytes": entry.get("limit_bytes"),
            "over_bytes": entry.get("over_bytes"),
            "count": entry.get("count", 1),
        }
        if "unit" in entry:
            assert finding.unit == entry["unit"]
            assert (finding.required, finding.limit) == (entry.get("required"), entry.get("limit"))
        if "fatal" in entry:
            assert finding.fatal is entry["fatal"]
        assert set(entry.get("devices", ())) <= set(finding.devices)


def summary(finding: Finding) -> dict[str, Any]:
    return {
        "memory": finding.memory,
        "required_bytes": finding.required_bytes,
        "limit_bytes": finding.limit_bytes,
        "over_bytes": finding.over_bytes,
        "count": finding.count,
    }


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_is_said_of_a_pasted_text(name: str) -> None:
    """Every finding has its message in the text, advice or causes, and devices that exist."""
    text = (PASTED / f"{name}.txt").read_bytes().decode("utf-8")
    for finding in explain(text).findings:
        assert finding.advice or finding.causes
        assert all(device(one).name == one for one in finding.devices)
        if finding.required_bytes and finding.limit_bytes and finding.over_bytes:
            assert finding.over_bytes == finding.required_bytes - finding.limit_bytes
        letters = "".join(filter(str.isalnum, text)).lower()
        assert "".join(filter(str.isalnum, finding.message.split()[0])).lower() in letters
