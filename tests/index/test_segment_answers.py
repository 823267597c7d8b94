"""What an index does with the answers of shards: which fit, whom it waits for, and how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.golden.make import SCHEME, golden_answers
from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster, NewTopic
from twinsieve.pipeline.broker.records import AbortableError, Messages, Partition, UnreadableError
from twinsieve.pipeline.index.config import AnswersConfig
from twinsieve.pipeline.index.segment_answers import SegmentAnswers, Unused
from twinsieve.pipeline.wire.frame import What, scheme_hash, seal
from twinsieve.pipeline.wire.segment_answers import BlockAnswer, SegmentPart, encode_answers
from twinsieve.stages.near.answers import Answer
from twinsieve.stages.window.segments import SegmentId

TOPIC, PATIENCE_S = "app.answers", 14.0
GOLDEN = golden_answers()
SEGMENT = GOLDEN.parts[0].segment
OTHER = SegmentId(2_000, 2_010, 10, bytes(16))
ANSWER = GOLDEN.parts[0].blocks[0].answer
assert ANSWER is not None
NOTHING = Answer._make(column[:0] for column in ANSWER)


class _World:
    """An index's side, and shards that write."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock)
        self.cluster.create(NewTopic(TOPIC, 2))
        self.notices: list[str] = []
        broker = MemoryBroker(self.cluster)
        self.index = SegmentAnswers(
            broker.reader,
            AnswersConfig(TOPIC, PATIENCE_S),
            SCHEME,
            GOLDEN.log_id,
            GOLDEN.question,
            self.clock,
            self.notices,
        )

    def begin(self, offset: int = 17) -> None:
        self.index.begin(offset)
        self.index.read({0, 1})

    def write(self, *values: bytes, partition: int = 0) -> None:
        messages = Messages()
        for value in values:
            messages.add(None, value)
        self.cluster.write(Partition(TOPIC, partition), messages)
        self.index.poll(0.0)

    def answer(
        self,
        *offsets: int,
        answer: Answer | None = NOTHING,
        segment: SegmentId = SEGMENT,
        read_to: int | None = None,
        **changed: Any,
    ) -> None:
        """Write a record that answers these blocks. read_to: behind the last one, if that is not said"""
        blocks = [BlockAnswer(offset, 100 + offset, 4, answer) for offset in offsets]
        end = max(offsets, default=16) + 1 if read_to is None else read_to
        record = replace(GOLDEN, parts=[SegmentPart(segment, blocks, end)], **changed)
        self.write(*encode_answers(SCHEME, record, 1 << 20))

    def waits(self, offset: int, *segments: SegmentId) -> bool:
        return bool(self.index.awaited(offset, segments or [SEGMENT]))

    def answers_for(self, *segments: SegmentId) -> list[SegmentId]:
        return [each for each in segments if self.index.waits.is_answered(each)]

    def of(self, offset: int, *, fits: bool = True) -> Mapping[SegmentId, Answer]:
        return self.index.of(offset, 100 + offset, 4, lambda answers: answers if fits else {})


@pytest.fixture
def world() -> Iterator[_World]:
    made = _World()
    made.begin()
    yield made
    made.index.close()


def test_an_answer_is_there_for_its_block_and_no_other(world: _World) -> None:
    world.answer(17, 19, answer=ANSWER)
    world.answer(17, segment=OTHER)
    assert world.of(17).keys() == {SEGMENT, OTHER}
    assert all(np.array_equal(a, b) for a, b in zip(world.of(19)[SEGMENT], ANSWER, strict=True))
    assert world.of(18) == {}
    assert not world.index.unused
    world.index.pass_over(18)
    assert world.of(17) == {}
    assert world.of(19)


def test_what_was_written_before_the_index_began_is_read() -> None:
    world = _World()
    world.answer(16, 17)
    world.begin()
    world.index.poll(0.0)
    assert world.of(17)
    assert world.index.unused == {Unused.LATE: 1}


def test_nobody_is_waited_for_before_he_has_answered_nor_when_he_has_gone(world: _World) -> None:
    assert not world.waits(17)
    assert world.answers_for(SEGMENT) == []
    world.answer()
    assert world.answers_for(SEGMENT, OTHER) == [SEGMENT]
    assert world.waits(17)
    assert not world.waits(17, OTHER)
    world.clock.sleep(PATIENCE_S - 1)
    assert world.waits(17)
    world.clock.sleep(1)
    assert not world.waits(17)
    assert world.answers_for(SEGMENT) == []


def test_a_block_that_a_shard_has_passed_over_is_not_waited_for(world: _World) -> None:
    world.answer(18)
    assert not world.waits(17), "it has read that block, and lives"
    assert not world.waits(18), "it is there"
    assert world.waits(19)
    world.answer(read_to=20)
    assert not world.waits(19)
    assert world.waits(20)


def test_who_only_says_that_he_is_there_is_waited_for_while_he_is_where_the_index_is(world: _World) -> None:
    world.answer(read_to=17)
    assert world.waits(17)
    for offset in range(18, 30):
        world.clock.sleep(PATIENCE_S / 6)
        world.index.pass_over(offset)
        world.answer(read_to=17)
    assert not world.waits(30)
    assert world.index.waits.late([SEGMENT, OTHER]) == {SEGMENT: GOLDEN.shard}
    world.answer(read_to=29)
    assert world.waits(30)
    assert world.index.waits.late([SEGMENT]) == {}


