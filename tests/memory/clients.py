"""The clients of the memory broker that belong to no group: reader, transactor, admin."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from tests.memory.batches import Batches
from tests.memory.clocks import Clocks
from tests.memory.cluster import MemoryCluster
from tests.memory.groups import MemoryMembership
from tests.memory.in_flight import InFlight
from tests.memory.lock import CLUSTER_LOCK, one_at_a_time, waits
from tests.memory.log import Outcome, PartitionLog
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import NewTopic, TopicInfo
from twinsieve.pipeline.broker.arenas import Arenas
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.ports import Hook
from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    AbortableError,
    BrokerError,
    Committed,
    Copies,
    FatalError,
    GroupMember,
    Membership,
    Messages,
    Partition,
    Records,
    TruncatedError,
    UnreadableError,
)

_FLUSH_STEP_S = 0.1
_KEEP_BYTES = 1 << 20


@one_at_a_time
class _Client:
    """A client that asks where partitions begin. name: of its hooks"""

    def __init__(self, cluster: MemoryCluster, hook: Hook, name: str) -> None:
        self._cluster = cluster
        self._hook = hook
        self._name = name

    @waits
    def beginning_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        logs = self._logs("beginning_offsets", partitions)
        return {partition: log.beginning for partition, log in logs.items()}

    def _logs(self, call: str, partitions: Collection[Partition]) -> dict[Partition, PartitionLog]:
        self._reach(call)
        self._cluster.wait_for_leaders(call, partitions)
        with CLUSTER_LOCK:
            return {partition: self._cluster.log(partition) for partition in partitions}

    def _reach(self, call: str) -> None:
        self._hook(f"{self._name}.{call}")
        reach(self._cluster, call)


@one_at_a_time
class MemoryReader(_Client):
    """A poll that finds nothing lets its time-out pass on the cluster's clock."""

    def __init__(self, cluster: MemoryCluster, hook: Hook, clocks: Clocks, name: str = "reader") -> None:
        super().__init__(cluster, hook, name)
        self._clocks = clocks
        self._arenas = Arenas(_KEEP_BYTES)
        self._assigned: set[Partition] = set()
        self._positions: dict[Partition, int] = {}
        self._epochs: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._turn = 0

    def assign(self, partitions: Collection[Partition]) -> None:
        self._assigned = set(partitions)
        self._positions = {at: place for at, place in self._positions.items() if at in self._assigned}
        self._paused &= self._assigned

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        self._reach("seek")
        if partition in self._assigned:
            self._cluster.log(partition)
            self._positions[partition], self._epochs[partition] = offset, epoch

    @waits
    def poll(self, timeout_s: float, max_records: int) -> list[Records]:
        self._hook(f"{self._name}.poll.before")
        with CLUSTER_LOCK:
            found = self._fetch(max_records)
        if not found and timeout_s > 0:
            self._cluster.clock.sleep(timeout_s)
            with CLUSTER_LOCK:
                self._cluster.tick()
                found = self._fetch(max_records)
        self._hook(f"{self._name}.poll.after")
        return found

    def _fetch(self, max_records: int) -> list[Records]:
        if not self._cluster.reachable:
            return []
        ready = self._ready()
        self._turn += 1
        found: list[Records] = []
        for step in range(len(ready)):
            partition = ready[(step + self._turn) % len(ready)]
            self._cluster.require_rights(partition.topic)
            log, position = self._cluster.log(partition), self._positions[partition]
            self._compare(partition, log)
            if not log.beginning <= position <= log.end:
                raise AbortableError(f"{partition}: offset {position} is outside {log.beginning}..{log.end}")
            share = -(-max_records // (len(ready) - step))
            bad = self._bad_batch(partition, position, log.stable_end)
            if bad is not None and bad.start <= position:
                if found:
                    continue
                raise UnreadableError(partition, position, "wrong checksum", bad.stop)
            before = None if bad is None else bad.start
            read, self._positions[partition] = log.read(partition, position, share, before)
            begin, end = read.span
            records = Records.joined(partition, [read], self._arenas.take(end - begin))
            if self._positions[partition] > position:
                self._epochs[partition] = log.epoch_before(self._positions[partition])
            if len(records):
                self._clocks.broker.read(records)
                found.append(records)
                max_records -= len(records)
        return found

    def _ready(self) -> list[Partition]:
        # A topic that is gone brings nothing, and one that was created again is read on at the same offset.
        return sorted(at for at in self._positions if at not in self._paused and self._cluster.has_leader(at))

    def _bad_batch(self, partition: Partition, position: int, end: int) -> range | None:
        """The next batch from this position on that cannot be read; each ends a fetch."""
        batches = self._cluster.faults.unreadable.get(partition, ())
        return min(
            (batch for batch in batches if batch.stop > position and batch.start < end),
            key=lambda batch: batch.start,
            default=None,
        )

    def _compare(self, partition: Partition, log: PartitionLog) -> None:
        """Check that the log holds the message before the position. raises: TruncatedError, once"""
        epoch, position = self._epochs[partition], self._positions[partition]
        if NO_EPOCH < epoch < log.epoch and log.epoch_end(epoch) < position:
            self._epochs[partition] = NO_EPOCH
            raise TruncatedError(
                partition, f"{partition}: epoch {epoch} ends at {log.epoch_end(epoch)}, before {position}"
            )

    def position(self, partition: Partition) -> int:
        if partition not in self._positions:
            raise AbortableError(f"{partition}: no position yet; seek first")
        return self._positions[partition]

    def pause(self, partitions: Collection[Partition]) -> None:
        self._paused.update(self._assigned.intersection(partitions))

    def resume(self, partitions: Collection[Partition]) -> None:
        self._paused.difference_update(partitions)

    @waits
    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        logs = self._logs("end_offsets", partitions)
        return {partition: log.stable_end for partition, log in logs.items()}

    def close(self) -> None:
        self.assign(())


@one_at_a_time
class MemoryTransactionalProducer:
    def __init__(
        self,
        cluster: MemoryCluster,
        hook: Hook,
        clocks: Clocks,
        transactional_id: str,
        topics: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self._batches = Batches(cluster, topics)
        self._hook = hook
        self._clocks = clocks
        self._id = transactional_id
        reach(cluster, "transactor")
        slot = cluster.take_over(transactional_id)
        self._epoch = slot.epoch
        self._in_flight = InFlight(clocks)
        self._sent = 0
        self._hook("transactor.made")

    def begin(self) -> None:
        self._hook("transactor.begin")
        if self._cluster.holder(self._id, self._epoch).transaction is not None:
            raise RuntimeError(f"transactional id {self._id}: a transaction is open already")
        self._cluster.begin(self._id, self._epoch)
        self._sent = 0

    def unsendable(self, topic: str, messages: Messages | Copies) -> dict[int, DeadLetterReason]:
        listed = messages.listed() if isinstance(messages, Copies) else messages
        return unsendable(self._cluster, topic, listed, self._clocks.broker)

    def send(self, topic: str, partition: int | None, messages: Messages | Copies) -> None:
        """Keyed messages go by a checksum of the key."""
        self._hook("transactor.send.before")
        self._sent += len(messages)
        reach(self._cluster, "send")
        transaction = self._cluster.open_transaction(self._id, self._epoch)
        messages = self._clocks.stamped(messages)
        shares = {partition: messages} if partition is not None else self._cluster.by_key(topic, messages)
        for number, share in shares.items():
            self._cluster.check(Partition(topic, number), share)
            self._batches.check(Partition(topic, number), share)
            self._cluster.hand_over(self._in_flight, Partition(topic, number), share, transaction)
        self._hook("transactor.send.after")

    def send_offsets(
        self, offsets: Mapping[Partition, Committed], membership: Membership, record: str = ""
    ) -> None:
        self._hook("transactor.send_offsets.before")
        reach(self._cluster, "send_offsets")
        self._cluster.tick()
        transaction = self._cluster.open_transaction(self._id, self._epoch)
        if membership.generation < 0 or not isinstance(membership, MemoryMembership):
            raise AbortableError("send_offsets: no membership of a group; poll first")
        group = self._cluster.group(membership.group)
        group.check(membership.member_id, membership.instance, membership.generation)
        if record and self._cluster.group(record).members:
            raise AbortableError(f"send_offsets: group {record} has members")
        for partition, offset in offsets.items():
            for name in filter(None, (membership.group, record)):
                transaction.offsets[(name, partition)] = offset
        self._hook("transactor.send_offsets.after")

    @waits
    def commit(self) -> None:
        self._hook("transactor.commit.before")
        reach(self._cluster, "commit")
        left = flush(self._cluster, self._in_flight)
        with CLUSTER_LOCK:
            self._cluster.tick()
            self._cluster.open_transaction(self._id, self._epoch)
            if self._cluster.faults.refuses_commit(self._id, self._sent):
                raise AbortableError(f"commit: {self._sent} messages are refused")
            if left:
                raise AbortableError(f"commit: {left} messages were not acknowledged")
            self._cluster.end(self._cluster.holder(self._id, self._epoch), Outcome.COMMITTED)
        self._hook("transactor.commit.after")

    def abort(self) -> None:
        self._hook("transactor.abort")
        self._cluster.end(self._cluster.holder(self._id, self._epoch), Outcome.ABORTED)

    def close(self) -> None:
        if self._cluster.slots[self._id].epoch == self._epoch:
            with suppress(FatalError):  # another process took over while this one was about to
                self.abort()


@one_at_a_time
class MemoryAdmin(_Client):
    def __init__(self, cluster: MemoryCluster, hook: Hook) -> None:
        super().__init__(cluster, hook, "admin")

    def topics(self, names: Collection[str], *, settings: bool = False) -> dict[str, TopicInfo | None]:
        self._reach("topics")
        found: dict[str, TopicInfo | None] = {}
        for name in names:
            if name in self._cluster.faults.hidden:
                raise BrokerError(f"topic {name}: no permission to describe it", retryable=False)
            topic = self._cluster.topics.get(name)
            found[name] = None
            if topic is not None:
                shown = dict(topic.settings) if settings else {}
                dead = frozenset(at.number for at in self._cluster.faults.leaderless if at.topic == name)
                may = frozenset({"DESCRIBE"} if name in self._cluster.faults.denied else ())
                found[name] = TopicInfo(
                    name, topic.topic_id, len(topic.logs), topic.replication, shown, dead, may
                )
        return found

    def create_topic(self, topic: NewTopic) -> None:
        self._reach("create_topic")
        self._cluster.create(topic)

    @waits
    def delete_records(self, before: Mapping[Partition, int]) -> None:
        for partition, log in self._logs("delete_records", before).items():
            log.trim(before[partition])

    @waits
    def end_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        logs = self._logs("end_offsets", partitions)
        return {partition: log.end for partition, log in logs.items()}

    @waits
    def stable_offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        logs = self._logs("stable_offsets", partitions)
        return {partition: log.stable_end for partition, log in logs.items()}

    def log_bytes(self, topics: Collection[str]) -> dict[str, int]:
        self._reach("log_bytes")
        known = {name: self._cluster.topics[name] for name in topics if name in self._cluster.topics}
        return {
            name: sum(
                len(entry.key or b"") + len(entry.value or b"") for log in topic.logs for entry in log.entries
            )
            for name, topic in known.items()
        }

    @waits
    def offsets_at(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int]:
        found = {}
        for partition, log in self._logs("offsets_at", times_ms).items():
            later = (offset for offset, entry in log.visible() if entry.timestamp_ms >= times_ms[partition])
            found[partition] = next(later, log.end)
        return found

    def group_offsets(
        self, group: str, partitions: Collection[Partition] | None = None, *, stable: bool = True
    ) -> dict[Partition, Committed]:
        self._reach("group_offsets")
        moving = {at for name, at in self._cluster.unstable_offsets() if name == group}
        if stable and (moving if partitions is None else moving.intersection(partitions)):
            raise BrokerError(f"offsets of group {group}: an open transaction moves them", retryable=True)
        held = self._cluster.groups.get(group)
        offsets = held.offsets if held is not None else {}
        return {at: offset for at, offset in offsets.items() if partitions is None or at in partitions}

    def groups(self, prefix: str) -> list[str]:
        reach(self._cluster, "groups")
        return sorted(name for name in self._cluster.groups if name.startswith(prefix))

    def members(self, group: str) -> Mapping[str, GroupMember]:
        reach(self._cluster, "members")
        self._cluster.tick()
        known = self._cluster.groups.get(group)
        counts = {name: len(topic.logs) for name, topic in self._cluster.topics.items()}
        if known is None:
            return {}
        return {
            key: GroupMember(each.instance, known.assignment(key, counts), each.client_id)
            for key, each in known.members.items()
        }

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, Committed]) -> None:
        self._reach("set_group_offsets")
        self._cluster.tick()
        if self._cluster.group(group).members:
            raise BrokerError(f"group {group} has live members; stop them first", retryable=False)
        self._cluster.group(group).offsets.update(offsets)

    def close(self) -> None:
        """Disconnect."""


