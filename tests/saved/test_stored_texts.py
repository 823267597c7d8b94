"""What waits to be written takes no more memory than its record needs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.property.streams import batch_of
from tests.stored import storage_at
from twinsieve.api.saved_sieve import HeldMessages
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.kept_file import record_of
from twinsieve.pipeline.saved.stored_texts import stored_texts
from twinsieve.stages.contract import STORED_LENGTH, NearConfig, SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages

_LENGTHS = st.one_of(
    st.integers(9, 40),
    st.sampled_from([STORED_LENGTH - 1, STORED_LENGTH, STORED_LENGTH + 1, 3 * STORED_LENGTH]),
)


def _kept(lengths: list[int]) -> KeptMessages:
    """Messages of these lengths, no two alike."""
    texts = [
        "".join(chr(0x4E00 + (97 * row + 13 * at) % 9_000) for at in range(n))
        for row, n in enumerate(lengths)
    ]
    sieve = BatchSieve(SieveConfig(near=NearConfig(method="none")))
    got: list[KeptMessages] = []
    sieve.on_kept = lambda _, messages: got.append(messages)
    sieve.judge(batch_of([(text, None, 0, 0) for text in texts]))
    return KeptMessages.concat(got)


@given(st.lists(_LENGTHS, min_size=1, max_size=8))
def test_records_are_the_same_without_the_ends_of_long_bodies(lengths: list[int]) -> None:
    messages = _kept(lengths)
    cut = stored_texts(messages)
    assert record_of(0, cut) == record_of(0, messages)
    assert np.diff(cut.starts).tolist() == [min(n, STORED_LENGTH) for n in np.diff(messages.starts).tolist()]
    assert (cut is messages) == (max(lengths) <= STORED_LENGTH)
    tail = messages.slice(len(messages) // 2, len(messages))
    assert record_of(0, stored_texts(tail)) == record_of(0, tail)


def test_long_bodies_are_not_held_until_they_are_written(tmp_path: Path) -> None:
    messages = _kept([50 * STORED_LENGTH, 20, 30 * STORED_LENGTH])
    assert len(messages.chars) > 80 * STORED_LENGTH
    held = HeldMessages(0, 100)
    held.take(0, messages)
    ((_, waiting),) = held.runs
    assert len(waiting.chars) == len(waiting.word_starts) == 2 * STORED_LENGTH + 20
    with closing(Journal(storage_at(str(tmp_path)), "", 100)) as journal:
        journal.take(0, messages)
        ((_, waiting),) = journal._gathered
        assert len(waiting.chars) == len(waiting.word_starts) == 2 * STORED_LENGTH + 20
