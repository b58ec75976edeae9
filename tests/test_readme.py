"""The README shows real output: its console blocks are run again and compared."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tilefit.cli import main

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SCREENS = (ROOT / "docs" / "screens.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"```\n\$ (tilefit .*?)\n(.*?)\n```", re.DOTALL)
BLOCKS = CONSOLE.findall(TEXT + SCREENS)


def test_the_readme_opens_with_real_output() -> None:
    assert len(CONSOLE.findall(TEXT)) >= 2
    assert TEXT.index("```\n$ tilefit plan") < TEXT.index("## Start") < TEXT.index("```sh")


def test_the_readme_is_at_most_100_columns_wide() -> None:
    assert [line for line in TEXT.splitlines() if len(line) > 100] == []


def test_every_page_that_the_readme_names_is_there() -> None:
    pages = re.findall(r"\]\(([\w/.]+)\)", TEXT)
    assert len(pages) > 5
    assert [page for page in pages if not (ROOT / page).exists()] == []


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param(c, shown, id=c, marks=[pytest.mark.cuda] if "--assemble" in c else [])
        for c, shown in BLOCKS
    ],
)
def test_a_console_block_is_what_the_command_prints(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    main(shlex.split(command)[1:])
    printed = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
    assert printed == shown.splitlines()


def test_there_are_exactly_two_set_up_commands() -> None:
    blocks = re.findall(r"```sh\n(.*?)\n```", TEXT, re.DOTALL)
    assert len(blocks) == 2
    assert all("-m venv .venv" in block and "constraints.txt" in block for block in blocks)


def test_the_python_example_names_what_exists() -> None:
    import tilefit

    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    for name in set(re.findall(r"tilefit\.(\w+)", example)):
        assert callable(getattr(tilefit, name)), name
    assert tilefit.footprint((128, 256), "float32", copies=2).total_bytes == 128 * 256 * 4 * 2
    # (256 * 64 + 64 * 256) * 2 = 65,536 a stage: 3 fit in 232,448
    assert tilefit.max_stages(256, 256, 64, device="h100") == 232448 // 65536 == 3
    assert tilefit.device("h100").pool("shared").per_block_bytes == 227 * 1024
