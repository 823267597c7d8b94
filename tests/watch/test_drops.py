"""The latest drops are few, bounded in memory, and what was dropped."""

from __future__ import annotations

import numpy as np
import orjson
import pytest

from tests.memory.broker import ManualClock
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import MOST_DROPS
from twinsieve.pipeline.status_pages import drops as watched
from twinsieve.pipeline.status_pages.drops import MAX_TEXT, NOT_READ, Drops, text_reader
from twinsieve.pipeline.wire.positions import pack_positions
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.stages.contract import NO_LEADER, Kind, Verdicts

POSTS = Partition("posts", 0)


class Worker:
    """Hands blocks over as a worker does, each of messages behind the last ones."""

    def __init__(self, part: str = "value", **settings: object) -> None:
        self.clock = ManualClock()
        reader = MessageReader(Settings.model_validate(settings))
        self.drops = Drops(self.clock, part, text_reader(reader))
        self._offset = 0

    def emit(
        self,
        values: list[bytes | None],
        kinds: list[Kind] | None = None,
        leaders: list[int] | None = None,
        topics: dict[int, str] | None = None,
        keys: list[bytes | None] | None = None,
    ) -> None:
        count = len(values)
        verdicts = Verdicts.blank(count, fill={"matched": 2, "compared": 3})
        verdicts.kinds[:] = kinds or [Kind.NEAR] * count
        verdicts.leaders[:] = leaders or [7] * count
        offsets = list(range(self._offset, self._offset + count))
        records = Records(POSTS, offsets, [0] * count, keys or [None] * count, values, [()] * count)
        topics = topics or {0: "posts"}
        self._offset += count
        ruling = Ruling(0, 1, Result.JUDGED, 0, count, verdicts=verdicts, topics=topics)
        self.drops.take(records, ruling)


def post(text: str) -> bytes:
    return orjson.dumps({"text": text})


def leader(topic: int, partition: int, offset: int) -> int:
    return int(pack_positions(topic, partition, np.array([offset]))[0])


def test_drops_are_what_was_dropped_newest_first() -> None:
    worker = Worker()
    worker.clock.sleep(5.0)
    worker.emit(
        [post(text) for text in "abcdef"],
        [Kind.UNIQUE, Kind.EXACT, Kind.NEAR, Kind.REPLAYED, Kind.UNREADABLE, Kind.EXACT],
        [NO_LEADER, leader(0, 0, 1), leader(3, 5, 2), NO_LEADER, NO_LEADER, NO_LEADER],
        {0: "posts", 3: "older"},
    )
    shown = [
        (str(drop.position), drop.stage, drop.measure, drop.likeness, drop.leader, drop.text, drop.why)
        for drop in worker.drops.newer(0)
    ]
    assert shown == [
        ("posts[0]@5", "exact", "similarity", 1.0, None, "f", ""),
        ("posts[0]@2", "near", "similarity", 0.6666, InputPosition(Partition("older", 5), 2), "c", ""),
        ("posts[0]@1", "exact", "similarity", 1.0, InputPosition(POSTS, 1), "b", ""),
    ]
    assert {drop.time_ms for drop in worker.drops.newer(0)} == {worker.clock.now_ms()}
    assert worker.drops.passed == 3


def test_text_is_in_the_part_that_the_settings_name() -> None:
    worker = Worker("key", input={"encoding": "text", "part": "key"})
    worker.emit([b"value"], keys=[b"the key"])
    assert [drop.text for drop in worker.drops.newer(0)] == ["the key"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{no json", "the message cannot be read: "),
        (None, "the message cannot be read: "),
        (b"[]", "the message cannot be read: is a list, not an object"),
        (b"x" * 300_000, "a message of 300,000 bytes, too large for this page"),
    ],
)
def test_message_without_a_text_says_why(value: bytes | None, why: str) -> None:
    worker = Worker()
    worker.emit([value])
    (drop,) = worker.drops.newer(0)
    assert (drop.text, drop.why[: len(why)]) == ("", why)


