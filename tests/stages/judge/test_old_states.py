"""States on disk: today's format is read as it was written once, an older one is refused with what to do."""

from __future__ import annotations

import pytest

from tests.golden.states import FOLDER, JUDGED, METHODS, config_of, posts, state_file
from tests.property.streams import table
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.state import FORMAT_VERSION


@pytest.mark.parametrize("window", [1_000, 50_000])
@pytest.mark.parametrize("method", METHODS)
def test_a_state_of_the_format_that_is_read_goes_on(method: str, window: int) -> None:
    batch = posts()
    config = config_of(method, window)
    never_saved = BatchSieve(config)
    never_saved.judge(batch.slice(0, JUDGED))
    old = BatchSieve.from_bytes(state_file(method).read_bytes(), config)
    again = BatchSieve.from_bytes(old.to_bytes(), config)
    expected = table(never_saved.judge(batch.slice(JUDGED, len(batch))))
    assert {row[0] for row in expected} >= ({0, 1} if method == "hamming" else {0, 1, 2})
    assert table(old.judge(batch.slice(JUDGED, len(batch)))) == expected
    assert table(again.judge(batch.slice(JUDGED, len(batch)))) == expected


def test_a_state_of_an_older_format_is_refused_with_what_to_do() -> None:
    saved = (FOLDER / "state_version_4_text.bin").read_bytes()
    expected = rf"format version 4, this program reads {FORMAT_VERSION}.*begin with a new state"
    with pytest.raises(StateError, match=expected):
        BatchSieve.from_bytes(saved, config_of("text", 1_000))
