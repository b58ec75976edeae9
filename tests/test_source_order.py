"""The map of the source frontend's modules is whole, and its order is the order of imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tilefit._frontends import source

FOLDER = Path(source.__file__).parent
ORDER = re.findall(r"^    (\w+)  ", source.__doc__ or "", re.MULTILINE)


def test_the_map_names_every_module_once() -> None:
    modules = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    assert sorted(ORDER) == modules


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_from_those_below_it(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    imported = {
        node.module.removeprefix(f"{source.__name__}.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        if node.module.startswith(f"{source.__name__}.")
    }
    assert imported <= {*ORDER[ORDER.index(name) + 1 :]}


def test_no_class_of_the_folder_extends_another() -> None:
    """A rule is a function in one module, not a layer of a chain of classes."""
    classes = {
        node.name: {ast.unparse(base) for base in node.bases}
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert not [name for name, bases in classes.items() if bases & {*classes}]
