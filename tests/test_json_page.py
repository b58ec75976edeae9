"""docs/json.md names every key that `plan --json` prints, and the schema allows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import tilefit
from tilefit._render import json as _json
from tilefit._render.schema import schema

_FREE = ("params", "set", "pass_configs", "verdicts")  # keys of these are values


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in _FREE:
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("source", "device", "options"),
    [
        ("examples/gemm.py::matmul", "rtx-4090", {"num_stages": 4}),
        ("examples/gemm.py::matmul", "h100", {}),
        ("examples/alloc_scopes/ascend.py", "ascend-950pr_957b", {}),
    ],
)
def test_every_key_is_on_the_page_and_in_the_schema(
    root: Path, source: str, device: str, options: dict[str, Any]
) -> None:
    report = tilefit.plan(str(root / source), device, **options)
    body = json.loads(_json.render(report))
    assert [error.message for error in Draft202012Validator(schema("plan")).iter_errors(body)] == []
    printed = set(keys(body))
    assert {"verdict", "memories", "own_bytes"} <= printed
    page = (root / "docs" / "json.md").read_text(encoding="utf-8")
    plan = page.partition("## The others")[0]
    named = set(re.findall(r"`([a-z_]+)`", plan))
    assert printed - named == set()
