"""What `plan` prints, as text and as JSON, from recorded kernels: no toolchain is needed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record_kernels import RECORDINGS, ROOT, recorded
from tests.stand_in import StandIn, use
from tests.values import KIB, buffer, kernel, tmem
from tilefit._devices.names import device
from tilefit._errors import RefusedError
from tilefit._frontends.tilelang.frontend import TILELANG
from tilefit._kernel.kernel import Kernel, Listing, Parameter
from tilefit._kernel.memory import Evidence
from tilefit._kernel.request import Request
from tilefit._placement.place import place
from tilefit._planning.report import Report, Result, Stages
from tilefit._render import json as _json
from tilefit._render.text import map as _text
from tilefit._verdict.judge import Status, judge
from tilefit.cli import main

WIDTH = 80
# the contract of docs/json.md, by hand: a key that goes missing breaks somebody's script
TOP = {"schema_version", "evidence", "results"}
RESULT = {
    *("file", "kernel", "params", "device", "target", "toolchain", "verdict", "reason"),
    *("silent_overflow", "built", "matrix_instructions", "threads", "threads_declared", "roles"),
    *("registers_per_thread", "spill_bytes", "limits", "memories", "buffers", "max_stages"),
    *("ladder", "occupancy", "suggestions"),
}
LIMIT = {"name", "value", "limit", "verdict"}
MEMORY = {
    *("memory", "owner", "dynamic_bytes", "static_bytes", "total_bytes", "limit_bytes"),
    *("margin_bytes", "verdict", "evidence"),
}
BUFFER = {
    *("name", "scope", "memory", "shape", "dtype", "copies", "bytes", "offset", "live"),
    *("origin", "why"),
}
SUGGESTION = {
    *("set", "pass_configs", "total_bytes", "margin_bytes", "blocks_per_core", "verdict"),
}


class RecordedSession(StandIn):
    """Stands for the child process that has TileLang: it knows what was recorded."""

    toolchain, version = TILELANG, "0.1.15"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.known = {
            (r.kernel, r.target, tuple(recorded(r.path).params)): recorded(r.path)
            for r in RECORDINGS
            if (ROOT / r.file).resolve() == path.resolve()
        }

    def load(self, _: object = ()) -> tuple[Listing, ...]:
        defaults = {name: dict(params) for name, _, params in self.known}
        return tuple(
            Listing(
                name=name,
                style="factory",
                line=None,
                parameters=tuple(
                    Parameter(name=key, default=value, required=False)
                    for key, value in {**params, **THREE.get(name, {})}.items()
                ),
            )
            for name, params in defaults.items()
        )

    def read(self, request: Request) -> tuple[Kernel, ...]:
        (listing,) = [item for item in self.load() if item.name == request.kernel]
        given = {**{p.name: p.default for p in listing.parameters}, **request.params}
        try:
            return (self.known[request.kernel, request.target, tuple(given.items())],)
        except KeyError:
            raise RefusedError("nobody recorded this") from None


THREE = {"matmul": {"num_stages": 3}}
Plan = Callable[..., tuple[int, str]]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Run ``tilefit plan`` on recorded kernels; return its exit code and standard output."""
    use(monkeypatch, RecordedSession)
    monkeypatch.chdir(ROOT)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def run(*arguments: str) -> tuple[int, str]:
        code = main(["plan", *arguments])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return run


GEMM = "examples/gemm.py::matmul"
LIMITS = "tests/kernels/launch_limits.py"
# one device for every target of the recordings, and what comes out
CASES = [
    (0, (GEMM, "-d", "h100")),
    (0, (GEMM, "-d", "a100", "--set", "num_stages=4")),
    (0, (GEMM, "-d", "b200")),
    (0, (GEMM, "-d", "rtx-5090")),
    (1, (GEMM, "-d", "rtx-5090", "--set", "num_stages=4")),
    (1, (GEMM, "-d", "v100")),
    (0, (GEMM, "-d", "rtx-5090,rtx-5080,gh200,a100")),
    (1, (GEMM, "-d", "rtx-5090,a100", "--set", "num_stages=4")),
    (1, (f"{LIMITS}::many_threads", "-d", "h100")),
    (1, (f"{LIMITS}::cluster", "-d", "h100")),
    (2, (f"{LIMITS}::no_iterations", "-d", "h100")),
    (0, (f"{LIMITS}::dynamic_rows", "-d", "h100")),
    (0, ("examples/alloc_scopes/scopes.py", "-d", "h100")),
    (0, ("examples/alloc_scopes/tmem.py", "-d", "b200")),
]
every_case = pytest.mark.parametrize(
    ("code", "arguments"), CASES, ids=lambda v: " ".join(v) if isinstance(v, tuple) else None
)


