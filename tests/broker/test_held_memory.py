"""What hostile input takes of memory, measured, is no more than `lint` says; all of it comes out, without a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.held_memory import CASES, measure, settings_of
from twinsieve.pipeline.sizing.process_memory import held_by

pytestmark = [pytest.mark.needs("broker"), pytest.mark.minutes]


@pytest.mark.parametrize("case", CASES)
def test_a_process_holds_no_more_than_lint_says(bootstrap: str, tmp_path: Path, case: str) -> None:
    settings = settings_of(bootstrap, tmp_path, pending_bytes="64MiB")
    growth, _, _, errors = measure(settings, case)
    assert errors == []
    assert growth <= held_by(settings, 1).process
