"""`tilefit schema`: what commands really print is valid, and what they do not print is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.stand_in import use
from tests.test_devices_live import SETS, document
from tests.test_plan_text import CASES, GEMM, RecordedSession
from tilefit._devices.comparison import read
from tilefit._devices.names import device_names
from tilefit._kernel.memory import Evidence, Memory, Owner
from tilefit._kernel.reasons import Align, Why
from tilefit._render.schema import schema
from tilefit._verdict.check import LaunchLimit, Status
from tilefit.cli import COMMANDS, main

PASTED = sorted((Path(__file__).parent / "data" / "pasted").glob("*.txt"))
FREE = ("params", "pass_configs")  # objects whose keys and values are the user's
Printed = Callable[..., dict[str, Any]]

# every kind of answer that a command has
PLAN = [
    *(arguments for _, arguments in CASES),
    (GEMM, "-d", "h100", "--ladder", "num_stages=2:4", "--suggest"),
    (GEMM, "-d", "rtx-5090", "--set", "num_stages=4", "--suggest"),
    (GEMM, "-d", "h100", "--blocks", "3", "--headroom", "1KiB"),
    (GEMM, "--list"),
    (GEMM, "-d", "all", "--estimate"),
    ("examples/alloc_scopes", "-d", "h100,ascend-910b1,mi300x", "--estimate"),
    ("examples/alloc_scopes/ascend.py", "-d", "ascend-950pr_957b", "--estimate"),
    ("tests/kernels/launch_limits.py", "-d", "h100", "--estimate"),
]
OTHERS = [
    ("footprint", "--tile", "128", "256"),
    ("footprint", "--tile", "128", "256", "--dtype", "float4_e2m1fn", "-d", "sm_100"),
    ("footprint", "--tile", "128", "64", "-d", "b200", "--memory", "tensor"),
    ("footprint", "--tile", "4096", "4096", "-d", "ascend-910b1", "--memory", "ub"),
    ("footprint",),
    ("budget", "-d", "rtx-4090"),
    ("budget", "--bm", "1024", "--capacity", "1KiB", "--sweep"),
    ("scopes",),
    ("devices",),
    ("devices", "h100"),
    ("devices", "--live"),
    ("occupancy", "-d", "h100", "--threads", "256", "--regs", "128", "--smem", "99328"),
    ("occupancy", "-d", "h100", "--threads", "4096"),
    ("occupancy", "-d", "mi300x", "--threads", "256"),
    (
        *("occupancy", "-d", "b200", "--threads", "384", "--regs", "168", "--role", "128:24"),
        *("--role", "256:240", "--tmem", "512", "--cluster", "2", "--carveout", "50"),
    ),
    ("explain", "it does not work"),
    *(("explain", "--log", str(path)) for path in PASTED),
]


@cache
def validator(command: str | None) -> Draft202012Validator:
    whole = schema(command)
    Draft202012Validator.check_schema(whole)
    return Draft202012Validator(whole)


def refuse(value: dict[str, Any], command: str) -> str | None:
    """Return why a document is not valid; None if it is."""
    error = next(validator(command).iter_errors(value), None)
    if error is None:
        return None
    while error.context:  # of several forms, the one that comes nearest
        error = max(error.context, key=lambda e: len(e.absolute_path))
    return f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, root: Path, capsys: pytest.CaptureFixture[str]
) -> Printed:
    """Run a command with ``--json`` on recorded kernels; return the document."""
    use(monkeypatch, RecordedSession)
    monkeypatch.chdir(root)

    def run(*arguments: str) -> dict[str, Any]:
        main([*arguments, "--json"])
        captured = capsys.readouterr()
        assert captured.err == ""
        found: dict[str, Any] = json.loads(captured.out)
        return found

    return run


@pytest.mark.parametrize("arguments", PLAN, ids=" ".join)
def test_what_plan_prints_is_valid(printed: Printed, arguments: tuple[str, ...]) -> None:
    assert refuse(printed("plan", *arguments), "plan") is None


@pytest.mark.parametrize("arguments", OTHERS, ids=" ".join)
def test_what_the_others_print_is_valid(printed: Printed, arguments: tuple[str, ...]) -> None:
    assert refuse(printed(*arguments), arguments[0]) is None


@pytest.mark.parametrize("name", SETS)
def test_what_is_attached_is_valid(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("tilefit._devices.attached.ask", lambda _: read(document(name)))
    found = printed("devices", "--live")
    assert found["attached"]
    assert refuse(found, "devices") is None


def test_an_explanation_with_a_plan_is_valid(printed: Printed) -> None:
    text = "out of resource: shared memory, Required: 131072, Hardware limit: 101376."
    found = printed("explain", text, "--kernel", GEMM, "-d", "rtx-5090", "--set", "num_stages=4")
    assert found["plan"]["results"]
    assert refuse(found, "explain") is None


# ---- what is not valid ------------------------------------------------------------------------


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of one object of each kind."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            if key not in FREE:
                yield from objects(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from objects(inner, (*path, number))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def mutants(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield documents with a key that is new, and with one that is missing or of another type."""
    kinds: dict[str, tuple[Any, ...]] = {}
    for path in objects(value):
        keys = ",".join(at(value, path)) if path else ""
        kinds.setdefault(f"{[k for k in path if isinstance(k, str)]} {keys}", path)
    for path in kinds.values():
        where = "/".join(map(str, path))
        changed = copy.deepcopy(value)
        at(changed, path)["colour"] = {}
        yield f"{where}: colour", changed
        for key in at(value, path):
            changed = copy.deepcopy(value)
            at(changed, path)[key] = {"colour": ["red"]}
            if key not in FREE:
                yield f"{where}/{key}: another type", changed


