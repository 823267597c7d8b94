"""Copies of records are refused for the same reasons as messages that are given by their parts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import NO_TOPIC_ID, Copies, Messages, Partition, Records
from twinsieve.pipeline.kafka.size_limits import Limits
from twinsieve.pipeline.worker.added_headers import HeaderTable

_NOW_MS = 1_700_000_000_000
_TEXT = st.none() | st.binary(max_size=3) | st.sampled_from([b"x" * 100, b"y" * 240])
_HEADERS = st.lists(st.tuples(st.sampled_from(["n", "é", "丁"]), _TEXT), max_size=2)
_STAMPS = st.sampled_from([-1, _NOW_MS, _NOW_MS - 7_000_000, _NOW_MS + 9_000_000])
_SIZED = st.binary(max_size=3) | st.integers(262, 284).map(bytes)
"""A message may have 275 bytes."""
_FEW = st.lists(st.tuples(st.just("n"), st.binary(max_size=2)), max_size=2)
_PLAIN = st.tuples(st.binary(max_size=3), _SIZED, st.just([]) | _FEW, st.just(_NOW_MS))
_ANY = st.tuples(_TEXT, _TEXT, _HEADERS, _STAMPS)


class _Admin:
    def __init__(self, policy: str) -> None:
        self._policy = policy

    def topics(self, names: list[str], *, settings: bool) -> dict[str, TopicInfo]:
        assert settings
        shown = {"max.message.bytes": "400", "message.timestamp.before.max.ms": "3600000"}
        shown |= {"message.timestamp.after.max.ms": "3600000", "cleanup.policy": self._policy}
        return {name: TopicInfo(name, NO_TOPIC_ID, 1, settings=shown) for name in names}


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
@given(rows=st.lists(_PLAIN, max_size=5) | st.lists(_PLAIN | _ANY, max_size=5))
def test_copies_are_refused_as_the_same_messages(policy: str, rows: list[Any]) -> None:
    clock = BrokerClock(lambda: 100.0)
    clock.acknowledged(_NOW_MS, sent_s=99.9)
    admin: Any = _Admin(policy)
    limits = Limits(lambda: admin, clock, 1 << 20, "none")
    keys, values, headers, stamps = ([row[place] for row in rows] for place in range(4))
    by_row = limits.unsendable("out", Messages(keys, values, headers, stamps))
    records = Records.of(Partition("in", 0), range(len(rows)), stamps, keys, values, headers)
    table = HeaderTable(len(rows))
    copies = Copies(records, np.arange(len(rows)), table.headers())
    assert limits.unsendable("out", copies) == by_row
    # A header that is added counts, too.
    table.add("n", texts=table.numbers_of([b"x" * 9] * len(rows)), numbers=7, decimals=3)
    longer: list[Any] = [[*own, ("n", b"x" * 9 + b"0.007")] for own in headers]
    added = limits.unsendable("out", Copies(records, np.arange(len(rows)), table.headers()))
    assert added == limits.unsendable("out", Messages(keys, values, longer, stamps))


@pytest.mark.parametrize("spare", [0, -1])
def test_a_message_may_be_as_large_as_its_topic_takes(spare: int) -> None:
    limits = Limits(cast("Any", lambda: _Admin("delete")), BrokerClock(lambda: 100.0), 1 << 20, "none")
    room = 400 - 61 - 64
    messages = Messages([b"key"], [bytes(room - 3 - spare)], [()], [_NOW_MS])
    assert limits.unsendable("out", messages) == ({0: "too_large_for_topic"} if spare else {})
