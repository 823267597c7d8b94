"""A broker in which the dead letters of one reason are a topic of their own (`broker/redriven.py`).

The worker of `redrive` reads that topic like an input. This file translates its name, hides the messages of
other reasons, and hides what was written after the redrive began, so that a message that becomes a dead
letter again is not read again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.ports import Broker, GroupConsumer, TransactionalProducer
from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    AbortableError,
    Committed,
    Membership,
    Partition,
    PollResult,
    Records,
    TruncatedError,
    UnreadableError,
)
from twinsieve.pipeline.broker.redriven import RedrivenTopic, input_id
from twinsieve.pipeline.messages.verdict_values import pick
from twinsieve.pipeline.wire.headers import origin_of, reason_of

_T = TypeVar("_T")


def redriven_broker(inner: Broker, topic: RedrivenTopic, ends: Mapping[Partition, int]) -> Broker:
    """The broker `inner`, in which `topic` is a topic.

    ends: for each partition of `topic`, the offset up to which it is read; 0 for others
    """
    return cast(Broker, _RedrivenBroker(inner, _Names(topic), ends))


@dataclass(frozen=True, slots=True)
class _Names:
    """Translates between the topic of one reason and the topic that holds all dead letters."""

    topic: RedrivenTopic

    def held(self, partition: Partition) -> Partition:
        is_redriven = partition.topic == self.topic.name
        return Partition(self.topic.topic, partition.number) if is_redriven else partition

    def redriven(self, partition: Partition) -> Partition:
        return Partition(self.topic.name, partition.number)

    def held_keys(self, values: Mapping[Partition, _T]) -> dict[Partition, _T]:
        return {self.held(partition): value for partition, value in values.items()}


@dataclass(frozen=True)
class _RedrivenBroker:
    inner: Broker
    names: _Names
    ends: Mapping[Partition, int]

    def group_consumer(self, group: str, topics: Sequence[str], member: str | None = None) -> GroupConsumer:
        held = [self.names.held(Partition(name, 0)).topic for name in topics]
        return cast(
            GroupConsumer,
            _RedrivenConsumer(self.inner.group_consumer(group, held, member), self.names, self.ends),
        )

    def transactor(self, transactional_id: str, topics: Collection[str] = ()) -> TransactionalProducer:
        return cast(
            TransactionalProducer,
            _RedrivenTransactor(self.inner.transactor(transactional_id, topics), self.names),
        )

    def admin(self) -> Admin:
        return cast(Admin, _RedrivenAdmin(self.inner.admin(), self.names))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass(frozen=True)
class _RedrivenTransactor:
    inner: TransactionalProducer
    names: _Names

    def send_offsets(
        self, offsets: Mapping[Partition, Committed], membership: Membership, record: str = ""
    ) -> None:
        self.inner.send_offsets(self.names.held_keys(offsets), membership, record)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass(frozen=True)
class _RedrivenAdmin:
    """Only the calls of a worker are translated."""

    inner: Admin
    names: _Names

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        topic = self.names.topic
        held = dict.fromkeys(self.names.held(Partition(name, 0)).topic for name in names)
        infos = self.inner.topics([*held], settings=settings)
        info = infos.get(topic.topic)
        own = replace(info, name=topic.name, topic_id=input_id(info, topic)) if info is not None else None
        return {name: own if name == topic.name else infos[name] for name in names}

    def group_offsets(
        self, group: str, partitions: Collection[Partition], *, stable: bool = True
    ) -> dict[Partition, Committed]:
        offsets = self.inner.group_offsets(group, [*map(self.names.held, partitions)], stable=stable)
        held = {partition: self.names.held(partition) for partition in partitions}
        return {partition: offsets[at] for partition, at in held.items() if at in offsets}

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        ends = self.inner.end_offsets([*map(self.names.held, partitions)])
        return {partition: ends[self.names.held(partition)] for partition in partitions}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _RedrivenConsumer:
    """A group consumer of one reason's dead letters, up to the ends."""

    def __init__(self, inner: GroupConsumer, names: _Names, ends: Mapping[Partition, int]) -> None:
        self._inner = inner
        self._names = names
        self._ends = ends

    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        try:
            polled = self._inner.poll(timeout_s, max_records)
        except TruncatedError as error:
            raise TruncatedError(self._names.redriven(error.partition), str(error)) from error
        except UnreadableError as error:
            raise error.at(self._names.redriven(error.partition)) from error
        assignment = frozenset(map(self._names.redriven, polled.assignment))
        ended = [partition for partition in assignment if self._at_end(partition)]
        if ended:
            self.pause(ended)
        chosen = [self._chosen(records) for records in polled.records]
        return replace(polled, assignment=assignment, records=[records for records in chosen if len(records)])

    def _chosen(self, records: Records) -> Records:
        """The records of this reason below the end, each with the place where it was first."""
        partition, reason = self._names.redriven(records.partition), self._names.topic.reason
        end = self._ends.get(partition, 0)
        offsets, headers = records.offsets, records.headers
        pairs = enumerate(zip(offsets, headers, strict=True))
        rows = [row for row, (at, own) in pairs if at < end and reason_of(own) is reason]
        here = [InputPosition(records.partition, offsets[row]) for row in rows]
        firsts = [
            str(origin_of(headers[row]) or place).encode() for row, place in zip(rows, here, strict=True)
        ]
        keys = [records.keys[row] for row in rows]
        return Records.of(
            partition,
            pick(offsets, rows),
            pick(records.timestamps_ms, rows),
            # A topic that needs keys has the place of a message in place of no key.
            [None if key == first else key for key, first in zip(keys, firsts, strict=True)],
            [records.values[row] for row in rows],
            pick(headers, rows),
            pick(records.epochs, rows),
            stamped_by_broker=records.stamped_by_broker,
            origins=firsts,
        )

    def _at_end(self, partition: Partition) -> bool:
        try:
            return self.position(partition) >= self._ends.get(partition, 0)
        except AbortableError:
            return False

    def position(self, partition: Partition) -> int:
        """As that of the inner consumer, but at most the end: what comes after it was not delivered."""
        return min(self._inner.position(self._names.held(partition)), self._ends.get(partition, 0))

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        self._inner.seek(self._names.held(partition), offset, epoch)

    def pause(self, partitions: Collection[Partition]) -> None:
        self._inner.pause([*map(self._names.held, partitions)])

    def resume(self, partitions: Collection[Partition]) -> None:
        self._inner.resume([self._names.held(part) for part in partitions if not self._at_end(part)])

    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        begins = self._inner.beginning_offsets([*map(self._names.held, partitions)])
        return {partition: begins[self._names.held(partition)] for partition in partitions}

    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        ends = self._inner.end_offsets([*map(self._names.held, partitions)])
        return {partition: ends[self._names.held(partition)] for partition in partitions}

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        committed = self._inner.committed([*map(self._names.held, partitions)])
        return {partition: committed[self._names.held(partition)] for partition in partitions}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