def unsendable(
    cluster: MemoryCluster, topic: str, messages: Messages, clock: BrokerClock
) -> dict[int, DeadLetterReason]:
    """Rows that the topic's limits refuse, as a client can tell; all rows where there is no such topic."""
    held = cluster.topics.get(topic)
    if held is None:
        return dict.fromkeys(range(len(messages)), DeadLetterReason.TOO_LARGE_FOR_TOPIC)
    oldest, newest = clock.accepted_ms(held.info)
    found = {
        row: DeadLetterReason.BAD_TIMESTAMP
        for row, stamp in enumerate(messages.timestamps_ms)
        if stamp >= 0 and not oldest <= stamp <= newest
    }
    for row, (key, value) in enumerate(zip(messages.keys, messages.values, strict=True)):
        if len(key or b"") + len(value or b"") > held.max_message_bytes:
            found[row] = DeadLetterReason.TOO_LARGE_FOR_TOPIC
        elif key is None and held.info.compacts:
            found[row] = DeadLetterReason.NO_KEY
    return found


def flush(cluster: MemoryCluster, in_flight: InFlight) -> int:
    """Messages that found no leader within `request_timeout_s`. Called without the lock."""
    deadline_s = cluster.clock.monotonic_s() + cluster.request_timeout_s
    while True:
        with CLUSTER_LOCK:
            cluster.deliver()
            left = len(in_flight)
        if not left or cluster.clock.monotonic_s() >= deadline_s:
            return left
        cluster.clock.sleep(min(_FLUSH_STEP_S, cluster.request_timeout_s))


def reach(cluster: MemoryCluster, call: str) -> None:
    """Check that the cluster can be reached. raises: AbortableError"""
    if not cluster.reachable:
        raise AbortableError(f"{call}: the broker does not answer")
