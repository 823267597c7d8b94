"""`HeldMessages` against a list of all that it was given."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generated_posts import generate
from tests.property.streams import batch_of
from twinsieve.api import saved_sieve
from twinsieve.api.saved_sieve import HeldMessages
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages

_RUNS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 0, 5]), st.integers(1, 4)), max_size=40)
"""(messages that are left out before a run, messages in it)"""


@pytest.fixture(scope="module")
def kept() -> KeptMessages:
    """Kept messages, each with its number as its position."""
    got: list[KeptMessages] = []
    sieve = BatchSieve(SieveConfig())
    sieve.on_kept = lambda first, messages: got.append(messages)
    sieve.judge(batch_of([(post["text"], number, 0, 0) for number, post in enumerate(generate(900, seed=3))]))
    messages = KeptMessages.concat(got)
    messages.positions = np.arange(len(messages))
    assert len(messages) > 40 * 9
    return messages


@given(runs=_RUNS, limit=st.integers(1, 60))
def test_runs_are_held_up_to_the_limit(kept: KeptMessages, runs: list[tuple[int, int]], limit: int) -> None:
    """A gap shows that the window has passed everything before it, so that only what follows is held."""
    expected: list[int] = []
    is_complete = True
    given_runs = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_sieve, "_LOOSE", 3)
        held = HeldMessages(0, limit)
        at = 0
        for left_out, count in runs:
            if left_out:
                expected, given_runs = [], 0
            at += left_out
            given_runs += 1
            held.take(at, kept.slice(at, at + count))
            expected += range(at, at + count)
            at += count
            is_complete = is_complete and len(expected) <= limit
            assert held.is_complete == is_complete
    found = [(first, messages.positions.tolist()) for first, messages in held.runs]
    assert list(chain.from_iterable(numbers for _, numbers in found)) == (expected if is_complete else [])
    assert all(numbers == list(range(first, first + len(numbers))) for first, numbers in found)
    assert len(found) <= 2 + given_runs // 3, "short runs are joined"
