"""The consumer of a group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from kafka import ConsumerRebalanceListener, TopicPartition, errors

from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    AbortableError,
    Committed,
    FatalError,
    Partition,
    PollResult,
    UnstableError,
)
from twinsieve.pipeline.kafka.access import Access
from twinsieve.pipeline.kafka.committed import committed_of
from twinsieve.pipeline.kafka.deadline import COMMITTED_S, DeadlineError, within
from twinsieve.pipeline.kafka.errors import NAME_TAKEN, translating
from twinsieve.pipeline.kafka.leaving import leave
from twinsieve.pipeline.kafka.patches import fetch_late, keep_finished_joins, watch_fencing
from twinsieve.pipeline.kafka.reading import PartitionConsumer
from twinsieve.pipeline.kafka.transactions import KafkaMembership

_LOOKUP_S = 10.0
"""How long the request for a topic's partitions may take."""
_HELD_BACK = "an open transaction blocks it, or the broker does not answer"


class KafkaGroupConsumer(PartitionConsumer, ConsumerRebalanceListener):  # type: ignore[misc]
    """`ports.GroupConsumer` on kafka-python.

    Rebalance callbacks run on the client's network thread, where every blocking call raises an error. So they
    only set flags and pause partitions. The caller notices the rebalance by the epoch of its next poll.
    """

    def __init__(self, access: Access, group: str, topics: Sequence[str], member: str | None) -> None:
        super().__init__(
            access,
            group_id=group,
            group_instance_id=member,
            session_timeout_ms=access.settings.session_timeout_ms,
            heartbeat_interval_ms=access.settings.heartbeat_ms,
        )
        self._group = group
        self._member = member
        self._epoch = 0
        self._seen_epoch = 0
        self._assigned: frozenset[TopicPartition] = frozenset()
        keep_finished_joins(self._consumer)
        self._fetch = fetch_late(self._consumer)
        self._is_fenced = watch_fencing(self._consumer)
        self._consumer.subscribe(list(topics), listener=self)
        self._know(topics)

    def _know(self, topics: Sequence[str]) -> None:
        # A group leader whose metadata lack a topic's partitions assigns none of them, and may notice that
        # only at its next metadata refresh. So every member loads them before it joins.
        for topic in topics:
            try:
                within(_LOOKUP_S, partial(self._consumer.partitions_for_topic, topic))
            except (errors.KafkaError, DeadlineError) as error:
                self.close()
                raise AbortableError(f"partitions of {topic}: no answer from the broker ({error})") from error

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Take over these partitions; each delivers nothing before its first `seek`.

        Called on the network thread.
        """
        with self._lock:
            self._epoch += 1
            self._live.clear()
            self._paused.clear()
            self._assigned = frozenset(assigned)
            self._silence(self._assigned)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        """Drop all partitions. Also called if they are lost because the session ended."""
        self.on_partitions_assigned(())

    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        if self._is_fenced():
            raise FatalError(f"member {self._member}: {NAME_TAKEN}", fenced=True)
        polled = self._fetched(timeout_s, max_records)
        # Read the membership before the epoch. After max_poll_interval_ms without a poll, kafka-python leaves
        # the group by itself. The broker accepts the group_metadata() of that state even though another
        # member owns the partitions. A rebalance raises the epoch before it changes the membership, so in
        # this order a result never combines records, membership and epoch of different times.
        metadata = self._consumer.group_metadata()
        with self._lock:
            self._seen_epoch = self._epoch
            assignment = frozenset(Partition(*partition) for partition in self._assigned)
            live = [(partition, parts) for partition, parts in polled.items() if partition in self._live]
        records = self._joined(live)
        membership = KafkaMembership(metadata.generation_id, metadata, self._is_fenced)
        return PollResult(membership, assignment, self._seen_epoch, records)

    def prefetch(self) -> bool:
        with translating("reading"):
            return self._fetch()

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        offsets: dict[Partition, Committed | None] = {}
        for partition in partitions:
            with translating(f"committed offset of {partition}"):
                # One request per partition, because the client has no public call for several.
                try:
                    entry = self._consumer.committed(
                        TopicPartition(*partition), metadata=True, timeout_ms=int(COMMITTED_S * 1000)
                    )
                except errors.KafkaTimeoutError as error:
                    raise UnstableError(f"committed offset of {partition}: {_HELD_BACK}") from error
            offsets[partition] = None if entry is None else committed_of(entry.offset, entry.metadata)
        return offsets

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        """As in the port. Also ignored if there was a rebalance since the last poll."""
        key = TopicPartition(*partition)
        with self._lock:
            if self._epoch == self._seen_epoch and key in self._assigned:
                self._start(key, offset, epoch)

    def leave(self) -> None:
        member_id = self._consumer.group_metadata().member_id
        self.close()
        if self._member is not None:
            leave(self._admin, self._group, self._member, member_id)