MUTATED = [
    ("plan", GEMM, "-d", "rtx-5090", "--set", "num_stages=4", "--ladder", "num_stages=2:4"),
    ("plan", "tests/kernels/launch_limits.py", "-d", "h100", "--estimate"),
    ("plan", GEMM, "--list"),
    *(arguments for arguments in OTHERS if arguments[0] in ("footprint", "budget", "occupancy")),
    ("devices", "h100"),
    ("devices", "ascend-910b1"),
    ("explain", "--log", str(PASTED[-1])),
]


@pytest.mark.parametrize("arguments", MUTATED, ids=" ".join)
def test_another_key_or_type_is_refused(printed: Printed, arguments: tuple[str, ...]) -> None:
    found = printed(*arguments)
    check = validator(arguments[0])
    assert check.is_valid(found)
    changed = list(mutants(found))
    assert len(changed) > 10
    assert [where for where, one in changed if check.is_valid(one)] == []


def test_a_missing_key_is_refused(printed: Printed) -> None:
    check = validator("plan")
    found = printed("plan", GEMM, "-d", "h100")
    for path in (("results", 0), ("results", 0, "memories", 0), ("results", 0, "buffers", 0), ()):
        for key in at(found, path):
            changed = copy.deepcopy(found)
            del at(changed, path)[key]
            assert not check.is_valid(changed), (path, key)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused(printed: Printed, version: object) -> None:
    for arguments in (("scopes",), ("plan", GEMM, "-d", "h100"), ("plan", GEMM, "--list")):
        changed = {**printed(*arguments), "schema_version": version}
        assert not validator(arguments[0]).is_valid(changed)


# ---- the schema itself ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        *(("memory", Memory), ("owner", Owner), ("evidence", Evidence), ("why", Why)),
        *(("align_why", Align), ("check_verdict", Status)),
    ],
)
def test_a_list_of_values_is_that_of_the_code(part: str, kind: type[Enum]) -> None:
    assert schema()["$defs"][part]["enum"] == [one.value for one in kind]


def test_the_limits_are_those_of_the_code() -> None:
    memory, launch = schema()["$defs"]["limit"]["anyOf"]
    assert memory == {"$ref": "#/$defs/memory"}
    assert launch["enum"] == [one.value for one in LaunchLimit]
    counted = schema()["$defs"]["verdict_counts"]["required"]
    assert counted == schema()["$defs"]["verdict"]["enum"]
    assert counted == [one.value for one in Status if one is not Status.NOT_ASKED]


def test_every_object_says_which_keys_it_has() -> None:
    """``additionalProperties`` is false, or says what the values are; a user's own are free."""

    def walk(part: Any, name: str) -> Iterator[str]:
        if isinstance(part, dict):
            if part.get("type") == "object" and "additionalProperties" not in part:
                yield name
            for key, inner in part.items():
                yield from walk(inner, key)
        elif isinstance(part, list):
            for inner in part:
                yield from walk(inner, name)

    assert set(walk(schema(), "")) == set(FREE)


def test_every_command_with_json_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {one["$ref"].rpartition("/")[2] for one in schema()["anyOf"]}
    assert commands == set(COMMANDS) - {"schema"}
    for command in sorted(commands):
        assert main(["schema", command]) == 0
        whole = json.loads(capsys.readouterr().out)
        text = json.dumps(whole)
        assert all(f'#/$defs/{name}"' in text for name in whole["$defs"])
        Draft202012Validator.check_schema(whole)
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


def test_a_command_that_prints_no_json_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "plam"]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "did you mean plan?" in line


def test_the_whole_takes_the_document_of_any_command(printed: Printed) -> None:
    check = validator(None)
    for arguments in (("scopes",), ("budget",), ("plan", GEMM, "-d", "h100"), ("footprint",)):
        assert check.is_valid(printed(*arguments))
    assert not check.is_valid({"schema_version": 1, "evidence": "declared"})


def test_devices_are_all_covered(printed: Printed) -> None:
    assert {one["name"] for one in printed("devices")["devices"]} >= set(device_names())