def test_few_drops_a_second_are_taken_and_all_of_a_slow_stream() -> None:
    worker = Worker()
    for _ in range(20):
        worker.emit([post("a")] * 1_000)
    assert len(worker.drops.newer(0)) == 100
    worker.clock.sleep(10.0)
    worker.emit([post(str(number)) for number in range(50)])
    assert [drop.text for drop in worker.drops.newer(0)[:11]] == [*map(str, range(49, 39, -1)), "a"]
    for _ in range(150):
        worker.clock.sleep(1.0)
        worker.emit([post("slow")])
    assert [drop.text for drop in worker.drops.newer(0)].count("slow") == 150
    assert worker.drops.passed == 20_200


def test_the_last_thousand_are_kept() -> None:
    worker = Worker()
    for number in range(1_100):
        worker.clock.sleep(1.0)
        worker.emit([post(str(number))])
    assert [drop.number for drop in worker.drops.newer(0)] == list(range(1_100, 1_100 - MOST_DROPS, -1))


def test_messages_that_nobody_looks_at_are_bounded() -> None:
    """A quarter of a megabyte a message: the oldest go, and nothing is decoded."""
    worker = Worker()
    large = post("x" * 250_000)
    for _ in range(MOST_DROPS):
        worker.clock.sleep(1.0)
        worker.emit([large])
    held = sum(len(message or b"") for message in worker.drops._messages.values())
    assert held == worker.drops._waiting_bytes <= watched._MAX_WAITING_BYTES
    drops = worker.drops.newer(0)
    assert len(drops) == held // len(large) > 10
    assert {len(drop.text) for drop in drops} == {MAX_TEXT + 1}
    assert (worker.drops._messages, worker.drops._waiting_bytes) == ({}, 0)


def test_leader_completes_all_its_drops_and_they_count_as_changed() -> None:
    worker = Worker()
    for offset in (1, 2, 1):
        worker.emit([post("a")], leaders=[leader(0, 0, offset)])
    first, second = InputPosition(POSTS, 1), InputPosition(POSTS, 2)
    assert worker.drops.without_leader() == [first, second]
    (newest, *_) = worker.drops.newer(0)
    newest.html = "old"
    worker.drops.set_leader(first, "k" * 5_000, "")
    assert worker.drops.without_leader() == [second]
    changed = worker.drops.newer(3)
    assert [(drop.number, len(drop.leader_text), drop.why_leader, drop.html) for drop in changed] == [
        (3, MAX_TEXT + 1, "", None),
        (1, MAX_TEXT + 1, "", None),
    ]
    worker.drops.set_leader(second, "", "gone")
    assert [(drop.number, drop.why_leader) for drop in worker.drops.newer(5)] == [(2, "gone")]


def test_leader_that_no_topic_can_show_is_not_asked_for() -> None:
    worker = Worker()
    worker.emit([post("a")], leaders=[NO_LEADER])
    worker.emit([post("b")], leaders=[leader(9, 0, 1)])
    # The topic was created again since: its name now holds other messages.
    worker.emit([post("c")], leaders=[leader(0, 0, 1)], topics={4: "posts", 0: "posts"})
    assert worker.drops.without_leader() == []
    whys = [drop.why_leader for drop in worker.drops.newer(0)]
    assert [why.partition(":")[0] for why in whys] == [
        "not in the topic any more",
        "not in the topic any more",
        "not known",
    ]
    assert NOT_READ not in whys


def test_a_leader_that_was_redriven_is_looked_for_among_the_dead_letters() -> None:
    worker = Worker()
    worker.emit([post("a")], leaders=[leader(1, 0, 5)], topics={0: "posts", 1: "posts.dead:missing_field"})
    assert worker.drops.without_leader() == [InputPosition(Partition("posts.dead", 0), 5)]
