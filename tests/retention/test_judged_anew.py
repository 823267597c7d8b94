"""Retention took the record of a verdict, and another index judged the message anew: an index that still knows the
first verdict takes the second one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.model.test_hidden_topics import block, leader, recorded
from tests.twins import HashSieve, ruled
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.wire.block import Block, BlockFlag
from twinsieve.pipeline.wire.ruling import Ruling, Source
from twinsieve.stages.contract import ExactConfig, Kind, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve

_LATEST_MS = 1_600_000_000_000


def asked(partition: int, session: int, offset: int, text: str) -> Block:
    """A session's start, with the message at `offset`."""
    return replace(block("a", session, offset, text), number=partition)


def going_on(partition: int, session: int, offset: int, text: str) -> Block:
    """A session's next block."""
    return replace(asked(partition, session, offset, text), flags=BlockFlag.NONE)


def real_sieve(method: str) -> BatchSieve:
    exact = ExactConfig(method, window=Window(100))  # type: ignore[arg-type]
    return BatchSieve(SieveConfig(exact, NearConfig(method="none", window=Window(5))))


@pytest.fixture(params=["plain", "bloom", "trie"])
def standby(request: pytest.FixtureRequest) -> IndexState:
    """It followed that `text` at a[0]@5 is unique, and did not hear that it came out."""
    sieve = HashSieve() if request.param == "plain" else real_sieve(request.param)
    state, first = IndexState(sieve), asked(0, 1, 5, "text")
    state.follow([(first, recorded(ruled(IndexState(HashSieve()), first, 0, _LATEST_MS)))])
    return state


def judge_anew(standby: IndexState, *blocks: Block) -> None:
    """An index that knows nothing of what was judged before judges these blocks, and the standby follows."""
    judge = IndexState(HashSieve())
    for at, each in enumerate(blocks, 10):
        standby.follow([(each, recorded(ruled(judge, each, at, _LATEST_MS)))])


def ask(state: IndexState, each: Block) -> Ruling:
    ruling = ruled(state, each, 20, _LATEST_MS)
    assert len(ruling) == 1
    return ruling


def test_a_verdict_that_is_asked_again_is_the_last_one_on_record(standby: IndexState) -> None:
    judge_anew(standby, asked(1, 2, 3, "text"), asked(0, 3, 5, "text"))
    ruling = ask(standby, asked(0, 4, 5, "text"))
    assert (ruling.sources[0], ruling.verdicts.kinds[0]) == (Source.STORED, Kind.EXACT)
    assert leader(ruling) == ("a", 3)


def test_a_kept_message_that_was_dropped_when_judged_anew_leads_nobody(standby: IndexState) -> None:
    judge_anew(standby, asked(1, 2, 3, "text"), asked(0, 3, 5, "text"))
    ruling = ask(standby, asked(1, 4, 4, "text"))
    assert ruling.verdicts.kinds[0] == Kind.EXACT
    assert leader(ruling) == ("a", 3)


def test_a_message_that_was_kept_again_leads(standby: IndexState) -> None:
    judge_anew(standby, asked(0, 3, 5, "text"))
    ruling = ask(standby, asked(1, 4, 4, "text"))
    assert ruling.verdicts.kinds[0] == Kind.EXACT
    assert leader(ruling) == ("a", 5)


def test_a_message_that_was_kept_again_and_passed_over_leads_nobody(standby: IndexState) -> None:
    judge_anew(standby, asked(0, 3, 5, "text"))
    ask(standby, asked(0, 4, 6, "six"))
    ask(standby, going_on(0, 4, 7, "seven"))
    assert ask(standby, asked(1, 5, 4, "text")).verdicts.kinds[0] == Kind.UNIQUE


def test_a_verdict_is_closed_where_the_record_says_that_the_message_is_out(standby: IndexState) -> None:
    """The block that reported it is deleted, and was never followed here."""
    judge = IndexState(HashSieve())
    ruled(judge, replace(asked(0, 3, 2, "two"), emitted_to=6), 10, _LATEST_MS)
    begun = asked(0, 4, 4, "four")
    again = going_on(0, 4, 5, "text")
    for at, each in enumerate((begun, again), 11):
        standby.follow([(each, recorded(ruled(judge, each, at, _LATEST_MS)))])
    assert ask(standby, asked(0, 5, 5, "text")).sources[0] == Source.REPLAYED
    assert ask(standby, asked(1, 6, 4, "text")).verdicts.kinds[0] == Kind.EXACT, "it came out, and leads"


def test_an_offset_has_one_open_verdict(standby: IndexState) -> None:
    judge_anew(standby, asked(1, 2, 3, "text"), asked(0, 3, 5, "text"))
    (chunk,) = standby.ledger.books[0, 0].open.chunks
    assert np.array_equal(chunk.offsets, [5])
