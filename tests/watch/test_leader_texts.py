"""Texts of leaders are read where the messages stand, and only while a page is looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import orjson
import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster, NewTopic
from tests.service.running import wait_for
from tests.watch.test_drops import Worker, leader, post
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.status_pages import leader_texts
from twinsieve.pipeline.status_pages.drops import NOT_READ, text_reader
from twinsieve.pipeline.status_pages.leader_texts import LeaderTexts

POSTS = Partition("posts", 1)


class Watched:
    """Drops of a worker, and the reader of their leaders on a broker in memory."""

    def __init__(self) -> None:
        self.worker = Worker()
        self.cluster = MemoryCluster(ManualClock())
        self.cluster.create(NewTopic("posts", 2))
        self.connected = 0
        self.error: BrokerError | None = None
        self.leaders = LeaderTexts(
            self.worker.drops,
            self._connect,
            "value",
            text_reader(MessageReader(Settings())),
            self.worker.clock,
        )

    def _connect(self) -> MemoryBroker:
        self.connected += 1
        if self.error is not None:
            raise self.error
        return MemoryBroker(self.cluster)

    def write(self, *values: bytes) -> None:
        messages = Messages()
        for value in values:
            messages.add(None, value)
        self.cluster.write(POSTS, messages)

    def drop(self, *offsets: int) -> None:
        """Drop a message for each of these leaders."""
        for offset in offsets:
            self.worker.emit([post("dropped")], leaders=[leader(0, 1, offset)])

    def whys(self) -> list[str]:
        """By drop, oldest first, the leader's text, or why there is none."""
        return [drop.why_leader or drop.leader_text for drop in reversed(self.worker.drops.newer(0))]

    def complete(self) -> list[str]:
        """The same, once a page was looked at for long enough."""
        self.leaders.ask()
        wait_for(lambda: not self.worker.drops.without_leader(), "all leaders")
        return self.whys()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(leader_texts, "_BETWEEN_S", 0.001)
    made = Watched()
    yield made
    made.leaders.close()


def test_leaders_are_read_out_of_the_topic(watched: Watched) -> None:
    watched.write(post("zero"), post("one"), b"{broken", orjson.dumps({"text": "x" * 5_000}))
    watched.drop(1, 0, 1, 2, 3)
    found = watched.complete()
    assert found[:3] == ["one", "zero", "one"]
    assert found[3].startswith("the message cannot be read: ")
    assert len(found[4]) == 1_001
    assert watched.connected == 1


def test_leader_that_retention_took_is_said(watched: Watched) -> None:
    watched.write(post("zero"), post("one"), post("two"), post("three"))
    watched.cluster.log(POSTS).trim(1)
    watched.cluster.log(POSTS).compact(2)
    watched.drop(0, 1, 2, 3, 4)
    assert watched.complete() == [
        "not in the topic any more: taken by retention",
        "one",
        "not in the topic any more",
        "three",
        "not in the topic any more",
    ]


def test_nothing_is_read_while_nobody_looks(watched: Watched) -> None:
    watched.write(post("zero"), post("one"))
    watched.drop(0)
    assert watched.whys() == [NOT_READ]
    assert watched.complete() == ["zero"]
    watched.worker.clock.sleep(60.0)
    wait_for(lambda: not watched.leaders._asked.is_set(), "it noticed that nobody looks")
    watched.drop(1)
    assert (watched.whys(), watched.connected) == (["zero", NOT_READ], 1)
    assert watched.complete() == ["zero", "one"]


def test_leader_that_was_read_before_is_not_read_again(watched: Watched) -> None:
    watched.write(post("zero"))
    watched.drop(0)
    watched.complete()
    watched.cluster.log(POSTS).trim(1)
    watched.drop(0)
    assert watched.complete() == ["zero", "zero"]


def test_topic_that_cannot_be_read_stops_no_other(
    watched: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_texts, "_FAILED", leader_texts.Pauses(first_s=0.001, longest_s=0.001))
    watched.write(post("zero"))
    watched.drop(0)
    watched.worker.emit([post("dropped")], leaders=[leader(1, 0, 5)], topics={0: "posts", 1: "gone"})
    found = watched.complete()
    assert found[0] == "zero"
    assert found[1].startswith("not read: ")
    assert "gone" in found[1]
    assert [line for line in caplog.messages if "cannot read a leader for the status pages" in line]


def test_broker_that_is_away_is_asked_again(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_texts, "_FAILED", leader_texts.Pauses(first_s=0.001, longest_s=0.001))
    watched.write(post("zero"))
    watched.drop(0)
    watched.error = BrokerError("broker a:9092: nothing listens there", retryable=True)
    watched.leaders.ask()
    wait_for(lambda: watched.connected > 2, "tries")
    assert watched.whys() == [NOT_READ]
    watched.error = None
    assert watched.complete() == ["zero"]


def test_close_ends_the_thread() -> None:
    before = set(threading.enumerate())
    made = Watched()
    made.leaders.ask()
    made.leaders.close()
    wait_for(lambda: set(threading.enumerate()) <= before, "no thread more")