def test_a_block_that_is_too_large_for_a_record_is_not_waited_for(world: _World) -> None:
    world.answer(17, answer=None)
    assert not world.waits(17)
    assert world.of(17) == {}
    assert not world.index.unused


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"log_id": bytes(16)}, Unused.OTHER_LOG),
        ({"question": bytes(16)}, Unused.OTHER_QUESTION),
    ],
)
def test_answers_of_another_log_or_to_another_question_are_told_and_not_waited_for(
    world: _World, changed: dict[str, bytes], reason: Unused
) -> None:
    world.answer(17, **changed)
    assert world.of(17) == {}
    assert not world.waits(17)
    assert world.index.unused == {reason: 1}
    assert len(world.notices) == 1
    for _ in range(20):
        world.answer(17, **changed)
    assert len(world.notices) < 5


def test_records_that_cannot_be_read_are_told(world: _World) -> None:
    (data,) = encode_answers(SCHEME, GOLDEN, 1 << 20)
    later = bytearray(seal(What.ANSWERS, scheme_hash("other"), data[28:]))
    world.write(bytes(later), data[:50], b"", data[:-1] + bytes([data[-1] ^ 1]), partition=1)
    assert world.index.unused == {Unused.OTHER_VERSION: 1, Unused.DAMAGED: 3}
    world.answer(17)
    assert world.of(17)


def test_of_two_answers_that_differ_the_first_counts_and_it_is_told(world: _World) -> None:
    world.answer(17, answer=ANSWER)
    world.answer(17, answer=ANSWER, shard="host-2")
    world.answer(17, answer=None, shard="host-3")
    assert not world.index.unused
    world.answer(17, answer=NOTHING, shard="host-4")
    assert world.index.unused == {Unused.DIFFERS: 1}
    assert "host-4" in world.notices[0]
    assert len(world.of(17)[SEGMENT].kept) == len(ANSWER.kept)


def test_an_answer_for_another_block_with_the_same_offset_is_not_used(world: _World) -> None:
    world.answer(17, answer=ANSWER)
    assert world.index.of(17, 5, 4, lambda answers: answers) == {}
    assert world.index.of(17, 117, 3, lambda answers: answers) == {}
    assert world.index.unused == {Unused.OTHER_BLOCK: 2}
    assert world.of(17, fits=False) == {}
    assert world.index.unused[Unused.UNFIT] == 1


def test_records_that_retention_deletes_are_passed_over(world: _World) -> None:
    world.answer(17)
    for number in range(18, 23):
        world.answer(number)
    log = world.cluster.topics[TOPIC].logs[0]
    world.begin()
    log.trim(3)
    world.index.poll(0.0)
    world.index.read({0, 1})
    world.index.poll(0.0)
    assert world.of(22)
    assert world.of(17) == {}


def test_who_answers_too_far_ahead_waits_in_the_topic(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinsieve.pipeline.index.segment_answers.MOST_BYTES", 3_000)
    for offset in range(17, 30):
        world.answer(offset)
    held = [offset for offset in range(17, 30) if world.of(offset)]
    assert held == list(range(17, 17 + len(held)))
    assert len(held) < 9
    world.index.pass_over(17 + len(held))
    world.index.poll(0.0)
    world.index.poll(0.0)
    assert world.of(17 + len(held))


def test_partitions_without_a_leader_are_read_when_they_have_one(world: _World) -> None:
    world.index.read({1})
    world.answer(17)
    assert world.of(17) == {}
    world.index.read({0, 1})
    world.index.poll(0.0)
    assert world.of(17)


def test_without_the_topic_nobody_is_waited_for_and_nobody_is_late(world: _World) -> None:
    world.answer(read_to=17)
    world.answer(read_to=1, segment=OTHER)
    assert world.waits(17)
    assert world.index.waits.late([SEGMENT, OTHER]).keys() == {OTHER}
    world.index.read(set())
    assert not world.waits(17)
    assert world.answers_for(SEGMENT) == []
    assert world.index.waits.late([SEGMENT, OTHER]) == {}
    world.index.read({0, 1})
    world.answer(read_to=17)
    assert world.waits(17)


def test_a_broker_that_does_not_say_where_the_topic_ends_is_asked_again(
    world: _World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> dict[Partition, int]:
        raise AbortableError("no leader")

    world.begin()
    world.index.end()
    with monkeypatch.context() as patched:
        patched.setattr(world.index._reader, "end_offsets", fails)
        world.index.read({0, 1})
    world.answer(17)
    world.index.read({0, 1})
    assert world.of(17) == {}
    world.clock.sleep(2)
    world.index.read({0, 1})
    world.index.poll(0.0)
    assert world.of(17)


def test_a_batch_that_nobody_can_read_is_passed_over(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.answer(17)
    broken = UnreadableError(Partition(TOPIC, 0), 1, "damaged", None)
    with monkeypatch.context() as patched:
        patched.setattr(world.index._reader, "poll", lambda *_: _raise(broken))
        world.answer(18)
    assert world.index.unused == {Unused.DAMAGED: 1}
    world.answer(19)
    assert world.of(19)
    assert not world.of(18)


def _raise(error: Exception) -> Any:
    raise error
