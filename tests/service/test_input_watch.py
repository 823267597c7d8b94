"""Every process shows what has not come out of any input partition, whoever works on it, or nobody."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.service.scraped import Series, series
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition
from twinsieve.pipeline.service.input_watch import Arrivals, InputWatch
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.settings.model import Settings

_GROUP = Names(Settings().app).workers
_FIRST, _SECOND = Partition("posts", 0), Partition("posts", 1)


class Watched:
    """An input of two partitions; the group `_GROUP` has no members until a test adds one."""

    def __init__(self, **source: object) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock)
        self.cluster.create(NewTopic("posts", 2))
        self.metrics = Metrics(self.clock)
        settings = Settings.model_validate({"input": source})
        self.watch = InputWatch(settings, self.clock, self.metrics)
        self.admin = MemoryBroker(self.cluster).admin()

    def write(self, at: Partition, count: int) -> None:
        messages = Messages()
        for _ in range(count):
            messages.add(None, b"text")
        self.cluster.write(at, messages)

    def commit(self, at: Partition, offset: int) -> None:
        mark = Mark(self.cluster.topics[at.topic].topic_id, 0, offset)
        self.cluster.group(_GROUP).offsets[at] = mark.committed()

    def look(self, after_s: float = 0.0) -> dict[str, Series]:
        self.clock.sleep(after_s)
        self.watch.look(self.admin)
        return self.page()

    def page(self) -> dict[str, Series]:
        return series(self.metrics.registry.collect())


def both(first: float, second: float) -> Series:
    return {("0", "posts"): first, ("1", "posts"): second}


def test_partitions_that_nobody_works_on_are_counted_with_what_waits_in_them() -> None:
    watched = Watched()
    watched.write(_FIRST, 3)
    page = watched.look()
    assert page["lag_messages"] == both(3, 0)
    assert page["input_end_offset"] == both(3, 0)
    assert page["input_partitions"] == {("posts",): 2}
    assert page["unassigned_partitions"] == {(): 2}
    watched.cluster.group(_GROUP).join(("posts",), None, watched.clock.monotonic_s())
    assert watched.look()["unassigned_partitions"] == {(): 0}


def test_the_age_is_that_of_the_oldest_message_that_has_not_come_out() -> None:
    watched = Watched()
    watched.write(_FIRST, 3)
    watched.commit(_SECOND, 0)
    watched.look()
    watched.write(_FIRST, 2)
    watched.write(_SECOND, 1)
    assert watched.look(after_s=4.0)["oldest_waiting_seconds"] == both(4, 0)
    watched.commit(_FIRST, 3)
    assert watched.look(after_s=3.0)["oldest_waiting_seconds"] == both(3, 3)
    watched.commit(_FIRST, 5)
    assert watched.look(after_s=3.0)["oldest_waiting_seconds"] == both(0, 6)


def test_a_transaction_that_stays_open_has_an_age_and_what_lies_behind_it_does_not_wait() -> None:
    watched = Watched()
    transactor = MemoryBroker(watched.cluster).transactor("a producer")

    def send() -> None:
        transactor.begin()
        messages = Messages()
        messages.add(None, b"text")
        transactor.send("posts", 0, messages)

    assert watched.look()["input_open_transaction_seconds"] == both(0, 0)
    send()
    watched.write(_FIRST, 2)
    watched.write(_SECOND, 1)
    assert watched.look(after_s=1.0)["input_open_transaction_seconds"] == both(0, 0)
    page = watched.look(after_s=3.0)
    assert page["input_open_transaction_seconds"] == both(3, 0)
    assert page["lag_messages"] == both(0, 1)
    transactor.commit()
    send()
    # Another one: its age begins anew.
    assert watched.look(after_s=2.0)["input_open_transaction_seconds"] == both(0, 0)
    assert watched.look(after_s=2.0)["input_open_transaction_seconds"] == both(2, 0)
    watched.cluster.faults.leaderless.add(_FIRST)
    assert watched.look(after_s=2.0)["input_open_transaction_seconds"] == both(0, 0)
    watched.cluster.faults.leaderless.clear()
    transactor.abort()
    page = watched.look(after_s=2.0)
    assert page["input_open_transaction_seconds"] == both(0, 0)
    assert page["oldest_waiting_seconds"][("0", "posts")] > 0


def test_an_age_grows_and_the_lag_is_unknown_while_no_broker_answers() -> None:
    watched = Watched()
    watched.write(_FIRST, 1)
    watched.look()
    watched.cluster.reachable = False
    with pytest.raises(BrokerError):
        watched.look(after_s=40.0)
    page = watched.page()
    assert "lag_messages" not in page
    assert page["oldest_waiting_seconds"] == both(40, 0)


def test_a_partition_without_a_leader_keeps_the_lag_it_had() -> None:
    watched = Watched()
    watched.write(_FIRST, 4)
    watched.write(_SECOND, 4)
    watched.look()
    watched.cluster.faults.leaderless.add(_SECOND)
    watched.commit(_FIRST, 4)
    assert watched.look(after_s=3.0)["lag_messages"] == both(0, 4)


@pytest.mark.parametrize(("start", "lag"), [("earliest", 2), ("latest", 0)])
def test_what_a_new_app_does_not_read_does_not_wait(start: str, lag: int) -> None:
    watched = Watched(start=start)
    watched.write(_FIRST, 5)
    watched.cluster.log(_FIRST).trim(3)
    assert watched.look()["lag_messages"] == both(lag, 0)


_STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=200)
"""By query: messages that arrived, and offsets that were committed since the one before."""


@given(_STEPS)
def test_an_age_is_exact_or_a_little_too_high(steps: Sequence[tuple[int, int]]) -> None:
    """Against a list of the query that first showed each message. Too high only where more queries than are kept
    separately showed messages that wait."""
    arrivals, first_seen, committed = Arrivals(), list[int](), 0
    for now_s, (came, out) in enumerate(steps):
        first_seen += [now_s] * came
        committed = min(len(first_seen), committed + out)
        oldest_s = arrivals.oldest_s(now_s, len(first_seen), committed)
        waiting = first_seen[committed:]
        assert (oldest_s is None) == (not waiting)
        if oldest_s is not None:
            assert oldest_s <= waiting[0]
            if len(set(first_seen)) <= 64:
                assert oldest_s == waiting[0]
