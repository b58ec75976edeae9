"""The recorded kernels are what the pinned TileLang says today."""

from __future__ import annotations

import pytest

from tests.record_kernels import FIXTURES, RECORDINGS, TILELANG, lowered, recorded


def test_every_recording_has_its_fixture_and_no_fixture_is_left_over() -> None:
    assert {path.name for path in FIXTURES.iterdir()} == {r.path.name for r in RECORDINGS}


@pytest.mark.tilelang
def test_lowering_again_gives_the_recorded_kernels() -> None:
    """Where this fails after a change on purpose: ``python -m tests.record_kernels``."""
    for recording, kernel in lowered(RECORDINGS):
        if kernel.toolchain_version != TILELANG:
            pytest.skip(f"recorded with TileLang {TILELANG}, here is {kernel.toolchain_version}")
        # as dictionaries, so that a failure names the field
        assert kernel.to_dict() == recorded(recording.path).to_dict(), recording.path.name
