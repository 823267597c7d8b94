"""Files of a saved state that a stranger has changed, with right checksums: refused in one line, never a crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forged.places import KINDS, Place, small
from tests.service.conftest import scheme as scheme
from twinsieve.stages.judge.scheme import Scheme

pytestmark = pytest.mark.matrix

_EACH = 3
"""Changes of each kind; `python -m tests.forged --mutations 200` makes more of them."""


@pytest.fixture(params=list(KINDS))
def place(request: pytest.FixtureRequest, scheme: Scheme, tmp_path: Path) -> Iterator[tuple[str, Place]]:
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        yield request.param, Place(request.param, tmp_path, scheme)


def test_a_forged_file_is_named_and_what_is_left_judges(place: tuple[str, Place]) -> None:
    """A change that nobody can tell from what the program writes is used; nothing crashes, hangs, raises or takes
    memory, and after a refusal the verdicts are those of the older snapshot or the log."""
    name, made = place
    outcomes = [made.play(kind, seed) for kind in KINDS[name] for seed in range(_EACH)]
    assert not [outcome for outcome in outcomes if outcome.how not in ("refused", "used")]


def test_a_text_behind_the_end_of_a_segment_is_refused(scheme: Scheme, tmp_path: Path) -> None:
    """The kernels read it unchecked: every start ended by SIGSEGV."""
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        made = Place("index", tmp_path, scheme)
        outcome = made.play("texts", 0)
    assert outcome.how == "refused", outcome
    assert "not inside the texts" in outcome.said


def test_with_a_key_no_change_is_used_at_all(scheme: Scheme, tmp_path: Path) -> None:
    """Neither a file that is changed together with the snapshots that name it, nor the file alone."""
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        made = Place("index with a key", tmp_path, scheme)
        assert made.go_on() == [], "signed files are used"
        outcomes = [made.play(kind, 1) for kind in KINDS["index"]]
        outcomes += [made.play(kind, 2, alone=True) for kind in ("segment", "piece", "bloom", "keys")]
    assert [outcome for outcome in outcomes if outcome.how != "refused"] == []
