"""A Kernel travels from the worker as JSON and comes back as the same value."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.record_kernels import RECORDINGS, Recording, recorded
from tests.values import buffer, kernel
from tilefit._errors import InputError
from tilefit._kernel.kernel import (
    KERNEL_VERSION,
    Buffer,
    Kernel,
    Launch,
    Listing,
    Loop,
    Parameter,
)
from tilefit._kernel.memory import Evidence, Memory, Owner


def whole(kind: type[Any], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw a dataclass with every field, those with a default too."""
    inferred = {field.name: ... for field in fields(kind)}
    return st.builds(kind, **{**inferred, **known})


def tuples(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=3).map(tuple)


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
buffers = whole(Buffer)
kernels = whole(
    Kernel,
    params=tuples(st.tuples(st.text(), plain_values)),
    launch=whole(Launch),
    buffers=tuples(buffers),
    loops=tuples(whole(Loop)),
)


def through_json(value: Kernel) -> Kernel:
    return Kernel.from_dict(json.loads(json.dumps(value.to_dict())))


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(kernels)
def test_a_kernel_comes_back_equal(value: Kernel) -> None:
    assert through_json(value) == value


@given(buffers)
def test_enums_come_back_as_enums(value: Buffer) -> None:
    """Equality does not show this: ``Memory.SHARED == "shared"``."""
    (back,) = through_json(kernel(value)).buffers
    assert (type(back.memory), type(back.owner), type(back.evidence)) == (Memory, Owner, Evidence)
    assert hash(back) == hash(value)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.path.stem)
def test_a_recorded_kernel_comes_back_equal(recording: Recording) -> None:
    value = recorded(recording.path)
    assert through_json(value) == value


def test_a_key_that_no_field_has_is_an_error() -> None:
    data = kernel().to_dict()
    with pytest.raises(TypeError, match="colour"):
        Kernel.from_dict({**data, "colour": "red"})


@pytest.mark.parametrize("version", [None, 0, KERNEL_VERSION + 1, str(KERNEL_VERSION)])
def test_another_version_is_refused_in_one_line(version: object) -> None:
    data = kernel().to_dict()
    assert data["schema_version"] == KERNEL_VERSION
    with pytest.raises(InputError, match=f"schema_version {version!r}, this tilefit reads") as told:
        Kernel.from_dict({**data, "schema_version": version})
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("key", ["params", "launch", "buffers", "loops", "notes"])
def test_a_missing_key_is_an_error(key: str) -> None:
    data = kernel().to_dict()
    del data[key]
    with pytest.raises(KeyError, match=key):
        Kernel.from_dict(data)


def test_a_memory_that_does_not_exist_is_an_error() -> None:
    data = kernel(buffer("A_s", 16)).to_dict()
    data["buffers"][0]["memory"] = "scratch"
    with pytest.raises(ValueError, match="scratch"):
        Kernel.from_dict(data)


def test_a_listing_comes_back_with_its_parameters() -> None:
    rows = Parameter(name="rows", default=None, required=True)
    dtype = Parameter(name="dtype", default="float16", required=False)
    written = {
        "name": "plain",
        "style": "factory",
        "line": 7,
        "parameters": [
            {"name": "rows", "default": None, "required": True},
            {"name": "dtype", "default": "float16", "required": False},
        ],
    }
    back = Listing.from_dict(json.loads(json.dumps(written)))
    assert back == Listing(name="plain", style="factory", line=7, parameters=(rows, dtype))
