"""How a report shows itself: one line in a prompt, the map or the table in a notebook."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tilefit
from tests.stand_in import use
from tests.test_plan_text import GEMM, RecordedSession


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    use(monkeypatch, RecordedSession)
    monkeypatch.chdir(root)


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_repr_is_one_short_line() -> None:
    report = tilefit.plan(GEMM, ["rtx-5090", "a100", "h100", "b200"], num_stages=4)
    assert repr(report) == (
        "<Report: 1 does-not-fit, 3 fits; matmul on rtx-5090 does-not-fit; matmul on a100 fits; "
        "matmul on h100 fits; ...>"
    )


def test_a_report_without_results_has_a_repr() -> None:
    assert repr(tilefit.Report(())) == "<Report: no results>"


def test_what_plan_returns_is_the_public_report() -> None:
    report = tilefit.plan(GEMM, "h100")
    assert type(report) is tilefit.Report
    assert all(type(one) is tilefit.Result for one in report.results)
    assert report.results[0].status is tilefit.Status.FITS


@pytest.mark.parametrize("devices", [["h100"], ["h100", "a100"]])
def test_a_notebook_shows_what_the_terminal_does(
    devices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from tilefit.cli import main

    page = Page(tilefit.plan(GEMM, devices)._repr_html_())
    main(["plan", GEMM, "-d", ",".join(devices)])
    assert page.text.rstrip() == capsys.readouterr().out.rstrip()
    assert page.tags <= {"pre", "span"}


def test_names_of_a_users_file_are_text_in_a_notebook() -> None:
    bad = "<script>alert(1)</script>"
    report = tilefit.plan(GEMM, "h100")
    (one,) = report.results
    assert one.lowered is not None
    buffers = tuple(replace(b, name=f"{bad}&{b.name}") for b in one.lowered.buffers)
    one = replace(one, kernel=bad, lowered=replace(one.lowered, buffers=buffers))
    html = tilefit.Report((one,))._repr_html_()
    assert "<script" not in html
    assert bad in Page(html).text
