"""The consumer of a group on confluent-kafka."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from twinsieve.pipeline.broker.records import (
    NO_EPOCH,
    BrokerError,
    Committed,
    FatalError,
    Membership,
    Partition,
    PollResult,
    UnstableError,
)
from twinsieve.pipeline.kafka.broker import Access
from twinsieve.pipeline.kafka.confluent.options import ERRORS
from twinsieve.pipeline.kafka.confluent.patches import generation_of, text_of
from twinsieve.pipeline.kafka.confluent.reading import ConfluentConsumer, answer_options
from twinsieve.pipeline.kafka.deadline import COMMITTED_S
from twinsieve.pipeline.kafka.errors import NAME_TAKEN
from twinsieve.pipeline.kafka.leaving import leave, may_leave
from twinsieve.pipeline.kafka.transactions import KafkaMembership

_log = logging.getLogger(__name__)
_JOIN_S = 30.0
"""A join that takes longer is looked for in the group's list of members."""
_LAST_S = 5.0
_LAST_MESSAGES = 10_000
_LEAVES_S = 2.0
"""A member that leaves waits so long at most until librdkafka has ended its join."""
_LEAVING_S = 0.02
"""So often it looks whether that is so."""
_MEMBERSHIP_S = 1.0
"""The membership is queried once in this time and after every rebalance. More often would be slow: librdkafka
answers from another thread, and confluent-kafka keeps the interpreter's lock (GIL) until the answer."""


@dataclass(frozen=True, slots=True)
class ConfluentMembership(KafkaMembership):
    """A `KafkaMembership` that notices when the consumer has got another member id.

    member_id: the id that the group gave this member when the membership was taken, "" while it was joining
    present_id: returns the id that the member has now
    """

    member_id: str
    present_id: Callable[[], str]

    def is_stale(self) -> bool:
        try:
            return self.present_id() != self.member_id
        except RuntimeError:
            # The old client is closed, because `_rejoin` replaced it.
            return True


