"""A list of shapes says what ``--set`` says, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tilefit._errors import InputError
from tilefit._kernel.request import Request
from tilefit._planning.shapes import parse_value, read_shapes


def shapes(folder: Path, text: str) -> tuple[dict[str, Any], ...]:
    path = folder / "shapes.csv"
    path.write_bytes(text.encode("utf-8"))
    return read_shapes(path)


def test_a_cell_is_what_the_same_text_is_after_set(tmp_path: Path) -> None:
    cells = ["1024", "True", "False", "None", "1.5", "inf", "fp16", "T.bfloat16", "full", "0x80"]
    names = [f"p{number}" for number in range(len(cells))]
    (row,) = shapes(tmp_path, f"{','.join(names)}\n{','.join(cells)}\n")
    assert list(row) == names
    expected = [1024, True, False, None, 1.5, float("inf"), "float16", "bfloat16", "full", 128]
    assert [(type(value), value) for value in row.values()] == [(type(v), v) for v in expected]
    assert list(row.values()) == [parse_value(cell) for cell in cells]


def test_false_is_no_truthy_text(tmp_path: Path) -> None:
    wide, narrow = shapes(tmp_path, "M,wide\n1024,True\n1024,False\n")
    assert (bool(wide["wide"]), bool(narrow["wide"])) == (True, False)


def test_the_mark_that_spreadsheets_write_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert shapes(tmp_path, "\ufeffM,N\n1,2\n") == ({"M": 1, "N": 2},)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the header has M twice: which column counts"):
        shapes(tmp_path, "M,N,M\n1,2,3\n")


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1.5, True, (1, 2), "x", None])
def test_every_value_travels_to_the_child(value: Any) -> None:
    asked = Request(kernel="k", target="sm_90a", params={"v": value})
    found = Request.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert (type(found.params["v"]), found.params["v"]) == (type(value), value)
