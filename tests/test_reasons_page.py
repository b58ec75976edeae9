"""docs/reasons.md is the table of reason codes, made from it and compared here."""

from __future__ import annotations

from pathlib import Path

from tilefit._kernel.reasons import REASONS, page

ROOT = Path(__file__).parent.parent


def test_the_page_is_made_from_the_table() -> None:
    assert (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8") == page()


def test_every_code_has_a_sentence() -> None:
    for code, sentence in REASONS.items():
        assert code == code.casefold()
        assert len(sentence.split()) >= 4
