"""One kernel on many devices, many shapes, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.test_plan_tilelang import InProcess, in_process  # noqa: F401
from tilefit._kernel.request import Request
from tilefit.cli import main

pytestmark = [pytest.mark.tilelang, pytest.mark.filterwarnings("ignore")]

STAGE_BYTES = (128 * 64 + 64 * 128) * 2


@pytest.fixture
def gemm(root: Path) -> str:
    return f"{root / 'examples' / 'gemm.py'}::matmul"


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the lowerings by target and parameters."""
    counts: Counter[str] = Counter()
    load = InProcess.load

    def counting(self: InProcess, stand_ins: object = ()) -> object:
        listings = load(self, stand_ins)
        read = self.read

        def counted(request: Request) -> object:
            counts[f"{request.target} {request.key}"] += 1
            return read(request)

        self.read = counted  # type: ignore[method-assign,assignment]
        return listings

    monkeypatch.setattr(InProcess, "load", counting)
    return counts


def answer(text: str, start: str) -> str:
    """Return the answer, which starts so, without what TileLang logged before it."""
    return text[text.index(start) :].rstrip("\n")


def test_devices_of_one_architecture_share_every_lowering(
    gemm: str, lowered: Counter[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", gemm, "-d", "h100", "--json"]) == 0
    for_one = sum(lowered.values())
    lowered.clear()
    assert main(["plan", gemm, "-d", "h100,h200,gh200,h20,sm_90", "--json"]) == 0
    assert sum(lowered.values()) == for_one
    assert max(lowered.values()) == 1
    capsys.readouterr()


def test_amd_counts_in_lds_and_a_device_without_a_reader_is_unknown(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", gemm, "-d", "mi300x,mi355x,apple", "--json", "--no-suggest"])
    out = capsys.readouterr().out
    results = {r["device"]: r for r in json.loads(out[out.index("{\n") :])["results"]}
    old, new = results["mi300x"], results["mi355x"]
    assert old["memories"][0]["memory"] == new["memories"][0]["memory"] == "lds"
    # gfx942 has no async copies into LDS: one stage of tiles, of 64 KiB; gfx950 keeps three
    assert old["memories"][0]["total_bytes"] == STAGE_BYTES
    assert old["memories"][0]["limit_bytes"] == 64 * 1024
    assert new["memories"][0]["total_bytes"] == 3 * STAGE_BYTES
    assert new["memories"][0]["limit_bytes"] == 160 * 1024
    assert new["max_stages"] == 160 * 1024 // STAGE_BYTES == 5
    rest = [r for name, r in results.items() if name not in ("mi300x", "mi355x")]
    assert rest
    assert {r["verdict"] for r in rest} == {"unknown"}


def test_the_table_has_a_row_each_and_the_stages_that_fit_everywhere(
    gemm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", gemm, "-d", "h100,a100,rtx-4090,t4"]) == 1
    lines = answer(capsys.readouterr().out, "gemm.py::matmul").splitlines()
    rows = {line.split()[0]: line for line in lines if line.split()[:1]}
    for device in ("h100", "a100", "rtx-4090", "t4"):
        assert device in rows
    # t4 holds 64 KiB: two stages of 32 KiB
    assert any(
        line.endswith(f"Stages that fit everywhere: {64 * 1024 // STAGE_BYTES}") for line in lines
    )
    # a command to paste is never broken, however long its path
    assert max(len(line) for line in lines if not line.startswith("  tilefit")) <= 80


def test_csv_and_markdown_say_the_same(gemm: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", gemm, "-d", "h100,a100", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(answer(capsys.readouterr().out, "file,"))))
    assert [(r["device"], int(r["total_bytes"]), int(r["max_stages"])) for r in rows] == [
        ("h100", 3 * STAGE_BYTES + 1024, 7),
        ("a100", 3 * STAGE_BYTES, 5),
    ]
    assert main(["plan", gemm, "-d", "h100,a100", "--format", "md"]) == 0
    lines = answer(capsys.readouterr().out, "| device |").splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["h100", "a100"]


@pytest.mark.parametrize(
    ("suffix", "starts"), [("json", "{"), ("csv", "file,"), ("md", "| device")]
)
def test_the_suffix_of_the_output_names_the_format(
    gemm: str, tmp_path: Path, suffix: str, starts: str
) -> None:
    output = tmp_path / f"report.{suffix}"
    assert main(["plan", gemm, "-d", "a100", "-o", str(output)]) == 0
    assert output.read_text().startswith(starts)


def test_a_list_of_shapes_shows_what_each_changes(
    gemm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("M,N,K\n4096,4096,4096\n4096,4096,4100\n128,128,0\n")
    assert main(["plan", gemm, "-d", "h100", "--shapes", str(shapes), "--json"]) == 2
    out = capsys.readouterr().out
    results = json.loads(out[out.index("{\n") :])["results"]
    assert [r["params"]["K"] for r in results] == [4096, 4100, 0]
    assert [r["verdict"] for r in results] == ["fits", "fits", "unknown"]
    # a row of 4100 fp16 is 8,200 B, no multiple of 16: no TMA for it
    assert results[0]["notes"] == []
    assert any("8,200 B" in note and "TMA" in note for note in results[1]["notes"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        ("M,N\n", "no rows"),
        ("M,N\n1\n", "2 names"),
        ("M,1x\n1,2\n", "1x"),
        ("M,Q\n1,2\n", "Q"),
    ],
)
def test_a_bad_list_of_shapes_is_one_line(
    gemm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, named: str
) -> None:
    shapes = tmp_path / "shapes.csv"
    shapes.write_text(text)
    assert main(["plan", gemm, "-d", "h100", "--shapes", str(shapes)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert named in errors