# ---- the page as a whole -----------------------------------------------------------------------


@every_case
def test_a_page_is_80_columns_wide(plan: Plan, code: int, arguments: tuple[str, ...]) -> None:
    """But for the command to paste, which must not be broken."""
    found, text = plan(*arguments)
    assert found == code
    wide = [line for line in text.splitlines() if len(line) > WIDTH]
    assert [line for line in wide if not line.startswith("  tilefit plan ")] == []
    assert not [line for line in text.splitlines() if line != line.rstrip()]


@every_case
def test_a_pipe_gets_no_escapes(plan: Plan, code: int, arguments: tuple[str, ...]) -> None:
    assert "\x1b" not in plan(*arguments)[1]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def colours(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], str]:
    """Return the colours that a terminal gets (codes 30 to 37, 90 to 97) and the plain text."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    plan(GEMM, "-d", "rtx-5090", "--set", "num_stages=4")
    codes = {c for m in re.findall(r"\x1b\[([\d;]*)m", screen.getvalue()) for c in m.split(";")}
    return codes & {str(c) for c in (*range(30, 38), *range(90, 98))}, screen.getvalue()


def test_a_terminal_gets_colours(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    found, text = colours(plan, monkeypatch)
    assert "31" in found  # red: it does not fit
    monkeypatch.undo()
    assert "DOES NOT FIT" in text


def test_no_color_is_respected_on_a_terminal(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    found, text = colours(plan, monkeypatch)
    assert found == set()
    assert "DOES NOT FIT" in text


# ---- one device ---------------------------------------------------------------------------------


def number(text: str) -> int:
    return int(text.replace(",", ""))


def parts_and_total(text: str) -> tuple[int, int]:
    """Return the sum of the rows of the shared memory table, and the total that it ends with."""
    table = text.split("\nshared ", 1)[1].split("\n")[1:]
    rows = [line for line in table if re.match(r" +[\d,]+  \w", line)]
    (total,) = [line for line in rows if "launch total" in line]
    before = rows[: rows.index(total)]
    return sum(number(line.split()[0]) for line in before), number(total.split()[0])


@pytest.mark.parametrize(
    ("arguments", "total"),
    [
        # stages x (128x64 + 64x128) fp16, and 1,024 for the barriers where warps specialise
        ((GEMM, "-d", "a100"), 3 * 32 * KIB),
        ((GEMM, "-d", "h100", "--set", "num_stages=2"), 2 * 32 * KIB + KIB),
        ((GEMM, "-d", "rtx-5090", "--set", "num_stages=4"), 4 * 32 * KIB + KIB),
        ((f"{LIMITS}::cluster", "-d", "h100"), 128 * 128 * 2),
        ((f"{LIMITS}::no_iterations", "-d", "h100"), 0),
        (("examples/alloc_scopes/scopes.py", "-d", "h100"), 2 * (128 * 32 + 32 * 128) * 2 + KIB),
        (("examples/alloc_scopes/tmem.py", "-d", "b200"), 2 * (128 * 64 + 128 * 64) * 2 + KIB),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_the_rows_add_up_to_the_launch_total(
    plan: Plan, arguments: tuple[str, ...], total: int
) -> None:
    assert parts_and_total(plan(*arguments)[1]) == (total, total)


def test_what_fits_says_how_much_is_spare_and_how_many_stages_fit(plan: Plan) -> None:
    _, text = plan(GEMM, "-d", "rtx-5090")
    lines = text.splitlines()
    kernel_name, device_and_target, toolchain, evidence = lines[0].split("   ")
    assert (kernel_name, toolchain, evidence) == ("gemm.py::matmul", "tilelang 0.1.15", "modelled")
    assert device_and_target.endswith(" sm_120a")
    # 99 KiB less 3 stages of 32 KiB and 1 KiB
    assert lines[1].split("   ") == [
        *("FITS", "shared 99,328 B", f"limit {99 * KIB:,} B", f"{2 * KIB:,} B spare")
    ]
    assert (
        f"num_stages up to 3: {97 * KIB:,} B; 4 needs {129 * KIB:,} B (both compiled)" in lines[-1]
    )
    assert "Next" not in text


def test_the_lines_of_the_map_name_where_each_buffer_is_written(plan: Plan) -> None:
    _, text = plan(GEMM, "-d", "h100")
    source = (ROOT / "examples" / "gemm.py").read_text(encoding="utf-8").splitlines()
    for name in ("A_s", "B_s", "C_l"):
        (row,) = [line for line in text.splitlines() if f" {name} " in line]
        assert f"{name} = T.alloc" in source[int(row.rpartition(":")[2]) - 1]


def test_what_does_not_fit_ends_with_a_command_that_does(plan: Plan) -> None:
    _, text = plan(GEMM, "-d", "rtx-5090", "--set", "num_stages=4")
    lines = text.splitlines()
    # 4 x 32 KiB and 1 KiB are 129 of 99 KiB
    assert lines[1] == "DOES NOT FIT   shared 132,096 B, limit 101,376 B: over by 30,720 B"
    assert lines[-2] == "Next (compiled here, fits):"
    command = lines[-1].split()
    assert command == ["tilefit", "plan", GEMM, "-d", "rtx-5090", "--set", "num_stages=3"]
    assert plan(*command[2:])[0] == 0


def test_a_launch_that_fails_is_told_beside_memory_that_fits(plan: Plan) -> None:
    _, text = plan(f"{LIMITS}::many_threads", "-d", "h100")
    folded = " ".join(text.split())
    assert "DOES NOT FIT threads 1,152, limit 1,024: over by 128" in folded
    assert "1,152 of 1,024 threads (1,024 written)" in folded
    assert " 43 % of 232,448 B" in folded  # 99,328 of them
    # no count of stages changes that, so the command shows what else there is to set
    assert folded.endswith(
        f"Next (what can be changed): tilefit plan {LIMITS}::many_threads -d h100 --list"
    )


def test_a_cluster_above_the_portable_8_says_so_where_it_fits() -> None:
    value = kernel(grid=(64, 1, 1), cluster=(16, 1, 1))
    text = _text.render(Report((result(value),))).plain
    assert text.splitlines()[1].startswith("FITS")
    assert "above the portable 8" in text
    assert "cluster 16 x 1 x 1" in text


def test_tensor_memory_is_shown_in_columns(plan: Plan) -> None:
    _, text = plan("examples/alloc_scopes/tmem.py", "-d", "b200")
    (line,) = [line for line in text.splitlines() if line.startswith("tensor")]
    assert line.endswith("25 % of 512 columns")  # a 128x128 fp32 tile takes 128


def test_memory_that_the_device_does_not_have() -> None:
    text = _text.render(Report((result(kernel(tmem("C_t", 128))),))).plain
    assert "h100 has no tensor memory" in text
    assert "none on this device" in text


def test_bytes_that_are_not_known_are_a_question_mark() -> None:
    text = _text.render(Report((result(kernel(buffer("A_s", None), dynamic_bytes=None)),))).plain
    assert "shared  ? of 232,448 B" in text
    assert "None" not in text
    assert "launch total" not in text


def test_several_functions_of_one_kernel_are_named_and_kept_apart() -> None:
    first, second = kernel(), replace(kernel(), function="made_kernel_1")
    blocks = _text.render(Report((result(first), result(second)))).plain.split("\n\n")
    titles = [block.splitlines()[0] for block in blocks if "::" in block]
    assert len(titles) == 2
    assert all(title.startswith("made.py::made") for title in titles)
    assert "made_kernel_1" in titles[1]


# ---- percent ------------------------------------------------------------------------------------


def result(value: Kernel, name: str = "h100", stages: Stages | None = None) -> Result:
    """The result for a kernel made by hand."""
    on = device(name)
    uses = place(value)
    found = judge(value, uses, on)
    return Result(
        file="made.py",
        kernel=value.name,
        params=value.params,
        device=on.name,
        device_title=on.title,
        arch=on.arch,
        target=value.target,
        toolchain=value.toolchain,
        toolchain_version=value.toolchain_version,
        status=found.status,
        reason=found.reason,
        lowered=value,
        uses=uses,
        memories=found.memories,
        limits=found.limits,
        stages=stages or Stages(parameter=None, current=None, largest=None, reason="none"),
        evidence=Evidence.COMPILED,
    )


def percent(total: int) -> int:
    text = _text.render(Report((result(kernel(dynamic_bytes=total)),))).plain
    (found,) = re.findall(r"^shared .* (\d+) % of 232,448 B$", text, re.MULTILINE)
    return int(found)


@pytest.mark.parametrize(
    ("total", "shown"),
    [
        (0, 0),
        (227 * KIB // 2, 50),
        (227 * KIB - 1, 99),
        (227 * KIB, 100),
        (227 * KIB + 1, 101),
        (2 * 227 * KIB, 200),
    ],
)
def test_percent_near_the_limit(total: int, shown: int) -> None:
    assert percent(total) == shown


@given(st.one_of(st.integers(0, 900 * KIB), st.integers(226 * KIB, 228 * KIB)))
def test_100_percent_means_exactly_full(total: int) -> None:
    most = 227 * KIB
    shown = percent(total)
    assert (shown == 100) == (total == most)
    assert (shown > 100) == (total > most)
    assert abs(shown - 100 * total / most) <= 1


# ---- several devices ----------------------------------------------------------------------------


def test_several_devices_are_a_table_in_the_order_asked_for(plan: Plan) -> None:
    code, text = plan(GEMM, "-d", "rtx-5090,rtx-5080")
    lines = text.splitlines()
    assert code == 0
    assert lines[1].split() == [
        *("device", "target", "thr", "launch", "limit", "margin", "stages", "verdict")
    ]
    row = ["sm_120a", "256", "99,328", "101,376", "2,048", "3", "fits"]
    found = [line.split()[:8] for line in lines[2:4]]
    assert [[*cells[:7], cells[7].rstrip(",")] for cells in found] == [
        ["rtx-5090", *row],
        ["rtx-5080", *row],
    ]
    assert "2 of 2 fit. Stages that fit everywhere: 3" in lines


@pytest.mark.parametrize(
    ("largest", "line"),
    [((7, 3), "Stages that fit everywhere: 3"), ((7, None), "2 of 2 fit.")],
)
def test_stages_that_fit_everywhere_are_the_fewest(
    largest: tuple[int | None, ...], line: str
) -> None:
    results = tuple(
        result(kernel(), name, Stages(parameter="num_stages", current=2, largest=count))
        for name, count in zip(("h100", "a100"), largest, strict=True)
    )
    (found,) = [row for row in _text.render(Report(results)).plain.splitlines() if " fit." in row]
    assert found.endswith(line)


def test_the_table_numbers_the_reasons(plan: Plan) -> None:
    code, text = plan(GEMM, "-d", "a100,rtx-5090,v100", "--set", "num_stages=4")
    lines = text.splitlines()
    assert code == 1
    assert "  fits" in lines[2]
    # 163 KiB less 4 x 32
    assert f"{35 * KIB:,}" in lines[2]
    assert "  DOES NOT FIT" in lines[3]
    assert "(1)" in lines[3]
    assert f"{-30 * KIB:,}" in lines[3]
    assert lines[4].split()[:9] == [*("v100", "sm_70"), *"-----", *("CANNOT", "LOWER")]
    assert "(2)" in lines[4]
    assert "(1) shared 132,096 B, limit 101,376 B: over by 30,720 B" in lines
    assert "(2) with num_stages=4: nobody recorded this" in lines
    assert "1 of 3 fit." in lines
    assert lines[-1].strip() == f"tilefit plan {GEMM} -d rtx-5090 --set num_stages=3"


# ---- JSON ---------------------------------------------------------------------------------------


@every_case
def test_json_has_every_key_of_the_contract(
    plan: Plan, code: int, arguments: tuple[str, ...]
) -> None:
    found, text = plan(*arguments, "--json")
    assert found == code
    body = json.loads(text)
    assert body.keys() >= TOP
    assert body["schema_version"] == 1
    assert body["results"]
    for item in body["results"]:
        assert item.keys() >= RESULT
        assert item["toolchain"] == {"name": "tilelang", "version": "0.1.15"}
        for key, rows in (
            *(("limits", LIMIT), ("memories", MEMORY), ("buffers", BUFFER)),
            ("suggestions", SUGGESTION),
        ):
            assert all(row.keys() >= rows for row in item[key])
        lowered = item["verdict"] != "cannot-lower"
        assert bool(item["memories"]) == bool(item["limits"]) == bool(item["buffers"]) == lowered
        assert item["reason"] if item["verdict"] != "fits" else True


def test_json_gives_the_numbers_of_the_plan(plan: Plan) -> None:
    _, text = plan(GEMM, "-d", "rtx-5090", "--set", "num_stages=4", "--json")
    body = json.loads(text)
    (item,) = body["results"]
    assert (item["file"], item["kernel"]) == ("examples/gemm.py", "matmul")
    assert (item["device"], item["target"]) == ("rtx-5090", "sm_120a")
    assert (item["params"]["num_stages"], item["params"]["block_K"]) == (4, 64)
    assert (item["threads_declared"], item["threads"]) == (128, 256)
    assert item["grid"] == [4096 // 128, 4096 // 128, 1]
    (memory,) = item["memories"]
    assert (memory["memory"], memory["owner"], memory["evidence"]) == (
        "shared",
        "block",
        "modelled",
    )
    assert memory["dynamic_bytes"] == 4 * 32 * KIB
    # 4 full and 4 empty barriers of 8 bytes
    assert (memory["static_raw_bytes"], memory["static_bytes"]) == (2 * 4 * 8, KIB)
    assert memory["total_bytes"] == 129 * KIB
    assert (memory["limit_bytes"], memory["margin_bytes"]) == (99 * KIB, (99 - 129) * KIB)
    assert (item["max_stages"], item["max_stages_bytes"]) == (3, 97 * KIB)
    assert item["next_stage_bytes"] == 129 * KIB
    (edit,) = [e for e in item["suggestions"] if e["set"] == {"num_stages": 3}]
    assert edit["verdict"] == "fits"
    assert (edit["total_bytes"], edit["margin_bytes"]) == (97 * KIB, 2 * KIB)
    assert body["evidence"] == item["evidence"] == "modelled"


def test_json_parts_sum_to_the_whole(plan: Plan) -> None:
    _, text = plan(GEMM, "-d", "a100,rtx-5090,h100", "--json")
    for item in json.loads(text)["results"]:
        (memory,) = item["memories"]
        rows = [b for b in item["buffers"] if b["memory"] == "shared"]
        moving = [b["bytes"] for b in rows if not b["static"]]
        fixed = [b["bytes"] for b in rows if b["static"]]
        assert sum(moving) == memory["dynamic_bytes"]
        assert sum(fixed) == memory["static_raw_bytes"]
        assert memory["dynamic_bytes"] + memory["static_bytes"] == memory["total_bytes"]
        assert memory["limit_bytes"] - memory["total_bytes"] == memory["margin_bytes"]


def test_json_of_a_kernel_that_cannot_be_lowered_keeps_its_parameters(plan: Plan) -> None:
    _, text = plan(GEMM, "-d", "v100", "--json")
    (item,) = json.loads(text)["results"]
    assert (item["verdict"], item["reason"]) == ("cannot-lower", "nobody recorded this")
    assert (item["target"], item["max_stages"]) == ("sm_70", None)
    assert (item["params"]["num_stages"], item["params"]["M"]) == (3, 4096)


def test_json_is_as_weak_as_its_weakest_result() -> None:
    modelled = replace(result(kernel()), evidence=Evidence.MODELLED)
    body = json.loads(_json.render(Report((result(kernel()), modelled, result(kernel())))))
    assert body["evidence"] == "modelled"
    assert [item["evidence"] for item in body["results"]] == ["compiled", "modelled", "compiled"]


# ---- the exit code ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["fits"], 0),
        (["fits", "fits"], 0),
        (["fits", "does-not-fit"], 1),
        (["cannot-lower"], 1),
        (["unknown", "fits"], 2),
        (["unknown", "does-not-fit"], 1),
        (["cannot-lower", "unknown", "fits"], 1),
    ],
)
def test_the_exit_code_of_a_report(statuses: list[str], code: int) -> None:
    report = Report(tuple(replace(result(kernel()), status=Status(s)) for s in statuses))
    assert report.exit_code == code
    assert report.fits == (set(statuses) == {"fits"})


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-d", "rtx-5090"), 1),
        (("-d", "rtx-5090", "--fail-on", "none"), 0),
        (("-d", "rtx-5090,rtx-5080", "--fail-on", "any"), 1),
        (("-d", "nvidia"), 0),  # a question about everything there is, not a gate
        (("-d", "NVIDIA", "--fail-on", "any"), 1),
        (("-d", "rtx-5090", "-d", "nvidia"), 0),
    ],
)
def test_a_vendor_gates_only_when_told_to(
    plan: Plan, arguments: tuple[str, ...], code: int
) -> None:
    assert plan(GEMM, "--set", "num_stages=4", *arguments)[0] == code
