"""docs/architecture.md is true: every room in its own words, every file that it names there."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import tilefit

PACKAGE = Path(tilefit.__file__).parent
ROOMS = {
    str(init.parent.relative_to(PACKAGE)): init
    for init in sorted(PACKAGE.rglob("__init__.py"))
    if init.parent != PACKAGE
}


def sentence(init: Path) -> str:
    """The first line of the docstring that a room begins with."""
    found = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8")))
    assert found is not None, init
    return found.split("\n")[0]


def test_the_page_names_every_room_in_its_own_words(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Rooms")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w/]+)` \| (.*) \|$", table, re.M))
    data = rows.pop("data")
    assert data
    assert (PACKAGE / "data").is_dir()
    assert rows == {room: sentence(init) for room, init in ROOMS.items()}


def test_every_file_of_code_that_the_page_names_is_there(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:_\w+|cli|tests|data)/[\w/]+(?:\.py)?)`", page))
    assert len(named) > 5
    missing = [name for name in named if not ((PACKAGE / name).exists() or (root / name).exists())]
    assert missing == []


def test_no_module_lies_outside_a_room_but_those_that_the_page_names() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {
        *("__init__.py", "__main__.py", "_errors.py", "_home.py", "_public.py")
    }


def test_import_linter_has_every_room_in_one_row(root: Path) -> None:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [
        one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"
    ]
    listed = [name.strip() for row in contract["layers"] for name in row.split("|")]
    rooms = {f"tilefit.{room}" for room in ROOMS if "/" not in room}
    assert sorted(listed) == sorted({*rooms, "tilefit._errors", "tilefit._home", "tilefit._public"})
