"""The shared state of the memory broker: topics, groups, transactional ids, and what time does to them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tests.memory.faults import Faults, at_once
from tests.memory.groups import Group
from tests.memory.in_flight import InFlight
from tests.memory.lock import CLUSTER_LOCK
from tests.memory.log import Entry, Outcome, PartitionLog, Topic, Transaction
from tests.memory.partitioner import partition_of
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    FatalError,
    Messages,
    Partition,
    RefusedRecordError,
)

_LEADER_STEP_S = 0.1


class CrashError(BaseException):
    """The process ends here, without any clean-up; never caught by a role."""


class ManualClock:
    """A clock that moves only when told; starts at a fixed moment."""

    def __init__(self, now_ms: int = 1_600_000_000_000) -> None:
        self._now_ms = now_ms
        self._passed_s = 0.0

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        return self._now_ms + round(self._passed_s * 1000)

    def monotonic_s(self) -> float:
        """Seconds since it was made."""
        return self._passed_s

    def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self._passed_s += seconds


@dataclass(slots=True)
class Slot:
    """One transactional id: its newest epoch and open transaction.

    timed_out: that epoch ended by time-out; forgotten: offsets of groups that were never told of an end
    """

    epoch: int = 0
    timed_out: bool = False
    transaction: Transaction | None = None
    forgotten: set[tuple[str, Partition]] = field(default_factory=set)


@dataclass(slots=True)
class MemoryCluster:
    """Topics, groups and transactions that all connected processes share.

    reachable: False plays a broker that is away: polls are empty, appends wait, everything else is an
        AbortableError.
    lookup_timeout_s: how long a question about offsets waits for a leader; request_timeout_s: how long a
        producer waits to have a message written
    offsets_retention_s: a group without members loses each offset at this age
    in_flight: what producers have handed over and the broker has not written yet; faults: what else is wrong
    deleted: topics that are no more, for whoever judges clients by what once stood there
    counts: of partitions that a topic of each name has had, one after the other
    """

    clock: Clock
    session_timeout_s: float = 10.0
    transaction_timeout_s: float = 10.0
    lookup_timeout_s: float = 10.0
    request_timeout_s: float = 40.0
    offsets_retention_s: float = math.inf
    reachable: bool = True
    faults: Faults = field(default_factory=Faults)
    topics: dict[str, Topic] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    deleted: list[Topic] = field(default_factory=list)
    counts: dict[str, list[int]] = field(default_factory=dict)
    in_flight: list[InFlight] = field(default_factory=list)
    _created: int = 0

    def require_rights(self, topic: str) -> None:
        """raises: FatalError for a topic that this user may not read or write"""
        if topic in self.faults.denied:
            raise FatalError(f"not allowed for topic {topic}", denied=True)

    def create(self, new: NewTopic) -> None:
        """Create a topic with an id of its own, never used before."""
        if new.name in self.topics:
            raise BrokerError(f"topic {new.name} exists already", retryable=False)
        self._created += 1
        topic_id = hashlib.blake2b(f"{self._created} {new.name}".encode(), digest_size=16).digest()
        logs = [PartitionLog() for _ in range(new.partitions)]
        self.topics[new.name] = Topic(new.name, topic_id, dict(new.settings), new.replication, logs)
        self._count(new.name)

    def delete(self, name: str) -> None:
        """Delete a topic with its committed offsets, as a real broker does."""
        self.deleted.append(self.topics.pop(name))
        for at in [each for each in self.faults.unreadable if each.topic == name]:
            del self.faults.unreadable[at]
        for group in self.groups.values():
            group.offsets = {at: offset for at, offset in group.offsets.items() if at.topic != name}

    def add_partitions(self, name: str, total: int) -> None:
        """Raise a topic's number of partitions."""
        logs = self.topics[name].logs
        logs.extend(PartitionLog() for _ in range(total - len(logs)))
        self._count(name)

    def _count(self, name: str) -> None:
        held, count = self.counts.setdefault(name, []), len(self.topics[name].logs)
        if held[-1:] != [count]:
            held.append(count)

    def log(self, partition: Partition) -> PartitionLog:
        """The log of one partition, with all that has arrived by now."""
        self.deliver()
        return self._log(partition)

    def _log(self, partition: Partition) -> PartitionLog:
        topic = self.topics.get(partition.topic)
        if topic is None or not 0 <= partition.number < len(topic.logs):
            raise AbortableError(f"{partition}: no such topic or partition")
        return topic.logs[partition.number]

    def has_leader(self, partition: Partition) -> bool:
        """Whether anybody may read or write there now."""
        topic = self.topics.get(partition.topic)
        held = topic is not None and 0 <= partition.number < len(topic.logs)
        return held and self.reachable and partition not in self.faults.leaderless

    def wait_for_leaders(self, doing: str, partitions: Collection[Partition]) -> None:
        """Let time pass until every partition has a leader. Called without the lock.

        raises: AbortableError after `lookup_timeout_s`
        """
        deadline_s = self.clock.monotonic_s() + self.lookup_timeout_s
        while dead := sorted(self.faults.leaderless.intersection(partitions)):
            if self.clock.monotonic_s() >= deadline_s:
                raise AbortableError(f"{doing} of {', '.join(map(str, dead))}: no leader")
            self.clock.sleep(min(_LEADER_STEP_S, self.lookup_timeout_s))

    def check(self, partition: Partition, messages: Messages) -> None:
        """Check that these messages can be written there. raises: AbortableError"""
        self._log(partition)
        limit = self.topics[partition.topic].max_message_bytes
        for key, value in zip(messages.keys, messages.values, strict=True):
            if len(key or b"") + len(value or b"") > limit:
                raise RefusedRecordError(f"{partition}: message exceeds max.message.bytes {limit}")
            if key is None and self.topics[partition.topic].info.compacts:
                raise RefusedRecordError(f"{partition}: compacted topic cannot accept message without key")
            why = self.faults.refuses_record(partition.topic, key, value)
            if why is not None:
                raise RefusedRecordError(f"{partition}: {why}")
        info, now_ms = self.topics[partition.topic].info, self.clock.now_ms()
        oldest, newest = now_ms - info.accepted_ms("before"), now_ms + info.accepted_ms("after")
        for stamp in messages.timestamps_ms:
            if stamp >= 0 and not oldest <= stamp <= newest:
                raise RefusedRecordError(
                    f"{partition}: InvalidTimestamp: {(stamp - now_ms) / 1000:.0f} s from now"
                )

    def write(self, partition: Partition, messages: Messages, transaction: Transaction | None = None) -> None:
        """Store messages; AbortableError, and nothing stored, when one exceeds the topic's limit."""
        self.check(partition, messages)
        self.deliver()
        self._store(partition, messages, transaction)

    def _store(self, partition: Partition, messages: Messages, transaction: Transaction | None) -> int | None:
        """Returns the stamp of the broker, where the topic has it."""
        log, now_ms = self._log(partition), self.clock.now_ms()
        stamps = self.topics[partition.topic].stamps
        for key, value, headers, stamp in zip(
            messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True
        ):
            time_ms = now_ms if stamps or stamp < 0 else stamp
            log.append(Entry(time_ms, key, value, tuple(headers), transaction, stamped_by_broker=stamps))
        return now_ms if stamps else None

    def hand_over(
        self,
        in_flight: InFlight,
        partition: Partition,
        messages: Messages,
        transaction: Transaction | None = None,
        *,
        latency_s: Callable[[], float] = at_once,
    ) -> None:
        """Write messages of a producer as soon as they are due and their partition has a leader."""
        in_flight.add(partition, messages, self.clock.monotonic_s(), latency_s, transaction)
        if in_flight not in self.in_flight:
            self.in_flight.append(in_flight)
        self.deliver()

    def deliver(self) -> None:
        """Write what is due of all that is in flight."""
        if not self.in_flight:
            return
        now_s = self.clock.monotonic_s()
        for in_flight in self.in_flight:
            for one in in_flight.take(now_s, self.has_leader):
                in_flight.acknowledge(one, self._store(one.partition, one.message, one.transaction))
        self.in_flight = [each for each in self.in_flight if len(each)]

    def group(self, name: str) -> Group:
        """A group, made when first asked for."""
        if name not in self.groups:
            self.groups[name] = Group(name, self.session_timeout_s)
        return self.groups[name]

    def tick(self) -> None:
        """Let what is overdue happen: members expire, transactions time out, new partitions are noticed."""
        self.deliver()
        now_s = self.clock.monotonic_s()
        counts = self.partition_counts()
        for group in self.groups.values():
            group.expire(now_s)
            group.forget(now_s - self.offsets_retention_s)
            group.notice_partitions(counts)
        for slot in self.slots.values():
            open_one = slot.transaction
            if open_one is not None and now_s - open_one.began_s > self.transaction_timeout_s:
                self.end(slot, Outcome.ABORTED)
                slot.epoch += 1
                slot.timed_out = True

    def partition_counts(self) -> dict[str, int]:
        """Partitions of each topic."""
        return {topic.name: len(topic.logs) for topic in self.topics.values()}

    def take_over(self, transactional_id: str) -> Slot:
        """A new holder of a transactional id: what the earlier one left open is aborted, its epoch is
        over."""
        slot = self.slots.setdefault(transactional_id, Slot())
        self.end(slot, Outcome.ABORTED)
        slot.epoch += 1
        slot.timed_out = False
        return slot

    def open_transaction(self, transactional_id: str, epoch: int) -> Transaction:
        """The open transaction of the newest holder."""
        transaction = self.holder(transactional_id, epoch).transaction
        if transaction is None:
            raise RuntimeError(
                f"transactional id {transactional_id}: no transaction is open; begin one first"
            )
        return transaction

    def by_key(self, topic: str, messages: Messages) -> dict[int, Messages]:
        """Messages by the partition that Kafka would choose for their key."""
        if topic not in self.topics:
            raise AbortableError(f"{topic}: no such topic")
        shares: dict[int, Messages] = {}
        columns = zip(messages.keys, messages.values, messages.headers, messages.timestamps_ms, strict=True)
        for key, value, headers, stamp in columns:
            number = partition_of(key or b"", len(self.topics[topic].logs))
            shares.setdefault(number, Messages()).add(key, value, headers, stamp)
        return shares

    def begin(self, transactional_id: str, epoch: int) -> Transaction:
        """Open a transaction for the holder of the newest epoch."""
        slot = self.holder(transactional_id, epoch)
        slot.transaction = Transaction(self.clock.monotonic_s())
        return slot.transaction

    def holder(self, transactional_id: str, epoch: int) -> Slot:
        """The slot, if this epoch still holds it."""
        slot = self.slots[transactional_id]
        if slot.epoch != epoch:
            why = "the transaction timed out" if slot.timed_out else "a newer producer has taken over"
            raise FatalError(f"transactional id {transactional_id}: {why}", fenced=not slot.timed_out)
        return slot

    def end(self, slot: Slot, outcome: Outcome) -> None:
        """Commit or abort the open transaction, its offsets included."""
        transaction = slot.transaction
        slot.transaction = None
        if transaction is None:
            return
        transaction.end(outcome)
        told = {group for group, _ in transaction.offsets}
        slot.forgotten = {held for held in slot.forgotten if held[0] not in told}
        if outcome is Outcome.COMMITTED:
            for (group, partition), offset in transaction.offsets.items():
                self.group(group).offsets[partition] = offset
                self.group(group).committed_s[partition] = self.clock.monotonic_s()

    def forget_end(self, transactional_id: str, outcome: Outcome) -> None:
        """End the open transaction, but never tell the group: its offsets stay open, as after a broker's
        crash."""
        slot = self.slots[transactional_id]
        assert slot.transaction is not None
        slot.forgotten |= slot.transaction.offsets.keys()
        slot.transaction.end(outcome)
        slot.transaction = None

    def unstable_offsets(self) -> set[tuple[str, Partition]]:
        """Offsets of groups that open transactions are about to commit."""
        held: set[tuple[str, Partition]] = set()
        for slot in self.slots.values():
            held |= slot.forgotten
            if slot.transaction is not None:
                held |= slot.transaction.offsets.keys()
        return held

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """Committed values of one partition, for tests and examples."""
        with CLUSTER_LOCK:
            return [entry.value for _, entry in self.log(Partition(topic, partition)).visible()]
