"""The README shows real output: its console blocks are run again and compared."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tilefit.cli import main

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\n\$ (tilefit .*?)\n(.*?)\n```", TEXT, re.DOTALL)


def test_the_readme_opens_with_real_output() -> None:
    assert len(BLOCKS) >= 2


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
