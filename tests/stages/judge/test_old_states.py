"""States on disk: today's format is read as it was written once, an older one is refused with what to do."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.golden.states import FOLDER, JUDGED, METHODS, config_of, posts, state_file
from tests.property.streams import table
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.errors import DamagedError, StateError
from twinsieve.stages.formats import SECTIONS
from twinsieve.stages.judge.batch_sieve import BatchSieve, state_parameters
from twinsieve.stages.judge.state_bytes import read_state, write_state


@pytest.mark.parametrize("method", METHODS)
def test_a_state_of_the_format_that_is_read_goes_on(method: str) -> None:
    batch = posts()
    config = config_of(method)
    never_saved = BatchSieve(config)
    never_saved.judge(batch.slice(0, JUDGED))
    old = from_bytes(state_file(method).read_bytes(), config)
    again = from_bytes(to_bytes(old), config)
    expected = table(never_saved.judge(batch.slice(JUDGED, len(batch))))
    assert {row[0] for row in expected} >= ({0, 1} if method == "hamming" else {0, 1, 2})
    assert table(old.judge(batch.slice(JUDGED, len(batch)))) == expected
    assert table(again.judge(batch.slice(JUDGED, len(batch)))) == expected


def test_a_state_of_an_older_format_is_refused_with_what_to_do() -> None:
    saved = (FOLDER / "state_version_4_text.bin").read_bytes()
    expected = rf"format version 4, this program reads {SECTIONS.versions[-1]}.*begin with a new state"
    with pytest.raises(StateError, match=expected):
        from_bytes(saved, config_of("text"))


@pytest.mark.parametrize("rules", [np.zeros(9, np.uint8), np.zeros(8, np.int64), np.zeros((8, 1), np.uint8)])
def test_a_digest_of_the_rules_has_its_size_and_type(rules: NDArray[np.generic]) -> None:
    """A longer one was cut off, and its first bytes were called the rules that judged before."""
    config = config_of("text")
    scheme, parameters = config.scheme_id, state_parameters(config)
    sections = read_state(io.BytesIO(to_bytes(BatchSieve(config))), scheme, parameters)
    stream = io.BytesIO()
    write_state(stream, scheme, parameters, sections | {"near.rules": rules})
    with pytest.raises(DamagedError, match=r"near\.rules is "):
        from_bytes(stream.getvalue(), config)
