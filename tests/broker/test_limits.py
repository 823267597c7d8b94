"""Messages of whole columns are refused for the same reasons as one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import NO_TOPIC_ID, Messages
from twinsieve.pipeline.kafka.size_limits import Limits

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
def test_a_column_is_refused_as_its_rows(policy: str, rows: list[Any]) -> None:
    clock = BrokerClock(lambda: 100.0)
    clock.acknowledged(_NOW_MS, sent_s=99.9)
    admin: Any = _Admin(policy)
    limits = Limits(lambda: admin, clock, 1 << 20, "none")
    alone = [Messages(*([column] for column in row)) for row in rows]
    one_by_one = {row: limits.unsendable("out", one) for row, one in enumerate(alone)}
    together = limits.unsendable("out", Messages(*([row[place] for row in rows] for place in range(4))))
    assert together == {row: found[0] for row, found in one_by_one.items() if found}
    # Headers that many rows share as one object count for each of them.
    keys, values, headers_of_rows, stamps = ([row[place] for row in rows] for place in range(4))
    for headers in headers_of_rows:
        shared = Messages(keys, values, [headers] * len(rows), stamps)
        own = Messages(keys, values, [list(headers) for _ in rows], stamps)
        assert limits.unsendable("out", shared) == limits.unsendable("out", own)
    # The slow check of a row does not depend on the quick one of the column.
    for row, (key, value, headers, stamp) in enumerate(rows):
        reason = limits._reason(key, value, headers, 400)
        oldest, newest = clock.accepted_ms(limits.of("out"))
        timely = stamp < 0 or oldest <= stamp <= newest
        is_keyless = policy != "delete" and key is None
        assert (row in together) == (reason is not None or not timely or is_keyless)