class ConfluentGroupConsumer(ConfluentConsumer):
    """`ports.GroupConsumer` on confluent-kafka; an assigned partition is paused until its first `seek`."""

    def __init__(self, access: Access, group: str, topics: Sequence[str], member: str | None) -> None:
        own: dict[str, Any] = {
            "group.id": group,
            "session.timeout.ms": access.settings.session_timeout_ms,
            "heartbeat.interval.ms": access.settings.heartbeat_ms,
            **answer_options(),
            # The same as kafka-python's, so that both clients can serve in one group.
            "partition.assignment.strategy": "range,roundrobin",
        }
        if member is not None:
            own["group.instance.id"] = member
        super().__init__(access, own)
        self._group = group
        self._topics = list(topics)
        self._member = member
        self._member_id = ""
        self._epoch = 0
        self._assigned: frozenset[Partition] = frozenset()
        self._nameless = False
        self._joining, self._join_seen_s = True, 0.0
        self._membership = Membership(-1)
        self._membership_epoch, self._membership_s = -1, 0.0
        self._join()

    def _join(self) -> None:
        self._begin_join()
        self._consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def poll_fenced(self) -> bool:
        """Poll, drop the messages, and return whether another process has joined under this member's name."""
        if not isinstance(self._later, FatalError):
            # librdkafka reports a displaced member only at a poll. Messages of that poll can be dropped,
            # because the producer is finished and the caller makes new clients.
            self._columns(self._consume(1, 0.05))
        return isinstance(self._later, FatalError) and self._later.fenced

    def _notice_failure(self, error: KafkaException, doing: str) -> None:
        broker_error = ERRORS.translated(error, doing)
        if isinstance(broker_error, FatalError) and broker_error.fenced and not self._is_displaced():
            self._nameless = True
        else:
            super()._notice_failure(error, doing)

    def _is_displaced(self) -> bool:
        """Whether another process runs under this member name.

        If the session ends while the broker is away, librdkafka clears its member id but still sends pending
        heartbeats. The broker answers a heartbeat without an id with the same error that a displaced member
        gets. The group's member list tells the two cases apart: if the name still belongs to the last id of
        this consumer, no other process has joined. So a consumer that joins again never displaces another
        process, and a displaced consumer always ends.
        """
        try:
            members = self._admin().members(self._group)
        except BrokerError as error:
            # A refused login says nothing about other processes.
            return not error.retryable and not isinstance(error, FatalError)
        return any(member.name == self._member and key != self._member_id for key, member in members.items())

    def _begin_join(self) -> None:
        """Note that this consumer joins. `_join_seen_s`: when it began, or when the group was last asked."""
        self._joining, self._join_seen_s = True, time.monotonic()

    def _is_unknown(self) -> bool:
        """Whether this consumer has been joining for a while, and the group does not know of it.

        librdkafka joins again by itself when a session has ended, but not always: of version 2.16.0, with a
        broker that lost its partitions every minute, one sent no request to join for seven minutes, until the
        broker ended. A group that waits for other members lists this one.
        """
        now_s = time.monotonic()
        if not self._joining or now_s - self._join_seen_s < _JOIN_S:
            return False
        self._join_seen_s = now_s
        try:
            members = self._admin().members(self._group)
        except BrokerError:
            return False
        present = self._consumer.memberid()
        return not any(
            key == present or (member.name is not None and member.name == self._member)
            for key, member in members.items()
        )

    def _rejoin(self) -> None:
        """Join again with a new client, because the old one is unusable; the caller sees a rebalance."""
        self._nameless = False
        self._settle()
        self._consumer.close()
        self._events.fatal = None
        self._moved()
        self._assigned = frozenset()
        self._consumer = Consumer(self._options)
        self._join()

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        self._moved()
        self._joining = False
        self._assigned = frozenset(Partition(part.topic, part.partition) for part in partitions)
        self._member_id = consumer.memberid() or ""
        # Offset 0 keeps librdkafka from looking up committed offsets; the pause keeps it from reading.
        start = [TopicPartition(part.topic, part.partition, 0) for part in partitions]
        consumer.assign(start)
        consumer.pause(start)

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:  # noqa: ARG002 - librdkafka's call
        self._moved()
        self._begin_join()
        self._assigned = frozenset()
        consumer.unassign()

    def _on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        """Called when librdkafka considers the session ended, before it joins the group again.

        It joins without its old member id. So the broker cannot see that another process may have taken the
        member name meanwhile (while this process was suspended), and would displace that process. So this
        method asks the group first: if another process has the name, this one does not join, but ends with
        FatalError. librdkafka waits until this call returns.
        """
        if self._member is not None and self._is_displaced():
            self._later = FatalError(f"member {self._member}: {NAME_TAKEN}", fenced=True)
            # The call fails if librdkafka has found out by itself that another process has the name. That
            # does no harm, because librdkafka does not join the group then either.
            with suppress(KafkaException):
                consumer.unsubscribe()
        self._on_revoke(consumer, partitions)

    def _moved(self) -> None:
        self._epoch += 1
        self._live.clear()
        self._stopped.clear()
        self._paused.clear()

    def poll(self, timeout_s: float, max_records: int) -> PollResult:
        if self._nameless:
            self._rejoin()
        elif self._is_unknown():
            _log.warning(
                "group %s has not known this process for %g s; joining with a new client",
                self._group,
                _JOIN_S,
            )
            self._rejoin()
        records = self._fetched(timeout_s, max_records)
        # Rebalance callbacks run inside consume() on this thread, so no rebalance can come between the
        # records, the assignment, the epoch and the membership of this result.
        now_s = time.monotonic()
        if self._epoch != self._membership_epoch or now_s - self._membership_s >= _MEMBERSHIP_S:
            self._membership = self._present_membership()
            self._membership_epoch, self._membership_s = self._epoch, now_s
        owned = [part for part in records if part.partition in self._live]
        return PollResult(self._membership, self._assigned, self._epoch, owned)

    def _present_membership(self) -> ConfluentMembership:
        metadata, member_id = self._consumer.consumer_group_metadata(), self._consumer.memberid
        generation = generation_of(metadata)
        return ConfluentMembership(
            generation if self._assigned else -1, metadata, self.poll_fenced, member_id() or "", member_id
        )

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        if not partitions:
            return {}
        targets = [TopicPartition(*part) for part in partitions]
        with ERRORS.translating("committed offsets"):
            try:
                answers = self._consumer.committed(targets, timeout=COMMITTED_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT:
                    raise
                names = ", ".join(map(str, partitions))
                why = "an open transaction blocks one of them, or the broker does not answer"
                raise UnstableError(f"committed offsets of {names}: {why}") from error
        offsets: dict[Partition, Committed | None] = {}
        for part in answers:
            if part.error is not None:
                refused = KafkaException(part.error)
                raise ERRORS.translated(
                    refused, f"committed offset of {part.topic}[{part.partition}]"
                ) from refused
            is_committed = part.offset >= 0
            committed = Committed(part.offset, text_of(part)) if is_committed else None
            offsets[Partition(part.topic, part.partition)] = committed
        return offsets

    def seek(self, partition: Partition, offset: int, epoch: int = NO_EPOCH) -> None:
        if partition not in self._assigned:
            return
        if partition not in self._paused:
            # Resume first: the seek makes librdkafka search for partitions to fetch (see `resume`).
            self._consumer.resume([TopicPartition(*partition)])
        self._seek(partition, offset, epoch)

    def leave(self) -> None:
        if not self.closed:
            self._close(
                leaves=self._member is None
                or may_leave(self._admin, self._group, self._member, self._member_id)
            )
        if self._member is not None:
            # A member that unsubscribes leaves once its partitions have stopped. If the client is closed
            # before that, librdkafka keeps a static member in the group.
            leave(self._admin, self._group, self._member, self._member_id)

    def close(self) -> None:
        if not self.closed:
            self._close(leaves=False)

    def _close(self, *, leaves: bool) -> None:
        self._settle(leaves=leaves)
        super().close()

    def _settle(self, *, leaves: bool = False) -> None:
        """End a running rebalance before the consumer is closed, and the membership if the member leaves.

        While librdkafka closes, it does not wait until a rebalance callback that was due before has ended.
        That callback assigns partitions or gives them up, and for this asks a librdkafka thread. If the
        thread has ended, the callback waits forever (librdkafka issue 4884), and keeps the interpreter's lock
        (GIL), so the whole process hangs. So callbacks that are due are made here. A member that joins may be
        assigned partitions at any moment, so it leaves the group. librdkafka first ends the join that it has
        begun: it assigns partitions, gives them up, and forgets its member id.
        """
        with suppress(KafkaException):
            self._drain()
            if leaves or self._joining:
                self._consumer.unsubscribe()
                deadline = time.monotonic() + _LEAVES_S
                while self._consumer.memberid() and time.monotonic() < deadline:
                    self._drain(_LEAVING_S)

    def _drain(self, seconds: float = 0.0) -> None:
        """Make the rebalance callbacks that are due within `seconds`. They are queued behind messages, which
        are dropped."""
        with suppress(KafkaException):
            # For paused partitions librdkafka drops the messages by itself. It refuses to pause partitions
            # that it has taken back.
            self._consumer.pause([TopicPartition(*part) for part in self._assigned])
        deadline = time.monotonic() + _LAST_S
        while self._consumer.consume(_LAST_MESSAGES, seconds) and time.monotonic() < deadline:
            pass

    def _owns(self, partition: Partition) -> bool:
        return partition in self._assigned

    def _restart(self, partition: Partition) -> None:
        # With eager rebalancing librdkafka cannot restart one partition; assign all of them again.
        targets = [TopicPartition(*part, self._live.get(part, 0)) for part in self._assigned]
        silent = [
            target for target, part in zip(targets, self._assigned, strict=True) if not self._reads(part)
        ]
        with ERRORS.translating(f"seek {partition}"):
            self._consumer.assign(targets)
            self._consumer.pause(silent)

    def _reads(self, partition: Partition) -> bool:
        return partition in self._live and partition not in self._paused
